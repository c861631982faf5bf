import { lazy, Suspense, useState } from 'react';
import { RouterProvider } from 'react-router';
import { useTranslation } from 'react-i18next';
import { useSession } from '@/api/session';
import { oneTimeCode } from '@/lib/code';
import { useGiveBack } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { makeRouter } from './routes';

const SignIn = lazy(() => import('@/pages/signin'));

function Console() {
  const [router] = useState(makeRouter);

  return <RouterProvider router={router} />;
}

/** The console for who is signed in; else the way in, at whatever address one stands. */
export function App() {
  const { session, ended, loading, error } = useSession();
  const [code, setCode] = useState(oneTimeCode);
  const { t } = useTranslation();

  // who comes back finds all as it was; anybody else begins anew
  const who = session ?? (ended?.name == null ? null : ended);
  const over = !session && who !== null;
  // now: what is not seen has no keyboard
  const giveBack = useGiveBack(over);

  if (loading) {
    return <p role="status" className="sr-only">{t('loading')}</p>;
  }

  if (error && !who) {
    return (
      <main className="mx-auto max-w-lg p-4">
        <ErrorNote error={error} onRetry={() => location.reload()} />
      </main>
    );
  }

  return (
    <>
      {who && code === null && (
        <div key={`${who.name} ${who.role} ${who.sandboxes.join()}`} className={session ? 'contents' : 'invisible contents'}><Console /></div>
      )}
      <Suspense>
        {(!session || code !== null) && <SignIn over={over} giveBack={giveBack} code={code} onCodeUsed={() => setCode(null)} />}
      </Suspense>
    </>
  );
}

import { lazy, useState } from 'react';
import { RouterProvider } from 'react-router';
import { useTranslation } from 'react-i18next';
import { useSession } from '@/api/session';
import { oneTimeCode } from '@/lib/code';
import { ErrorNote } from '@/ui/error-note';
import { makeRouter } from './routes';

const SignIn = lazy(() => import('@/pages/signin'));

function Console() {
  const [router] = useState(makeRouter);

  return <RouterProvider router={router} />;
}

/** The console for who is signed in; else the way in, at whatever address one stands. */
export function App() {
  const { session, loading, error } = useSession();
  const [code, setCode] = useState(oneTimeCode);
  const { t } = useTranslation();

  if (loading) {
    return <p role="status" className="sr-only">{t('loading')}</p>;
  }

  if (error) {
    return (
      <main className="mx-auto max-w-lg p-4">
        <ErrorNote error={error} onRetry={() => location.reload()} />
      </main>
    );
  }

  return session && code === null ? <Console /> : <SignIn code={code} onCodeUsed={() => setCode(null)} />;
}

import { type FormEvent, useEffect, useRef, useState } from 'react';
import { KeyRound, LogIn } from 'lucide-react';
import { Dialog } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { ApiError } from '@/api/errors';
import { ROLES, useSession } from '@/api/session';
import { LanguageMenu, ThemeMenu } from '@/layout/preferences';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input } from '@/ui/field';
import { harmless } from '@/ui/plain-text';

interface Props {
  /** What was open lies below, and stays. */
  over: boolean;
  /** The keyboard, to who had it there. */
  giveBack(e: Event): void;
  /** Of a one-time link; used at once. */
  code: string | null;
  onCodeUsed(): void;
}

export default function SignIn({ over, giveBack, code, onCodeUsed }: Props) {
  const { t } = useTranslation('signin');
  const { signIn, ended } = useSession();
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(code !== null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const used = useRef(false);
  const field = useRef<HTMLInputElement>(null);

  useTitle(t('title'));

  const enter = async (by: { token: string } | { code: string }) => {
    setBusy(true);
    setWrong(null);
    setError(null);

    try {
      await signIn(by);
    } catch (e) {
      const refused = e instanceof ApiError && [400, 401, 403, 404].includes(e.status);

      if (refused) {
        setWrong('code' in by ? t('codeRefused') : t('tokenRefused'));
      } else {
        setError(e);
      }

      setBusy(false);
      field.current?.focus();
    }
  };

  // once only, in strict mode too: a code is good for one use
  useEffect(() => {
    if (code !== null && !used.current) {
      used.current = true;
      void enter({ code }).finally(onCodeUsed);
    }
  });

  const submit = (e: FormEvent) => {
    e.preventDefault();

    if (token.trim() === '') {
      setWrong(t('tokenMissing'));
      field.current?.focus();
      return;
    }

    void enter({ token: token.trim() });
  };

  const page = (
    <div className="flex min-h-full flex-col">
      <header className="flex justify-end gap-1 p-2"><LanguageMenu /><ThemeMenu /></header>
      <main className="mx-auto flex w-full max-w-sm flex-1 flex-col justify-center gap-5 px-4 pb-24">
        <div className="flex items-center gap-2.5">
          <img src="icon.svg" alt="" width="28" height="28" />
          <h1 className="text-xl font-semibold">sandbox-gateway</h1>
        </div>
        <p className="text-dim">{t('lead')}</p>
        {ended && <p role="status" className="rounded-md border border-warn bg-warn-tint px-3 py-2 text-sm">{ended.name && over ? t('endedAs', { name: harmless(ended.name) }) : t('ended')}</p>}
        <form onSubmit={submit} className="grid gap-3">
          <Field label={t('token')} hint={t('hint')} error={wrong}>
            {(p) => (
              <Input {...p} ref={field} type="password" name="token" autoComplete="current-password" autoFocus
                placeholder="sbx_…" className="h-9 font-mono" value={token}
                onChange={(e) => { setToken(e.target.value); setWrong(null); }}
              />
            )}
          </Field>
          {error !== null && <ErrorNote error={error} />}
          <Button type="submit" look="primary" className="h-9" busy={busy} icon={<LogIn size={15} aria-hidden />}>
            {t('submit')}
          </Button>
        </form>
        <section aria-labelledby="roles" className="rounded-md border p-3 text-sm">
          <h2 id="roles" className="mb-1.5 flex items-center gap-1.5 font-medium">
            <KeyRound size={14} aria-hidden className="text-dim" />{t('roles')}
          </h2>
          <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1">
            {ROLES.map((role) => (
              <div key={role} className="contents">
                <dt className="font-mono text-xs leading-5">{role}</dt>
                <dd className="text-dim">{t(`role.${role}`)}</dd>
              </div>
            ))}
          </dl>
        </section>
      </main>
    </div>
  );

  if (!over) {
    return page;
  }

  const stay = (e: Event) => e.preventDefault();

  // over dialogs too: what is half filled in there stays as well
  return (
    <Dialog.Root open>
      <Dialog.Portal>
        <Dialog.Content aria-describedby={undefined} onEscapeKeyDown={stay} onInteractOutside={stay}
          onCloseAutoFocus={giveBack}
          onOpenAutoFocus={(e) => { e.preventDefault(); field.current?.focus(); }} className="fixed inset-0 z-70 overflow-y-auto bg-bg"
        >
          <Dialog.Title className="sr-only">{t('title')}</Dialog.Title>
          {page}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

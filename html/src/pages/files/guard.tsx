import { type RefObject, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useBlocker } from 'react-router';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { harmless } from '@/ui/plain-text';
import { baseName } from './paths';
import type { Saver } from './text-file';

interface Props {
  path: string;
  /** There is something to save to. */
  running: boolean;
  dirty: boolean;
  /** The same, known at once and not with the next drawing. */
  edits: RefObject<boolean>;
  saver: RefObject<Saver | null>;
}

/** Asks before edits are lost: to another file, to another page, out of the tab. */
export function UnsavedGuard({ path, running, dirty, edits, saver }: Props) {
  const { t } = useTranslation('files');
  const [busy, setBusy] = useState(false);
  const blocker = useBlocker(({ currentLocation: from, nextLocation: to }) => edits.current
    && (from.pathname !== to.pathname
      || new URLSearchParams(from.search).get('path') !== new URLSearchParams(to.search).get('path')));

  useEffect(() => {
    if (!dirty) {
      return undefined;
    }

    const ask = (e: BeforeUnloadEvent) => e.preventDefault();

    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [dirty]);

  const save = async () => {
    setBusy(true);

    const done = await saver.current?.save();

    setBusy(false);

    if (done) {
      blocker.proceed?.();
    } else {
      blocker.reset?.();
    }
  };

  return (
    <Dialog open={blocker.state === 'blocked'} onOpenChange={(open) => { if (!open && !busy) blocker.reset?.(); }}
      title={t('guard.title', { name: harmless(baseName(path)) })} description={t('guard.hint')}
      footer={(
        <>
          <Button disabled={busy} onClick={() => blocker.reset?.()}>{t('guard.stay')}</Button>
          <Button look="danger" disabled={busy} onClick={() => blocker.proceed?.()}>{t('guard.discard')}</Button>
          {running && <Button look="primary" busy={busy} onClick={() => void save()}>{t('guard.save')}</Button>}
        </>
      )}
    />
  );
}

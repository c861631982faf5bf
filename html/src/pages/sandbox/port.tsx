import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { openPort } from '@/api/lifecycle';
import type { Sandbox } from '@/api/types';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input } from '@/ui/field';

/** Asks which port, and opens it in a tab of its own. */
export default function PortDialog({ sandbox, onClose }: { sandbox: Sandbox; onClose(): void }) {
  const { t } = useTranslation('lifecycle');
  const { t: common } = useTranslation();
  const [port, setPort] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [url, setUrl] = useState<string | null>(null);
  const n = Number(port);
  const right = /^\d+$/.test(port) && n >= 1 && n <= 65_535;

  const open = async () => {
    // now, while the browser still knows that somebody wanted it
    const tab = window.open('about:blank', '_blank');

    setBusy(true);
    setError(null);
    try {
      const to = await openPort(sandbox.id, n);

      if (tab) {
        tab.opener = null;
        tab.location.replace(to);
        onClose();
      } else {
        setUrl(to);
      }
    } catch (e) {
      tab?.close();
      setError(e);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog open onOpenChange={(is) => { if (!is) onClose(); }} title={t('openPort')} description={t('portHint')}
      footer={(
        <>
          <Button onClick={onClose}>{common('cancel')}</Button>
          <Button type="submit" form="open-port" look="primary" busy={busy} disabled={!right}>{t('open')}</Button>
        </>
      )}
    >
      <form id="open-port" onSubmit={(e) => { e.preventDefault(); if (right && !busy) void open(); }}>
        <Field label={t('port')} error={port !== '' && !right ? t('portWrong') : null}>
          {(p) => <Input {...p} autoFocus inputMode="numeric" autoComplete="off" placeholder="8000" value={port}
            onChange={(e) => { setPort(e.target.value.trim()); setUrl(null); }} />}
        </Field>
      </form>
      {url && <a href={url} target="_blank" rel="noopener noreferrer" className="text-sm text-accent underline" onClick={onClose}>{t('portBlocked')}</a>}
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}

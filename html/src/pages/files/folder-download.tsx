import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useFormat } from '@/lib/format';
import { save as saveBlob } from '@/lib/save';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, PlainText } from '@/ui/plain-text';
import { Progress } from '@/ui/progress';
import { baseName } from './paths';
import { fits, makeZip, MOST_BYTES, MOST_FILES, type Plan, planZip } from './zip';

/** A folder to take away: what is in it, then a zip with progress. */
export function FolderDownload({ id, folder, onClose }: { id: string; folder: string; onClose(): void }) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const { bytes, count } = useFormat();
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState<{ files: number; bytes: number } | null>(null);
  const [failed, setFailed] = useState<string[]>([]);
  const [stop] = useState(() => ({ now: new AbortController() }));

  useEffect(() => {
    const { signal } = stop.now = new AbortController();

    planZip(id, folder, signal).then(setPlan, (e) => { if (!signal.aborted) setError(e); });
    return () => stop.now.abort();
  }, [id, folder, stop]);

  const begin = async () => {
    setDone({ files: 0, bytes: 0 });
    setError(null);

    try {
      const made = await makeZip(id, folder, plan!, (files, n) => setDone({ files, bytes: n }), stop.now.signal);

      saveBlob(made.blob, `${harmless(baseName(folder)).replace(/[\\/:]/g, '_') || 'files'}.zip`);
      setFailed(made.failed);
      if (made.failed.length === 0) {
        onClose();
      }
    } catch (e) {
      if (!stop.now.signal.aborted) {
        setError(e);
      }
    } finally {
      setDone(null);
    }
  };

  return (
    <Dialog open onOpenChange={(open) => { if (!open) onClose(); }} title={t('zip.title', { name: harmless(baseName(folder)) })}
      description={t('zip.hint')}
      footer={(
        <>
          <Button onClick={onClose}>{common('cancel')}</Button>
          <Button look="primary" disabled={!plan || !fits(plan) || plan.files.length === 0} busy={done !== null} onClick={() => void begin()}>
            {t('download')}
          </Button>
        </>
      )}
    >
      {!plan && error === null && <Skeleton lines={1} />}
      {plan && (
        <p>
          {t('count', { count: plan.files.length, n: count(plan.files.length) })} · {bytes(plan.bytes)}
          {plan.left > 0 && <span className="text-dim"> · {t('zip.left', { count: plan.left })}</span>}
        </p>
      )}
      {plan && !fits(plan) && (
        <p role="alert" className="text-bad">{t('zip.tooMuch', { files: count(MOST_FILES), size: bytes(MOST_BYTES) })}</p>
      )}
      {plan && done && <Progress label={t('zip.progress')} value={done.bytes + done.files} max={plan.bytes + plan.files.length} />}
      {failed.length > 0 && (
        <div role="alert" className="grid gap-1">
          <p className="text-bad">{t('zip.failed', { count: failed.length })}</p>
          <PlainText text={failed.join('\n')} className="max-h-40 rounded-md border" />
        </div>
      )}
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}

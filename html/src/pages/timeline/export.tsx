import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { OperationFilters } from '@/api/queries';
import { apiUrl, type Params, request } from '@/api/request';
import { useFormat } from '@/lib/format';
import { readAll, save } from '@/lib/save';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { BY_RECORD, exported, type Told } from './export-rows';
import { type ExportFormat, hides } from './filters';

interface Props {
  format: ExportFormat;
  sandbox: string | undefined;
  filters: OperationFilters;
  /** How many records pass the filters now; undefined when nobody can tell. */
  expected: number | undefined;
  /** Values that the list leaves out, and the file too. */
  not: readonly string[];
  onClose(): void;
}

/** What is filtered, as a file; how far it is, and what it is not. */
export default function ExportDialog({ format, sandbox, filters, expected, not, onClose }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { bytes, count } = useFormat();
  const [told, setTold] = useState<Told | null>(null);
  const [tries, setTries] = useState(0);
  const [read, setRead] = useState(0);
  const [done, setDone] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const asked = useRef({ format, sandbox, filters, not });

  useEffect(() => {
    const aborter = new AbortController();
    const { format: f, sandbox: s, filters: all, not: out } = asked.current;
    const by = BY_RECORD.find((one) => one === f);

    const work = async () => {
      const response = await request(apiUrl('export', { ...all, sandbox: s, format: f } as Params), { signal: aborter.signal });
      // one page is as it comes
      const blob = await readAll(by ? new Response(
        response.body!.pipeThrough(exported(by, out.length > 0 ? hides(out) : null, (now) => setTold({ ...now }))),
        { headers: response.headers }) : response, setRead, aborter.signal);

      save(blob, `${s ?? 'history'}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.${f}`);
      setDone(true);
    };

    setRead(0);
    setTold(null);
    setError(null);
    work().catch((e: unknown) => { if (!aborter.signal.aborted) setError(e); });
    return () => aborter.abort();
  }, [tries]);

  const far = told && expected !== undefined ? Math.min(told.seen, expected) : undefined;

  return (
    <Dialog open onOpenChange={(on) => { if (!on) onClose(); }} title={t('exportThis')}
      footer={<Button onClick={onClose}>{done ? common('close') : common('cancel')}</Button>}
    >
      <p role="status">
        {done ? told ? t('exportedCount', { count: told.kept, n: count(told.kept), size: bytes(read) }) : t('exported', { size: bytes(read) })
          : t('exporting', { size: bytes(read), count: expected ?? 0 })}
      </p>
      {!done && !error && <progress {...(far === undefined ? {} : { value: far, max: Math.max(expected!, 1) })} aria-label={t('export')} className="h-1.5 w-full accent-(--c-accent)" />}
      <p className="text-sm text-dim">{t('redactedNote')}</p>
      {not.length > 0 && <p className="text-sm text-dim">{t('exportWithout', { values: not.map(harmless).join(', ') })}</p>}
      {error !== null && <ErrorNote error={error} onRetry={() => setTries((n) => n + 1)} />}
    </Dialog>
  );
}

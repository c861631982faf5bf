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

export const FORMATS = ['jsonl', 'csv', 'html'] as const;
export type ExportFormat = (typeof FORMATS)[number];

interface Props {
  format: ExportFormat;
  sandbox: string | undefined;
  filters: OperationFilters;
  /** How many records there are now. */
  expected: number | undefined;
  /** Values that the list leaves out: the export has them. */
  not: readonly string[];
  onClose(): void;
}

/** What is filtered, as a file; how far it is, and what it is not. */
export function ExportDialog({ format, sandbox, filters, expected, not, onClose }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { bytes } = useFormat();
  const [read, setRead] = useState(0);
  const [done, setDone] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const asked = useRef({ format, sandbox, filters });

  useEffect(() => {
    const aborter = new AbortController();
    const { format: f, sandbox: s, filters: all } = asked.current;

    const work = async () => {
      const response = await request(apiUrl('export', { ...all, sandbox: s, format: f } as Params), { signal: aborter.signal });
      const blob = await readAll(response, setRead, aborter.signal);

      save(blob, `${s ?? 'history'}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.${f}`);
      setDone(true);
    };

    work().catch((e: unknown) => { if (!aborter.signal.aborted) setError(e); });
    return () => aborter.abort();
  }, []);

  const left = not.filter((n) => !n.startsWith('status:'));

  return (
    <Dialog open onOpenChange={(on) => { if (!on) onClose(); }} title={t('exportThis')}
      footer={<Button onClick={onClose}>{done ? common('close') : common('cancel')}</Button>}
    >
      <p role="status">
        {done ? t('exported', { size: bytes(read) }) : t('exporting', { size: bytes(read), count: expected ?? 0 })}
      </p>
      {!done && !error && <progress aria-label={t('export')} className="h-1.5 w-full accent-(--c-accent)" />}
      <p className="text-sm text-dim">{t('redactedNote')}</p>
      {left.length > 0 && <p className="text-sm text-warn">{t('exportHas', { values: left.map(harmless).join(', ') })}</p>}
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}

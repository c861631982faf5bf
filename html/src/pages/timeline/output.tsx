import { useEffect, useState } from 'react';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { WrapText } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { outputQuery } from '@/api/queries';
import type { Operation, OutputPiece } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { useStored } from '@/lib/stored';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Select } from '@/ui/field';
import { PlainText } from '@/ui/plain-text';

const STREAMS = ['both', 'stdout', 'stderr'] as const;
type Stream = (typeof STREAMS)[number];
const POLL = 1_000;

/** Consecutive pieces of one stream as one text; characters cut between pieces are whole again. */
function texts(items: OutputPiece[]): { stream: string; text: string; key: number }[] {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const encoder = new TextEncoder();
  const out: { stream: string; text: string; key: number }[] = [];

  for (const piece of items) {
    const bytes = piece.text !== undefined
      ? encoder.encode(piece.text)
      : Uint8Array.from(atob(piece.data_base64 ?? ''), (c) => c.charCodeAt(0));
    const text = decoders[piece.stream].decode(bytes, { stream: true });
    const last = out.at(-1);

    if (last?.stream === piece.stream) {
      last.text += text;
    } else {
      out.push({ stream: piece.stream, text, key: piece.n });
    }
  }

  return out;
}

/** What it wrote, as far as it has been loaded; grows while it runs. */
export function Output({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { bytes } = useFormat();
  const client = useQueryClient();
  const [stream, setStream] = useState<Stream>('both');
  const [wrap, setWrap] = useStored('wrap', ['on', 'off'], 'on');
  const options = outputQuery(o.id, stream, o.sandbox_id ?? undefined);
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery(options);
  const running = o.status === 'started';

  useEffect(() => {
    if (!running) {
      void client.invalidateQueries({ queryKey: ['output', o.id] });
      return undefined;
    }

    const timer = setInterval(() => void refetch(), POLL);
    return () => clearInterval(timer);
  }, [running, client, o.id, refetch]);

  const items = (data?.pages ?? []).flatMap((p) => p.items);
  const cut = (o.output?.stdout_total_bytes ?? 0) + (o.output?.stderr_total_bytes ?? 0)
    - (o.output?.stdout_bytes ?? 0) - (o.output?.stderr_bytes ?? 0);

  return (
    <div className="flex min-h-full flex-col">
      <div className="flex items-center gap-2 border-b px-3 py-1.5">
        <Select aria-label={t('stream')} value={stream} className="h-7" onChange={(e) => setStream(e.target.value as Stream)}>
          {STREAMS.map((s) => <option key={s} value={s}>{t(`streams.${s}`)}</option>)}
        </Select>
        <Button size="sm" aria-pressed={wrap === 'on'} aria-label={t('wrap')} className={cx(wrap === 'on' && 'bg-tint')}
          icon={<WrapText size={14} aria-hidden />} onClick={() => setWrap(wrap === 'on' ? 'off' : 'on')}
        />
        <span className="flex-1" />
        {o.output && <span className="text-xs text-dim">{bytes(o.output.stdout_bytes + o.output.stderr_bytes)}</span>}
      </div>
      {cut > 0 && <p className="border-b bg-warn-tint px-3 py-1 text-xs">{t('cut', { size: bytes(cut) })}</p>}
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {isPending && <Skeleton className="p-3" />}
      {data && items.length === 0 && (
        <p className="px-3 py-4 text-sm text-dim">{running ? t('noOutputYet') : t('noOutput')}</p>
      )}
      {items.length > 0 && <div className="h-2 shrink-0" />}
      {texts(items).map((p) => (
        <PlainText key={p.key} text={p.text.replace(/\n$/, '')} wrap={wrap === 'on'} label={p.stream}
          className={cx('shrink-0 border-l-2 py-0!', p.stream === 'stderr' ? 'border-bad' : 'border-transparent')}
        />
      ))}
      {hasNextPage && (
        <div className="p-3"><Button size="sm" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('moreOutput')}</Button></div>
      )}
    </div>
  );
}

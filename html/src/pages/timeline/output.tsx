import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { ArrowDownToLine, ChevronDown, ChevronUp, Download, Palette, WrapText } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { operationsRoute, outputQuery } from '@/api/queries';
import { apiUrl, request } from '@/api/request';
import type { Operation, OutputPiece } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { readAll, save } from '@/lib/save';
import { useStored } from '@/lib/stored';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Input, Select } from '@/ui/field';
import { Marked, PlainText } from '@/ui/plain-text';
import { toastError } from '@/ui/toast';
import { Colours, type Span } from './ansi';
import { useFound } from './found';

const STREAMS = ['both', 'apart', 'stdout', 'stderr'] as const;
type Shown = (typeof STREAMS)[number];
type Stream = 'both' | 'stdout' | 'stderr';
const POLL = 1_000;

interface Block {
  stream: 'stdout' | 'stderr';
  text: string;
  key: number;
}

/** Consecutive pieces of one stream as one text; characters cut between pieces are whole again. */
function texts(items: OutputPiece[]): Block[] {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const encoder = new TextEncoder();
  const out: Block[] = [];

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

/** Spans as they are to look, with what would act as signs. */
export const draw = (spans: Span[]): ReactNode => spans.map((s, i) => (
  s.look || s.style?.color || s.style?.backgroundColor
    ? <span key={i} className={s.look} style={s.style}><Marked text={s.text} /></span>
    : <Marked key={i} text={s.text} />
));

/** What one stream wrote, or both as they came, as far as it has been loaded. */
function Written({ operation: o, stream, wrap, coloured, follow }:
  { operation: Operation; stream: Stream; wrap: boolean; coloured: boolean; follow: boolean }) {
  const { t } = useTranslation('timeline');
  const options = outputQuery(o.id, stream, o.sandbox_id ?? undefined);
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery(options);
  const running = o.status === 'started';
  const end = useRef<HTMLDivElement>(null);

  // while it runs, and once when it has ended
  useEffect(() => {
    if (!running) {
      void refetch();
      return undefined;
    }

    const timer = setInterval(() => void refetch(), POLL);
    return () => clearInterval(timer);
  }, [running, refetch]);

  const blocks = useMemo(() => {
    const colours = { stdout: new Colours(), stderr: new Colours() };

    return texts((data?.pages ?? []).flatMap((p) => p.items)).map((b) => ({
      ...b, drawn: coloured ? draw(colours[b.stream].read(b.text.replace(/\n$/, ''))) : undefined,
    }));
  }, [data, coloured]);

  useEffect(() => {
    if (follow && running) {
      end.current?.scrollIntoView({ block: 'end' });
    }
  }, [follow, running, blocks]);

  return (
    <div className="min-w-0 flex-1">
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {isPending && <Skeleton className="p-3" />}
      {data && blocks.length === 0 && (
        <p className="px-3 py-4 text-sm text-dim">{running ? t('noOutputYet') : t('noOutput')}</p>
      )}
      {blocks.length > 0 && <div className="h-2 shrink-0" />}
      {blocks.map((b) => (
        <PlainText key={b.key} text={b.text.replace(/\n$/, '')} drawn={b.drawn} wrap={wrap} label={b.stream}
          className={cx('shrink-0 border-l-2 py-0! [content-visibility:auto]', b.stream === 'stderr' ? 'border-bad' : 'border-transparent')}
        />
      ))}
      {hasNextPage && (
        <div className="p-3"><Button size="sm" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('moreOutput')}</Button></div>
      )}
      <div ref={end} />
    </div>
  );
}

function Toggle({ on, label, icon, onChange }: { on: boolean; label: string; icon: ReactNode; onChange(on: boolean): void }) {
  return (
    <Button size="sm" aria-pressed={on} aria-label={label} className={cx(on && 'bg-tint')} icon={icon} onClick={() => onChange(!on)} />
  );
}

/** What it wrote; grows while it runs. */
export function Output({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { bytes, count } = useFormat();
  const [shown, setShown] = useState<Shown>('both');
  const [wrap, setWrap] = useStored('wrap', ['on', 'off'], 'on');
  const [colours, setColours] = useStored('colours', ['on', 'off'], 'on');
  const [follow, setFollow] = useState(true);
  const [sought, setSought] = useState('');
  const [loading, setLoading] = useState(-1);
  const box = useRef<HTMLDivElement>(null);
  const found = useFound(box, sought);
  const cut = (o.output?.stdout_total_bytes ?? 0) + (o.output?.stderr_total_bytes ?? 0)
    - (o.output?.stdout_bytes ?? 0) - (o.output?.stderr_bytes ?? 0);

  const download = async () => {
    const stream = shown === 'apart' ? 'both' : shown;

    setLoading(0);
    try {
      const response = await request(apiUrl(`${operationsRoute(o.sandbox_id ?? undefined)}/${o.id}/output`, { format: 'raw', stream }));
      save(await readAll(response, setLoading), `${o.id}.${stream === 'both' ? 'output' : stream}`);
    } finally {
      setLoading(-1);
    }
  };

  const icon = { size: 14, 'aria-hidden': true } as const;
  const one = { operation: o, wrap: wrap === 'on', coloured: colours === 'on', follow };

  return (
    <div className="flex min-h-full flex-col">
      <div className="sticky top-0 z-10 flex flex-wrap items-center gap-1.5 border-b bg-bg px-3 py-1.5">
        <Select aria-label={t('stream')} value={shown} className="h-7" onChange={(e) => setShown(e.target.value as Shown)}>
          {STREAMS.map((s) => <option key={s} value={s}>{t(`streams.${s}`)}</option>)}
        </Select>
        <Toggle on={wrap === 'on'} label={t('wrap')} icon={<WrapText {...icon} />} onChange={(on) => setWrap(on ? 'on' : 'off')} />
        <Toggle on={colours === 'on'} label={t('colours')} icon={<Palette {...icon} />} onChange={(on) => setColours(on ? 'on' : 'off')} />
        {o.status === 'started' && <Toggle on={follow} label={t('follow')} icon={<ArrowDownToLine {...icon} />} onChange={setFollow} />}
        <Input aria-label={t('find')} placeholder={t('find')} value={sought} className="h-7 w-36! flex-1" onChange={(e) => setSought(e.target.value)}
          onKeyDown={(e) => {
            if (e.key === 'Enter') {
              found.go(e.shiftKey ? -1 : 1);
            } else if (e.key === 'Escape') {
              setSought('');
            }
          }}
        />
        {sought !== '' && (
          <>
            <span role="status" className="text-xs text-dim tabular-nums">{found.count === 0 ? '0' : `${found.at + 1}/${count(found.count)}`}</span>
            <Button size="sm" look="quiet" aria-label={t('findBack')} icon={<ChevronUp {...icon} />} onClick={() => found.go(-1)} />
            <Button size="sm" look="quiet" aria-label={t('findNext')} icon={<ChevronDown {...icon} />} onClick={() => found.go(1)} />
          </>
        )}
        <span className="text-xs text-dim tabular-nums">
          {loading > 0 ? bytes(loading) : o.output && bytes(o.output.stdout_bytes + o.output.stderr_bytes)}
        </span>
        <Button size="sm" look="quiet" busy={loading >= 0} aria-label={t('download')} icon={<Download {...icon} />}
          onClick={() => void download().catch(toastError)}
        />
      </div>
      {cut > 0 && <p className="border-b bg-warn-tint px-3 py-1 text-xs">{t('cut', { size: bytes(cut) })}</p>}
      <div ref={box} className="flex min-w-0 flex-1 max-sm:flex-col sm:[&>*+*]:border-l">
        {shown === 'apart'
          ? (['stdout', 'stderr'] as const).map((s) => <Written key={s} {...one} stream={s} />)
          : <Written key={shown} {...one} stream={shown} />}
      </div>
    </div>
  );
}

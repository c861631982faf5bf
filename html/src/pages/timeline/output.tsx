import { memo, type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { ArrowDownToLine, ChevronDown, ChevronsDown, ChevronUp, Download, Palette, WrapText } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { operationsRoute } from '@/api/queries';
import { apiUrl, request } from '@/api/request';
import type { Operation } from '@/api/types';
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
import type { Span } from './ansi';
import { scrollerOf, useFound } from './found';
import { type Block, type Stream, useWritten } from './written';

const STREAMS = ['both', 'apart', 'stdout', 'stderr'] as const;
type Shown = (typeof STREAMS)[number];

// a failure begins at its end, if that is not far
const NEAR_END = 4 * 1024 * 1024;
const AT_END = 24;
const LINE = 20;

/** Spans as they are to look, with what would act as signs. */
export const draw = (spans: Span[]): ReactNode => spans.map((s, i) => (
  s.look || s.style?.color || s.style?.backgroundColor
    ? <span key={i} className={s.look} style={s.style}><Marked text={s.text} /></span>
    : <Marked key={i} text={s.text} />
));

/** Text that is drawn anew when it has grown, and only then. */
const Piece = memo(function Piece({ block: b, first, wrap, coloured }: { block: Block; first: boolean; wrap: boolean; coloured: boolean }) {
  const drawn = useMemo(() => (coloured ? draw(b.spans) : undefined), [b, coloured]);

  return (
    <div className={cx('shrink-0 border-l-2 [content-visibility:auto]', b.stream === 'stderr' ? 'border-bad' : 'border-transparent')}
      style={{ containIntrinsicBlockSize: `auto ${b.lines * LINE}px` }}
    >
      <PlainText text={b.text.replace(/\n$/, '')} drawn={drawn} wrap={wrap} bare={!first && wrap} label={first ? b.stream : undefined} className="px-3 py-0!" />
    </div>
  );
});

/** What one stream wrote, or both as they came, as far as it has been loaded. */
function Streamed({ operation: o, stream, wrap, coloured, all, onGrown, onWhole }: {
  operation: Operation; stream: Stream; wrap: boolean; coloured: boolean; all: boolean; onGrown(): void; onWhole(whole: boolean): void;
}) {
  const { t } = useTranslation('timeline');
  const { blocks, asked, more, over, error, asks, go } = useWritten(o, stream, all);

  useLayoutEffect(onGrown, [blocks, onGrown]);
  useEffect(() => onWhole(asked && !more), [asked, more, onWhole]);

  return (
    <div className="min-w-0 flex-1">
      {error !== null && <div className="p-3"><ErrorNote error={error} onRetry={() => void go()} /></div>}
      {!asked && error === null && <Skeleton className="p-3" />}
      {asked && blocks.length === 0 && !more && (
        <p className="px-3 py-4 text-sm text-dim">{over ? t('noOutput') : t('noOutputYet')}</p>
      )}
      {blocks.length > 0 && <div className="h-2 shrink-0" />}
      {blocks.map((b, i) => (
        <Piece key={b.key} block={b} first={blocks[i - 1]?.stream !== b.stream} wrap={wrap} coloured={coloured} />
      ))}
      {more && error === null && (
        <div className="p-3"><Button size="sm" busy={asks} onClick={() => void go()}>{t('moreOutput')}</Button></div>
      )}
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
  const [shown, setShown] = useStored<Shown>('stream', STREAMS, 'both');
  const [wrap, setWrap] = useStored('wrap', ['on', 'off'], 'on');
  const [colours, setColours] = useStored('colours', ['on', 'off'], 'on');
  const [follow, setFollow] = useStored('follow', ['on', 'off'], 'on');
  const running = o.status === 'started';
  const size = (o.output?.stdout_bytes ?? 0) + (o.output?.stderr_bytes ?? 0);
  // its end is what is looked at, and stays in view until one scrolls up
  const [atEnd, setAtEnd] = useState(running ? follow === 'on' : (o.status === 'failed' || o.status === 'timeout') && size <= NEAR_END);
  const [whole, setWhole] = useState<Partial<Record<Stream, boolean>>>({});
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
  const one = { operation: o, wrap: wrap === 'on', coloured: colours === 'on', all: atEnd || sought !== '' };
  const streams: Stream[] = shown === 'apart' ? ['stdout', 'stderr'] : [shown];
  const all = streams.every((s) => whole[s]);
  const following = useRef(atEnd);

  following.current = atEnd;

  const toEnd = useCallback(() => {
    const scroller = scrollerOf(box.current);

    if (following.current && scroller) {
      scroller.scrollTop = scroller.scrollHeight;
    }
  }, []);

  const onWhole = useMemo(() => {
    const of = (s: Stream) => (is: boolean) => setWhole((now) => (now[s] === is ? now : { ...now, [s]: is }));

    return { both: of('both'), stdout: of('stdout'), stderr: of('stderr') };
  }, []);

  // who scrolls up wants to read there; who comes to the end again follows it
  useEffect(() => {
    const scroller = scrollerOf(box.current);
    let top = scroller?.scrollTop ?? 0;
    let height = scroller?.scrollHeight ?? 0;

    const onScroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = scroller!;

      if (scrollTop + clientHeight >= scrollHeight - AT_END) {
        if (running) {
          setAtEnd(true);
        }
      } else if (scrollTop < top - 1 && scrollHeight >= height) {
        setAtEnd(false);
      }
      top = scrollTop;
      height = scrollHeight;
    };

    scroller?.addEventListener('scroll', onScroll, { passive: true });
    return () => scroller?.removeEventListener('scroll', onScroll);
  }, [running]);

  // what was not drawn yet may be higher than was thought
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);

    toEnd();
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [toEnd, atEnd]);

  return (
    <div className="flex min-h-full flex-col">
      <div className="sticky top-0 z-10 flex flex-wrap items-center gap-1.5 border-b bg-bg px-3 py-1.5">
        <Select aria-label={t('stream')} value={shown} className="h-7" onChange={(e) => setShown(e.target.value as Shown)}>
          {STREAMS.map((s) => <option key={s} value={s}>{t(`streams.${s}`)}</option>)}
        </Select>
        <Toggle on={wrap === 'on'} label={t('wrap')} icon={<WrapText {...icon} />} onChange={(on) => setWrap(on ? 'on' : 'off')} />
        <Toggle on={colours === 'on'} label={t('colours')} icon={<Palette {...icon} />} onChange={(on) => setColours(on ? 'on' : 'off')} />
        {running
          ? <Toggle on={atEnd} label={t('follow')} icon={<ArrowDownToLine {...icon} />} onChange={(on) => { setAtEnd(on); setFollow(on ? 'on' : 'off'); }} />
          : (
            <Button size="sm" aria-label={t('toEnd')} busy={atEnd && !all} icon={<ChevronsDown {...icon} />}
              onClick={() => { setAtEnd(true); following.current = true; toEnd(); }}
            />
          )}
        <Input aria-label={t('find')} placeholder={t('find')} value={sought} className="h-7 w-36! flex-1" onChange={(e) => setSought(e.target.value)}
          onKeyDown={(e) => {
            if (e.nativeEvent.isComposing) {
              return;
            }
            if (e.key === 'Enter') {
              found.go(e.shiftKey ? -1 : 1);
            } else if (e.key === 'Escape') {
              setSought('');
            }
          }}
        />
        {sought !== '' && (
          <>
            <span role="status" className="text-xs text-dim tabular-nums">{found.count === 0 && all ? '0' : `${found.count && found.at + 1}/${count(found.count)}${all && !found.most ? '' : '+'}`}</span>
            <Button size="sm" look="quiet" aria-label={t('findBack')} icon={<ChevronUp {...icon} />} onClick={() => found.go(-1)} />
            <Button size="sm" look="quiet" aria-label={t('findNext')} icon={<ChevronDown {...icon} />} onClick={() => found.go(1)} />
          </>
        )}
        <span className="text-xs text-dim tabular-nums">
          {loading > 0 ? bytes(loading) : o.output && bytes(size)}
        </span>
        <Button size="sm" look="quiet" busy={loading >= 0} aria-label={t('download')} icon={<Download {...icon} />}
          onClick={() => void download().catch(toastError)}
        />
      </div>
      {cut > 0 && <p className="border-b bg-warn-tint px-3 py-1 text-xs">{t('cut', { size: bytes(cut) })}</p>}
      <div ref={box} className="flex min-w-0 flex-1 max-sm:flex-col sm:[&>*+*]:border-l">
        {streams.map((s) => <Streamed key={s} {...one} stream={s} onGrown={toEnd} onWhole={onWhole[s]} />)}
      </div>
    </div>
  );
}

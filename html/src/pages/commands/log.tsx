import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { ArrowDownToLine, WrapText } from 'lucide-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { useStored } from '@/lib/stored';
import { Colours } from '@/pages/timeline/ansi';
import { draw } from '@/pages/timeline/output';
import { Button } from '@/ui/button';
import { PlainText } from '@/ui/plain-text';
import type { Line } from './runs';

const HEIGHT = 20;
const NEAR = 24;
const LONGEST = 20_000;

function LogLine({ text, wrap }: { text: string; wrap: boolean }) {
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
  const drawn = useMemo(() => draw(new Colours().read(shown)), [shown]);

  return <PlainText bare wrap={wrap} className="overflow-visible! min-h-5" text={shown} drawn={drawn} />;
}

/** Lines as they come: the end is in view until one scrolls away from it. */
export function Log({ lines, children, empty }: { lines: readonly Line[]; children?: ReactNode; empty: string }) {
  const { t } = useTranslation('commands');
  const box = useRef<HTMLDivElement>(null);
  const seen = useRef({ top: 0, height: 0 });
  const [kept, keep] = useStored('follow', ['on', 'off'], 'on');
  const [follow, setFollow] = useState(kept === 'on');
  const [wrap, setWrap] = useStored('wrap', ['on', 'off'], 'on');
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    getItemKey: (i) => lines[i]!.n,
    overscan: 20,
  });
  const total = virtual.getTotalSize();

  useEffect(() => virtual.measure(), [virtual, wrap]);

  useEffect(() => {
    if (follow && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [follow, total, lines.length]);

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex items-center gap-2 border-b px-3 py-1.5">
        {children}
        <span className="flex-1" />
        <Button size="sm" aria-pressed={wrap === 'on'} aria-label={t('wrap')} className={cx(wrap === 'on' && 'bg-tint')}
          icon={<WrapText size={14} aria-hidden />} onClick={() => setWrap(wrap === 'on' ? 'off' : 'on')}
        />
        <Button size="sm" aria-pressed={follow} aria-label={t('follow')} className={cx(follow && 'bg-tint')}
          icon={<ArrowDownToLine size={14} aria-hidden />} onClick={() => { setFollow(!follow); keep(follow ? 'off' : 'on'); }}
        />
      </div>
      <div ref={box} role="region" aria-label={t('output')} tabIndex={0}
        className="min-h-0 flex-1 overflow-auto py-2 [overflow-anchor:none]"
        onScroll={({ currentTarget: b }) => {
          const { top, height } = seen.current;

          // by wheel, key, finger or bar; lines that turn out lower move it too
          if (b.scrollHeight - b.scrollTop - b.clientHeight < NEAR) {
            setFollow(true);
          } else if (b.scrollTop < top - 1 && b.scrollHeight >= height) {
            setFollow(false);
          }
          seen.current = { top: b.scrollTop, height: b.scrollHeight };
        }}
      >
        {lines.length === 0 && <p className="px-3 text-sm text-dim">{empty}</p>}
        <div className="relative w-full" style={{ height: total }}>
          {virtual.getVirtualItems().map((v) => {
            const line = lines[v.index]!;

            return (
              <div key={v.key} ref={virtual.measureElement} data-index={v.index} data-stream={line.stream}
                className={cx('absolute left-0 top-0 border-l-2 px-3', wrap === 'on' ? 'w-full' : 'w-max min-w-full',
                  line.stream === 'stderr' ? 'border-bad' : 'border-transparent')}
                style={{ transform: `translateY(${v.start}px)` }}
              >
                {line.stream === 'stderr' && <span className="sr-only">stderr: </span>}
                <LogLine text={line.text} wrap={wrap === 'on'} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

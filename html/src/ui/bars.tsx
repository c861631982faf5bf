// Bars over a time: how much there was, and how much of it failed.

import { type PointerEvent, useRef, useState } from 'react';
import type { Histogram } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';

const DRAGGED = 4;
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

interface Props {
  of: Histogram;
  label: string;
  /** What a bar says when it is pointed at. */
  said(from: string, count: number, failed: number): string;
  /** A stretch was chosen. */
  onZoom(from: string, to: string): void;
  /** Back to what it was before. */
  onBack(): void;
  className?: string;
}

/** Drawn as one picture: any number of bars is one path, and no bar is a place to stop at. */
export function Bars({ of, label, said, onZoom, onBack, className }: Props) {
  const { clockShort, clockSeconds, day } = useFormat();
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const n = of.counts.length;
  const [from, to] = [Date.parse(of.from), Date.parse(of.to)];
  const most = Math.max(1, ...of.counts.map((c) => c.total));
  const labels = to - from > 2 * DAY ? day : to - from > 10 * MINUTE ? clockShort : clockSeconds;

  const place = (e: PointerEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - left) / width));
  };

  const at = (share: number) => new Date(Math.round(from + share * (to - from))).toISOString();

  const end = (e: PointerEvent) => {
    const [a, b] = drag ?? [0, 0];

    setDrag(null);
    if (Math.abs(a - b) * box.current!.clientWidth >= DRAGGED) {
      onZoom(at(Math.min(a, b)), at(Math.max(a, b)));
    }
    box.current!.releasePointerCapture(e.pointerId);
  };

  // the least that can be seen is a fortieth
  const tall = (c: number) => (c === 0 ? 0 : Math.max(2.5, (c / most) * 100));
  const path = (height: (c: Histogram['counts'][number]) => number) => of.counts
    .map((c, i) => { const h = height(c); return h > 0 ? `M${i + 0.08} 100v${-h}h.84v${h}z` : ''; }).join('');
  const bar = over === null ? null : of.counts[over];

  return (
    <div className={cx('select-none', className)}>
      <div ref={box} role="img" aria-label={label} className="relative h-full cursor-crosshair touch-none"
        title={bar ? said(at(over! / n), bar.total, bar.failed) : undefined}
        onPointerDown={(e) => {
          if (e.button === 0) {
            box.current!.setPointerCapture(e.pointerId);
            setDrag([place(e), place(e)]);
          }
        }}
        onPointerMove={(e) => {
          setOver(Math.min(n - 1, Math.floor(place(e) * n)));
          setDrag((d) => d && [d[0], place(e)]);
        }}
        onPointerUp={end} onPointerCancel={() => setDrag(null)} onPointerLeave={() => setOver(null)}
        onDoubleClick={onBack}
      >
        <svg viewBox={`0 0 ${n} 100`} preserveAspectRatio="none" aria-hidden className="h-full w-full">
          {over !== null && <rect x={over} y={0} width={1} height={100} className="fill-sunk" />}
          <path d={path((c) => tall(c.total))} className="fill-accent" />
          <path d={path((c) => tall(c.failed))} className="fill-bad" />
          <path d={`M0 99.5h${n}`} className="stroke-line" strokeWidth={1} vectorEffect="non-scaling-stroke" />
        </svg>
        {drag && (
          <span aria-hidden className="absolute inset-y-0 border-x border-accent bg-accent/15"
            style={{ left: `${Math.min(...drag) * 100}%`, width: `${Math.abs(drag[0] - drag[1]) * 100}%` }}
          />
        )}
      </div>
      <div aria-hidden className="flex justify-between text-2xs text-dim tabular-nums">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share} className={share === 0.25 || share === 0.75 ? 'max-sm:hidden' : ''}>{labels(at(share))}</span>
        ))}
      </div>
    </div>
  );
}

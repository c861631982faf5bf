// A list that is a window on something longer: items come and go at both ends,
// and what is looked at stays where it is.  At its end it follows what comes,
// until the reader scrolls up.

import { type ReactNode, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { cx } from '@/lib/cx';
import { optionId } from './virtual-list';

export interface WindowListHandle {
  /** Brings an item into view; in the middle when it was far away. */
  reveal(key: string): void;
  toEnd(): void;
  /** Gives it the keyboard. */
  focus(): void;
}

interface Props<T> {
  items: readonly T[];
  /** Exact height of an item: nothing is measured. */
  height(item: T): number;
  itemKey(item: T): string;
  render(item: T): ReactNode;
  label: string;
  /** The item that has the keyboard; told to those who do not see it. */
  active?: string | null;
  /** An end is near: load more. */
  onNear(end: 'older' | 'newer'): void;
  /** Does nothing come behind the last item?  Only then the list follows. */
  ended: boolean;
  /** The end is in view, and stays there; or no more. */
  onFollow(on: boolean): void;
  /** Changes when the items are others, not the same ones moved. */
  epoch: number;
  /** Where another list begins to be read; at its end without it. */
  startAt?: string | undefined;
  className?: string;
  ref?: Ref<WindowListHandle>;
}

const OVERSCAN = 10;
const NEAR = 60;
const AT_END = 8;

export function WindowList<T>({
  items, height, itemKey, render, label, active, onNear, ended, onFollow, epoch, startAt, className, ref,
}: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [[first, last], setRange] = useState<[number, number]>([0, 0]);
  const [room, setRoom] = useState(0);

  // offsets[i] is where item i begins, offsets[n] the end of all
  const offsets = useMemo(() => {
    const all = new Float64Array(items.length + 1);
    items.forEach((item, i) => { all[i + 1] = all[i]! + height(item); });
    return all;
  }, [items, height]);
  const total = offsets[items.length]!;

  const state = useRef({ follow: true, top: 0, anchors: [] as { key: string; at: number }[], epoch: -1 });

  const indexAt = useCallback((y: number) => {
    let [lo, hi] = [0, offsets.length - 2];

    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;

      if (offsets[mid]! <= y) {
        lo = mid;
      } else {
        hi = mid - 1;
      }
    }

    return Math.max(lo, 0);
  }, [offsets]);

  /** What is in view now, and by what it will be found again. */
  const look = useCallback(() => {
    if (box.current === null) {
      return;     // hidden, while something on the page is still on its way
    }

    const { scrollTop, clientHeight } = box.current;
    const from = indexAt(scrollTop);
    const to = indexAt(scrollTop + clientHeight);

    state.current.top = scrollTop;
    state.current.anchors = items.slice(from, to + 1).map((item, i) => ({ key: itemKey(item), at: offsets[from + i]! - scrollTop }));

    const next: [number, number] = [Math.max(0, from - OVERSCAN), Math.min(items.length - 1, to + OVERSCAN)];
    setRange((now) => (now[0] === next[0] && now[1] === next[1] ? now : next));

    if (items.length > 0 && from < NEAR) {
      onNear('older');
    }
    if (items.length > 0 && to >= items.length - NEAR) {
      onNear('newer');
    }
  }, [indexAt, items, itemKey, offsets, onNear]);

  const setFollow = useCallback((on: boolean) => {
    if (state.current.follow !== on) {
      state.current.follow = on;
      onFollow(on);
    }
  }, [onFollow]);

  const onScroll = () => {
    if (box.current === null) {
      return;
    }

    const { scrollTop, clientHeight, scrollHeight } = box.current;

    if (ended && scrollTop + clientHeight >= scrollHeight - AT_END) {
      setFollow(true);
    } else if (scrollTop < state.current.top) {
      setFollow(false);
    }

    look();
  };

  // before it is painted: what was looked at stays where it was
  useLayoutEffect(() => {
    const b = box.current!;
    const s = state.current;
    const at = new Map(items.map((item, i) => [itemKey(item), i]));

    if (s.epoch !== epoch) {
      const start = startAt === undefined ? undefined : at.get(startAt);

      s.epoch = epoch;
      if (start === undefined) {
        setFollow(ended);
        b.scrollTop = b.scrollHeight;
      } else {
        setFollow(false);
        b.scrollTop = offsets[start]! - b.clientHeight / 2;
      }
    } else if (s.follow && ended) {
      b.scrollTop = b.scrollHeight;
    } else {
      const kept = s.anchors.find((a) => at.has(a.key));

      if (kept) {
        const top = offsets[at.get(kept.key)!]! - kept.at;

        if (Math.abs(top - b.scrollTop) >= 1) {
          b.scrollTop = top;
        }
      }
    }

    look();
  }, [items, offsets, epoch, startAt, itemKey, look, setFollow, ended, room]);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setRoom(Math.round(entry!.contentRect.height)));

    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useImperativeHandle(ref, () => ({
    reveal: (key) => {
      const i = items.findIndex((item) => itemKey(item) === key);
      const b = box.current!;

      if (i < 0) {
        return;
      }

      const [top, bottom] = [offsets[i]!, offsets[i + 1]!];

      if (top < b.scrollTop || bottom > b.scrollTop + b.clientHeight) {
        const far = bottom < b.scrollTop - b.clientHeight || top > b.scrollTop + 2 * b.clientHeight;

        b.scrollTop = far ? top - b.clientHeight / 2 : top < b.scrollTop ? top : bottom - b.clientHeight;
      }
    },
    toEnd: () => {
      setFollow(true);
      box.current!.scrollTop = box.current!.scrollHeight;
    },
    focus: () => box.current?.focus({ preventScroll: true }),
  }), [items, itemKey, offsets, setFollow]);

  const seen = items.slice(first, last + 1);

  // opaque: what is seen of it is moved when it scrolls, and not drawn anew with what lies behind
  return (
    <div
      ref={box} role="listbox" tabIndex={0} aria-label={label}
      aria-activedescendant={active && seen.some((item) => itemKey(item) === active) ? optionId(active) : undefined}
      className={cx('@container min-h-0 flex-1 overflow-y-auto bg-bg [overflow-anchor:none]', className)}
      onScroll={onScroll}
    >
      <div role="presentation" className="relative w-full" style={{ height: total }}>
        {seen.map((item, i) => (
          <div key={itemKey(item)} role="presentation" className="absolute inset-x-0 top-0 [contain:strict]"
            style={{ height: offsets[first + i + 1]! - offsets[first + i]!, transform: `translateY(${offsets[first + i]!}px)` }}
          >
            {render(item)}
          </div>
        ))}
      </div>
    </div>
  );
}

import { type ReactNode, type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { cx } from '@/lib/cx';

export interface VirtualListHandle {
  scrollTo(index: number): void;
}

interface Props<T> {
  items: readonly T[];
  /** Exact height of an item: nothing is measured. */
  height(item: T, index: number): number;
  itemKey(item: T): string;
  render(item: T, index: number): ReactNode;
  label: string;
  /** The item that has the keyboard; told to those who do not see it. */
  active?: string | null;
  /** The end is near: load more. */
  onEnd?(): void;
  /** Is the first item in view? */
  onTop?(top: boolean): void;
  className?: string;
  ref?: Ref<VirtualListHandle>;
}

export const optionId = (key: string) => `option-${key}`;

/** A list of any length; only what is seen is there.  Items are options (role, aria-selected, id by optionId). */
export function VirtualList<T>({
  items, height, itemKey, render, label, active, onEnd, onTop, className, ref,
}: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (i) => height(items[i]!, i),
    getItemKey: (i) => itemKey(items[i]!),
    overscan: 12,
  });

  const heights = items.length === 0 ? '' : `${items.length} ${itemKey(items[0]!)}`;
  useEffect(() => virtual.measure(), [virtual, heights]);

  useImperativeHandle(ref, () => ({
    scrollTo: (index) => virtual.scrollToIndex(index, { align: 'auto' }),
  }), [virtual]);

  const seen = virtual.getVirtualItems();
  const last = seen.at(-1)?.index ?? 0;
  const near = items.length > 0 && last >= items.length - 20;

  useEffect(() => {
    if (near) {
      onEnd?.();
    }
  }, [near, items.length, onEnd]);

  return (
    <div
      ref={box} role="listbox" tabIndex={0} aria-label={label}
      aria-activedescendant={active ? optionId(active) : undefined}
      className={cx('@container min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]', className)}
      onScroll={(e) => onTop?.(e.currentTarget.scrollTop < 8)}
    >
      <div role="presentation" className="relative w-full" style={{ height: virtual.getTotalSize() }}>
        {seen.map((v) => (
          <div key={v.key} role="presentation" className="absolute inset-x-0 top-0"
            style={{ height: v.size, transform: `translateY(${v.start}px)` }}
          >
            {render(items[v.index]!, v.index)}
          </div>
        ))}
      </div>
    </div>
  );
}

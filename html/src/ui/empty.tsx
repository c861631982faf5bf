import type { ReactNode } from 'react';
import type { LucideIcon } from 'lucide-react';
import { cx } from '@/lib/cx';

/** Nothing here: what would be, and what brings it. */
export function Empty({ icon: Icon, title, children }:
  { icon: LucideIcon; title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto grid max-w-2xl justify-items-center gap-2 px-4 py-12 text-center">
      <Icon size={28} strokeWidth={1.5} aria-hidden className="text-dim" />
      <p className="text-lg font-medium">{title}</p>
      {children && <div className="grid w-full gap-3 text-dim">{children}</div>}
    </div>
  );
}

/** Lines of something that is on its way. */
export function Skeleton({ lines = 3, className }: { lines?: number; className?: string }) {
  return (
    <div aria-hidden className={cx('grid gap-2', className)}>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} className="shimmer h-4" style={{ width: `${92 - ((i * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

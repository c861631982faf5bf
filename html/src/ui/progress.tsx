import { useFormat } from '@/lib/format';

/** How far something is. */
export function Progress({ label, value, max }: { label: string; value: number; max: number }) {
  const { percent } = useFormat();
  const part = max > 0 ? Math.min(value / max, 1) : 0;

  return (
    <div className="flex items-center gap-2">
      <div role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(part * 100)}
        className="h-1.5 min-w-16 flex-1 overflow-hidden rounded-sm bg-sunk"
      >
        <div className="h-full bg-accent" style={{ width: `${part * 100}%` }} />
      </div>
      <span className="w-12 text-right text-xs tabular-nums text-dim">{percent(Math.round(part * 100) / 100)}</span>
    </div>
  );
}

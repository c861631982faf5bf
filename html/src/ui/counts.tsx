import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import type { FacetValues } from '@/api/types';
import { useFormat } from '@/lib/format';
import { Skeleton } from './empty';
import { Recorded } from './plain-text';

const SHOWN = 8;

/** Counts by one property, the most frequent first; each leads to its records. */
export function Counts({ facet, to }: { facet: FacetValues | undefined; to(value: string): string }) {
  const { t } = useTranslation();
  const { count } = useFormat();

  if (!facet) {
    return <Skeleton className="p-3" />;
  }

  const shown = facet.values.slice(0, SHOWN);
  const rest = facet.other + facet.values.slice(SHOWN).reduce((sum, v) => sum + v.count, 0);
  const most = Math.max(1, ...shown.map((v) => v.count));

  if (shown.length === 0) {
    return <p className="px-3 py-4 text-sm text-dim">{t('nothingCounted')}</p>;
  }

  return (
    <ul className="py-1">
      {shown.map((v) => (
        <li key={v.value} className="relative grid h-7 grid-cols-[minmax(0,1fr)_30%_auto] items-center gap-3 px-3 hover:bg-raised">
          <Link to={to(v.value)} className="truncate after:absolute after:inset-0">
            <Recorded text={v.value} />
          </Link>
          <span aria-hidden className="h-1.5 rounded-full bg-sunk">
            <span className="block h-full rounded-full bg-accent" style={{ width: `${(v.count / most) * 100}%` }} />
          </span>
          <span className="min-w-8 text-right text-sm tabular-nums">{count(v.count)}</span>
        </li>
      ))}
      {rest > 0 && <li className="px-3 py-1 text-xs text-dim">{t('others', { count: rest })}</li>}
    </ul>
  );
}

/** The filters that an actor of a count (`type:id`) stands for. */
export function actorQuery(value: string): string {
  const at = value.indexOf(':');
  const [type, id] = [value.slice(0, at), value.slice(at + 1)];

  return `actor_type=${encodeURIComponent(type)}${id && `&actor=${encodeURIComponent(id)}`}`;
}

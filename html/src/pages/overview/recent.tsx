import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { sandboxesQuery } from '@/api/queries';
import { useFormat } from '@/lib/format';
import { Skeleton } from '@/ui/empty';
import { Recorded } from '@/ui/plain-text';
import { StateBadge } from '@/ui/status';
import { Time } from '@/ui/time';
import { Card } from '@/ui/card';

const SHOWN = 8;
// lists begin with those that were made last: an old one that works is among those that run
const NEWEST = 200;
const RUNNING = 500;

/** Sandboxes by when something last happened in them. */
export function RecentSandboxes() {
  const { t } = useTranslation('overview');
  const { count } = useFormat();
  const { data } = useInfiniteQuery(sandboxesQuery({ limit: NEWEST }));
  const more = (data?.pages[0]?.total ?? 0) > NEWEST;
  const { data: running } = useInfiniteQuery({ ...sandboxesQuery({ state: 'Running', limit: RUNNING }), enabled: more, refetchInterval: 30_000 });
  const known = new Map([...running?.pages ?? [], ...data?.pages ?? []].flatMap((p) => p.items).map((s) => [s.id, s]));
  const items = data && [...known.values()]
    .sort((a, b) => (b.last_activity_at ?? b.created_at ?? '').localeCompare(a.last_activity_at ?? a.created_at ?? ''))
    .slice(0, SHOWN);

  return (
    <Card title={t('recentSandboxes')} to="/sandboxes">
      {!items && <Skeleton className="p-3" />}
      {items?.length === 0 && <p className="px-3 py-4 text-sm text-dim">{t('noSandboxes')}</p>}
      <ul>
        {items?.map((s) => (
          <li key={s.id} className="relative flex h-8 items-center gap-2 px-3 hover:bg-raised not-first:border-t">
            <Link to={`/sandboxes/${encodeURIComponent(s.id)}/history`} className="min-w-0 flex-1 truncate after:absolute after:inset-0">
              <Recorded text={s.name} />
            </Link>
            <span className="shrink-0 text-xs text-dim tabular-nums max-sm:hidden">
              {t('operationsOf', { count: s.operations ?? 0 })}
              {!!s.failures && (
                <> · <Link to={`/sandboxes/${encodeURIComponent(s.id)}/history?status=failed&status=timeout`} className="relative z-10 text-bad hover:underline">
                  {t('failed', { count: s.failures, n: count(s.failures) })}
                </Link></>
              )}
            </span>
            <StateBadge state={s.state} className="w-20 shrink-0" />
            <span className="w-20 shrink-0 text-right text-xs text-dim">
              {s.last_activity_at && <Time at={s.last_activity_at} as="relative" />}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

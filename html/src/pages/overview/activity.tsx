// Operations over time: a bar for each slice of the range, aligned to the
// clock so that slices that are over are asked for once.

import { useEffect, useState } from 'react';
import { useQueries } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { api } from '@/api/request';
import type { OperationPage } from '@/api/types';
import { useFormat } from '@/lib/format';
import { Card } from '@/ui/card';
import type { Range } from './index';

const MINUTE = 60_000;
const SLICE: Record<Range, number> = {
  '1h': 3 * MINUTE, '6h': 15 * MINUTE, '24h': 60 * MINUTE, '7d': 8 * 60 * MINUTE, '30d': 24 * 60 * MINUTE,
};
const LENGTH: Record<Range, number> = {
  '1h': 60 * MINUTE, '6h': 360 * MINUTE, '24h': 1440 * MINUTE, '7d': 7 * 1440 * MINUTE, '30d': 30 * 1440 * MINUTE,
};

export function Activity({ range }: { range: Range }) {
  const { t } = useTranslation('overview');
  const { count, moment, clockShort, day } = useFormat();
  const [now, setNow] = useState(Date.now);
  const slice = SLICE[range];
  const end = Math.ceil(now / slice) * slice;
  const starts = Array.from({ length: LENGTH[range] / slice }, (_, i, n = LENGTH[range] / slice) => end - (n - i) * slice);

  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);

  const answers = useQueries({
    queries: starts.map((start) => {
      const over = start + slice < now - MINUTE;
      const params = {
        from: new Date(start).toISOString(), to: new Date(start + slice).toISOString(), facets: 1, limit: 1,
      };

      return {
        queryKey: ['activity', slice, start],
        queryFn: ({ signal }: { signal: AbortSignal }) => api<OperationPage>('operations', { params, signal }),
        staleTime: over ? Infinity : 10_000,
        refetchInterval: over ? false as const : 15_000,
      };
    }),
  });

  const bars = starts.map((start, i) => ({
    from: new Date(start).toISOString(),
    to: new Date(start + slice).toISOString(),
    total: answers[i]?.data?.facets?.total ?? 0,
    failed: answers[i]?.data?.facets?.failed ?? 0,
  }));
  const most = Math.max(1, ...bars.map((b) => b.total));
  const label = (iso: string) => (range === '7d' || range === '30d' ? day(iso) : clockShort(iso));

  return (
    <Card title={t('overTime')}>
      <div className="px-3 pt-3 pb-2">
        <ol className="flex h-24 items-stretch gap-px">
          {bars.map((b) => {
            const said = t('bar', { at: moment(b.from), count: b.total, failed: count(b.failed) });

            return (
              <li key={b.from} className="min-w-0 flex-1">
                <Link to={`/history?from=${b.from}&to=${b.to}`} aria-label={said} title={said}
                  className="flex h-full flex-col justify-end rounded-sm hover:bg-sunk"
                >
                  {b.failed > 0 && (
                    <span className="block bg-bad" style={{ height: `max(2px, ${(b.failed / most) * 100}%)` }} />
                  )}
                  <span className={b.total > 0 ? 'block bg-accent' : 'block bg-line'}
                    style={{ height: b.total > 0 ? `max(2px, ${((b.total - b.failed) / most) * 100}%)` : '1px' }}
                  />
                </Link>
              </li>
            );
          })}
        </ol>
        <div aria-hidden className="mt-1 flex justify-between text-2xs text-dim">
          <span>{label(bars[0]!.from)}</span>
          <span>{label(bars[Math.floor(bars.length / 2)]!.from)}</span>
          <span>{t('now')}</span>
        </div>
      </div>
    </Card>
  );
}

// Operations over time: a bar for each slice of the range, and each bar a way to its records.

import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { histogramQuery } from '@/api/histogram';
import { useFormat } from '@/lib/format';
import { Card } from '@/ui/card';
import { Skeleton } from '@/ui/empty';
import type { Range } from './index';

const BARS: Record<Range, number> = { '1h': 20, '6h': 24, '24h': 24, '7d': 21, '30d': 30 };

export function Activity({ range }: { range: Range }) {
  const { t } = useTranslation('overview');
  const { count, moment, clockShort, day } = useFormat();
  const { data, isPending } = useQuery(histogramQuery(undefined, { from: range }, BARS[range]));
  const from = data ? Date.parse(data.from) : 0;
  const bars = (data?.counts ?? []).map((b, i) => ({
    ...b,
    from: new Date(from + i * data!.step_ms).toISOString(),
    to: new Date(Math.min(from + (i + 1) * data!.step_ms, Date.parse(data!.to))).toISOString(),
  }));
  const most = Math.max(1, ...bars.map((b) => b.total));
  const label = (iso: string | undefined) => iso && (range === '7d' || range === '30d' ? day(iso) : clockShort(iso));

  return (
    <Card title={t('overTime')}>
      <div className="px-3 pt-3 pb-2">
        {data ? (
          <ol className="flex h-24 items-stretch gap-px">
            {bars.map((b, i) => {
              const said = t('bar', { at: moment(b.from), count: b.total, failed: count(b.failed) });

              return (
                <li key={i} className="min-w-0 flex-1">
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
        ) : <div className="h-24">{isPending && <Skeleton lines={4} />}</div>}
        <div aria-hidden className="mt-1 flex justify-between text-2xs text-dim">
          <span>{label(bars[0]?.from)}</span>
          <span>{label(bars[Math.floor(bars.length / 2)]?.from)}</span>
          <span>{t('now')}</span>
        </div>
      </div>
    </Card>
  );
}

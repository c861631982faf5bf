import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Radar } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { overviewQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import { choice, defineSearch } from '@/lib/search';
import { useFormat } from '@/lib/format';
import { useTitle } from '@/lib/title';
import { Card } from '@/ui/card';
import { ConnectSnippet } from '@/ui/connect';
import { actorQuery, Counts } from '@/ui/counts';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Select } from '@/ui/field';
import { Activity } from './activity';
import { OperationLines, RecorderCard } from './cards';
import { OwnSandboxes } from './own';
import { RecentSandboxes } from './recent';

export const RANGES = ['1h', '6h', '24h', '7d', '30d'] as const;
export type Range = (typeof RANGES)[number];

export const useOverviewSearch = defineSearch({ range: choice<Range>(['24h', '1h', '6h', '7d', '30d']) });

/** What happened, and how all is: or the way to what one may see of it. */
export function Component() {
  const { limited } = useSession();

  return limited ? <OwnSandboxes /> : <OverviewPage />;
}

function OverviewPage() {
  const { t } = useTranslation('overview');
  const { count } = useFormat();
  const [{ range }, setSearch] = useOverviewSearch();
  const { data, error, refetch } = useQuery(overviewQuery({ from: range }));
  const [help, setHelp] = useState(false);
  const within = `from=${range}`;

  useTitle(t('title'));

  if (error && !data) {
    return <div className="p-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>;
  }

  const numbers = data && [
    { label: t('operations'), value: data.counts.total, to: `/history?${within}`, exact: data.counts.exact },
    { label: t('failures'), value: data.failures.count, to: `/history?${within}&status=failed&status=timeout`,
      exact: data.failures.exact, bad: data.failures.count > 0 },
    { label: t('running'), value: data.running.count, to: '/history?status=started', exact: data.running.exact },
    { label: t('gaps'), value: data.gaps.count, to: `/history?${within}&type=gateway.gap`, exact: data.gaps.exact,
      bad: data.gaps.count > 0 },
  ];

  return (
    <div className="mx-auto grid w-full max-w-7xl gap-4 p-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold">{t('title')}</h1>
        <div className="flex-1" />
        <Select aria-label={t('range')} value={range} onChange={(e) => setSearch({ range: e.target.value as Range })}>
          {RANGES.map((r) => <option key={r} value={r}>{t(`ranges.${r}`)}</option>)}
        </Select>
      </div>

      <dl className="grid grid-cols-2 rounded-md border md:grid-cols-4 [&>*]:border-line max-md:[&>*:nth-child(n+3)]:border-t max-md:[&>*:nth-child(even)]:border-l md:[&>*+*]:border-l">
        {numbers ? numbers.map((n) => (
          <div key={n.label} className="relative px-4 py-3 hover:bg-raised">
            <dt className="text-sm text-dim">{n.label}</dt>
            <dd>
              <Link to={n.to} className={`text-2xl leading-8 font-semibold tabular-nums after:absolute after:inset-0 ${n.bad ? 'text-bad' : ''}`}>
                {count(n.value)}{n.exact ? '' : '+'}
              </Link>
            </dd>
          </div>
        )) : <div className="col-span-4 p-4"><Skeleton lines={2} /></div>}
      </dl>

      {data?.counts.total === 0 && data.running.count === 0 && (
        <section className="rounded-md border">
          <Empty icon={Radar} title={t('empty')}>
            <p>{t('emptyHint')}</p>
            <ConnectSnippet />
          </Empty>
        </section>
      )}

      <Activity range={range} />

      <div className="grid items-start gap-4 lg:grid-cols-2 [&>div]:grid [&>div]:min-w-0 [&>div]:gap-4">
        <div>
          <RecentSandboxes />
          <Card title={t('runningNow')} to="/history?status=started">
            <OperationLines items={data?.running.items} none={t('nothingRuns')} />
          </Card>
          <Card title={t('byActor')}>
            <Counts facet={data?.counts.actor} to={(v) => `/history?${within}&${actorQuery(v)}`} />
          </Card>
        </div>
        <div>
          <Card title={t('latestFailures')} to={`/history?${within}&status=failed&status=timeout`}>
            <OperationLines items={data?.failures.items} none={t('noFailures')} />
          </Card>
          <Card title={t('byType')}>
            <Counts facet={data?.counts.type} to={(v) => `/history?${within}&type=${encodeURIComponent(v)}`} />
          </Card>
          <RecorderCard recorder={data?.recorder} gaps={data?.gaps.items ?? []} />
        </div>
      </div>

      <details open={help} onToggle={(e) => setHelp(e.currentTarget.open)} className="rounded-md border px-4 py-2">
        <summary className="text-sm font-medium">{t('connect')}</summary>
        {help && <div className="py-3"><ConnectSnippet /></div>}
      </details>
    </div>
  );
}

import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Link, useParams } from 'react-router';
import { facetsQuery, sandboxQuery } from '@/api/queries';
import { useFormat } from '@/lib/format';
import { Card } from '@/ui/card';
import { actorQuery, Counts } from '@/ui/counts';
import { Skeleton } from '@/ui/empty';
import { Recorded } from '@/ui/plain-text';
import { StateBadge } from '@/ui/status';
import { Time } from '@/ui/time';

export function Component() {
  const { t } = useTranslation('sandboxes');
  const { count, bytes } = useFormat();
  const id = useParams().id!;
  const { data: s } = useQuery(sandboxQuery(id));
  const { data: page } = useQuery(facetsQuery(id, {}));
  const base = `/sandboxes/${encodeURIComponent(id)}/history`;

  if (!s) {
    return <Skeleton lines={8} className="p-4" />;
  }

  const facts: [string, ReactNode][] = [
    [t('state'), <StateBadge state={s.state} />],
    [t('image'), s.image && <Recorded text={s.image} />],
    [t('created'), s.created_at && <Time at={s.created_at} />],
    [t('expires'), s.expires_at && <><Time at={s.expires_at} /> · <Time at={s.expires_at} as="relative" /></>],
    [t('lastActivity'), s.last_activity_at && <Time at={s.last_activity_at} />],
    [t('operations'), s.operations !== null && <Link to={base} className="text-accent hover:underline">{count(s.operations)}</Link>],
    [t('failures'), s.failures !== null && (
      <Link to={`${base}?status=failed&status=timeout`} className="text-accent hover:underline">{count(s.failures)}</Link>
    )],
    [t('runningNow'), s.running !== null && <Link to={`${base}?status=started`} className="text-accent hover:underline">{count(s.running)}</Link>],
    [t('gapsLabel'), s.gaps !== null && <Link to={`${base}?type=gateway.gap`} className="text-accent hover:underline">{count(s.gaps)}</Link>],
    [t('historySize'), s.history_bytes !== null && bytes(s.history_bytes)],
  ];

  return (
    <div className="grid items-start gap-4 overflow-y-auto p-4 lg:grid-cols-3">
      <dl className="rounded-md border">
        {facts.map(([label, value]) => (
          <div key={label} className="flex min-h-8 items-center justify-between gap-4 px-3 py-1 text-sm not-first:border-t">
            <dt className="shrink-0 text-dim">{label}</dt>
            <dd className="min-w-0 text-right [overflow-wrap:anywhere]">{value || '–'}</dd>
          </div>
        ))}
      </dl>
      <Card title={t('byType')}><Counts facet={page?.facets?.type} to={(v) => `${base}?type=${encodeURIComponent(v)}`} /></Card>
      <Card title={t('byActor')}><Counts facet={page?.facets?.actor} to={(v) => `${base}?${actorQuery(v)}`} /></Card>
    </div>
  );
}

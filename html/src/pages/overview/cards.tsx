import { type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { healthQuery } from '@/api/queries';
import type { Operation, Recorder } from '@/api/types';
import { useFormat } from '@/lib/format';
import { cx } from '@/lib/cx';
import { operationLink, operationTitle } from '@/lib/operation';
import { Card } from '@/ui/card';
import { Skeleton } from '@/ui/empty';
import { Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Time } from '@/ui/time';

/** Some records, one to a line. */
export function OperationLines({ items, none }: { items: Operation[] | undefined; none: string }) {
  if (!items) {
    return <Skeleton className="p-3" />;
  }

  if (items.length === 0) {
    return <p className="px-3 py-4 text-sm text-dim">{none}</p>;
  }

  return (
    <ul>
      {items.slice(0, 8).map((o) => (
        <li key={o.id} className="relative flex h-8 items-center gap-2 px-3 hover:bg-raised not-first:border-t">
          <StatusBadge status={o.status} exitCode={o.exit_code} refused={denied(o)} className="w-28 shrink-0" />
          <Link to={operationLink(o)} className="min-w-0 flex-1 truncate after:absolute after:inset-0">
            <Recorded text={operationTitle(o)} />
          </Link>
          <Time at={o.started_at} as="relative" className="shrink-0 text-xs text-dim" />
        </li>
      ))}
    </ul>
  );
}

function Fact({ label, children, good }: { label: string; children: ReactNode; good?: boolean }) {
  const Icon = good ? CircleCheck : TriangleAlert;

  return (
    <div className="flex min-h-8 items-center justify-between gap-3 px-3 py-1 not-first:border-t">
      <dt className="text-sm text-dim">{label}</dt>
      <dd className={cx('flex items-center gap-1.5 text-right text-sm', good === false && 'text-warn')}>
        {good !== undefined && <Icon size={14} aria-hidden className={good ? 'text-good' : 'text-warn'} />}
        {children}
      </dd>
    </div>
  );
}

export function RecorderCard({ recorder: r, gaps }: { recorder: Recorder | undefined; gaps: Operation[] }) {
  const { t } = useTranslation('overview');
  const { count, bytes, duration } = useFormat();
  const { data: health } = useQuery(healthQuery());

  return (
    <Card title={t('recorder')}>
      {r ? (
        <dl>
          <Fact label={t('recorderState')} good={r.status === 'ok'}>{t(`recorderIs.${r.status}`)}</Fact>
          <Fact label={t('behind')} good={r.status === 'ok'}>
            {t('records', { count: r.lag_records })} · {duration(r.lag_ms)}
          </Fact>
          <Fact label={t('lost')} good={r.refused_records + r.files_lost === 0}>
            <Link to="/history?type=gateway.gap" className="hover:underline">{count(r.refused_records + r.files_lost)}</Link>
          </Fact>
          <Fact label={t('journal')}>{bytes(r.journal_bytes)}</Fact>
          {health?.upstream && (
            <Fact label={t('upstream')} good={health.upstream.status === 'ok'}>
              {health.upstream.status === 'ok' ? t('upstreamOk') : t('upstreamBad')}
            </Fact>
          )}
          {health?.helper && (
            <Fact label={t('isolation')} good={health.helper.isolation === 'user'}>
              {health.helper.isolation === 'user' ? t('isolationUser') : t('isolationNone')}
            </Fact>
          )}
        </dl>
      ) : <Skeleton className="p-3" />}
      {gaps.length > 0 && (
        <div className="hatched border-t border-warn px-3 py-2 text-sm">
          <Link to={operationLink(gaps[0]!)} className="underline">{t('lastGap')}</Link>{' '}
          <Time at={gaps[0]!.started_at} as="relative" />
        </div>
      )}
    </Card>
  );
}

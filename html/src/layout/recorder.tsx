// How the recorder does, always in sight, and a banner when it does not do well.

import { useQuery } from '@tanstack/react-query';
import { CircleDot, CirclePlay, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { ApiError } from '@/api/errors';
import { overviewQuery } from '@/api/queries';
import type { Overview } from '@/api/types';
import { useFormat } from '@/lib/format';
import { cx } from '@/lib/cx';
import { GapBanner } from './gap-banner';

const item = 'inline-flex items-center gap-1.5 rounded-sm px-1 text-xs whitespace-nowrap hover:underline';

type Status = 'ok' | 'degraded' | 'unavailable' | 'offline' | 'untold';

/** How the recorder does: an answer that could not be had says nothing of it, unless it is the recorder that is away. */
function useRecorder(): { status: Status | undefined; data: Overview | undefined } {
  const { data, error } = useQuery(overviewQuery());

  if (!(error instanceof ApiError)) {
    return { status: error ? 'untold' : data?.recorder.status, data };
  }

  return {
    status: error.status === 0 ? 'offline' : error.code === 'GATEWAY_RECORDER_UNAVAILABLE' ? 'unavailable'
      : error.status === 401 || error.status === 403 ? undefined : 'untold',
    data,
  };
}

const COLOUR: Record<Status, string> = {
  ok: 'text-good', degraded: 'text-warn', unavailable: 'text-bad', offline: 'text-dim', untold: 'text-dim',
};

export function RecorderStatus() {
  const { t } = useTranslation();
  const { count } = useFormat();
  const { status, data } = useRecorder();

  if (!status) {
    return null;
  }

  return (
    <div className="flex items-center gap-2">
      <Link to="/" className={cx(item, COLOUR[status])}>
        <CircleDot size={14} aria-hidden />
        <span className="max-sm:sr-only">{t(`recorder.${status}`)}</span>
      </Link>
      {data && (
        <>
          <Link to="/history?status=started" className={cx(item, 'text-dim')}>
            <CirclePlay size={14} aria-hidden className="sm:hidden" />
            <span className="sm:hidden">{count(data.running.count)}<span className="sr-only"> {t('runningLabel')}</span></span>
            <span className="max-sm:hidden">{t('running', { count: data.running.count })}</span>
          </Link>
          <Link to="/history?type=gateway.gap" className={cx(item, data.gaps.count > 0 ? 'text-warn' : 'text-dim', 'max-md:hidden')}>
            <TriangleAlert size={14} aria-hidden />
            {t('gaps', { count: data.gaps.count })}
          </Link>
        </>
      )}
    </div>
  );
}

/** Says at the top of every page that not all is recorded, or not yet readable. */
export function RecorderBanner() {
  const { t } = useTranslation();
  const { status, data } = useRecorder();
  const said = status === 'offline' || status === 'unavailable' || status === 'degraded' ? t(`banner.${status}`) : null;

  if (!said && data) {
    return <GapBanner gaps={data.gaps} />;
  }

  return said && (
    <p role="alert" className="flex items-center gap-2 border-b border-warn bg-warn-tint px-4 py-1.5 text-sm">
      <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />
      {said}
    </p>
  );
}

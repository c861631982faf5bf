import { memo } from 'react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Lock, ShieldX } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { outputQuery } from '@/api/queries';
import type { Operation } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { operationTitle } from '@/lib/operation';
import { harmless, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Time } from '@/ui/time';
import { optionId } from '@/ui/virtual-list';

const LINE = 28;
const SECOND = 20;
const WAIT_WORTH_SAYING = 50;
const MOST_STDERR = 64 * 1024;

export const isGap = (o: Operation) => o.type === 'gateway.gap';

const waited = (o: Operation) => (o.lock?.waited_ms ?? 0) >= WAIT_WORTH_SAYING;

const failedWithWords = (o: Operation) => (o.status === 'failed' || o.status === 'timeout')
  && !!o.output && o.output.stderr_bytes > 0 && o.output.stderr_bytes <= MOST_STDERR;

const hasSecond = (o: Operation) => failedWithWords(o) || denied(o) || waited(o) || !!o.error_code;

export const rowHeight = (o: Operation): number => LINE + (hasSecond(o) ? SECOND : 0);

/** The last line that a failure wrote, without a click. */
function LastWords({ operation: o }: { operation: Operation }) {
  const { data } = useInfiniteQuery({
    ...outputQuery(o.id, 'stderr', o.sandbox_id ?? undefined), staleTime: Infinity,
  });
  const said = (data?.pages ?? []).flatMap((p) => p.items).map((i) => i.text ?? '').join('');
  const line = said.trimEnd().split('\n').at(-1) ?? '';

  return <Recorded text={line} className="truncate text-bad" />;
}

function Second({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { duration } = useFormat();

  return (
    <div className="flex h-5 min-w-0 items-center gap-3 text-xs pl-6.5 @xl:pl-54">
      {denied(o) && (
        <span className="flex shrink-0 items-center gap-1 text-bad">
          <ShieldX size={13} aria-hidden />{t('denied', { rule: o.verdict?.rule ? harmless(o.verdict.rule) : '–' })}
        </span>
      )}
      {waited(o) && (
        <span className="flex shrink-0 items-center gap-1 text-warn">
          <Lock size={13} aria-hidden />{t('waited', { time: duration(o.lock!.waited_ms) })}
        </span>
      )}
      {failedWithWords(o) ? <LastWords operation={o} />
        : o.error_code && !denied(o) && <Recorded text={o.error_code} className="truncate text-bad" />}
    </div>
  );
}

function Change({ operation: o }: { operation: Operation }) {
  const { bytes } = useFormat();
  const { file } = o;

  if (!file || file.after_size === null) {
    return null;
  }

  if (file.before_size === null) {
    return <span className="text-dim">{bytes(file.after_size)}</span>;
  }

  const more = file.after_size - file.before_size;

  return <span className="text-dim">{more < 0 ? '−' : '+'}{bytes(Math.abs(more))}</span>;
}

interface Props {
  operation: Operation;
  active: boolean;
  /** The sandbox is named too: the list has several. */
  named: boolean;
  onOpen(o: Operation): void;
}

export const Row = memo(({ operation: o, active, named, onOpen }: Props) => {
  const { t } = useTranslation('timeline');
  const { duration } = useFormat();
  const { actor } = o;
  const who = [actor.id ?? actor.type, actor.run].filter(Boolean).join(' · ');

  return (
    <div
      id={optionId(o.id)} role="option" aria-selected={active} onClick={() => onOpen(o)}
      className={cx(
        'flex h-full cursor-pointer flex-col justify-center border-b px-3',
        active ? 'bg-tint' : isGap(o) ? 'hatched' : 'hover:bg-raised',
      )}
    >
      <div className="flex h-7 min-w-0 items-center gap-3">
        <Time at={o.started_at} as="clock" className="recorded w-24 shrink-0 text-dim @max-xl:hidden" />
        <StatusBadge status={o.status} exitCode={o.exit_code} className="w-24 shrink-0 @max-xl:w-auto @max-xl:text-[0px]" />
        {isGap(o) ? (
          <span className="min-w-0 flex-1 truncate font-medium text-warn">
            {t('gap')}{o.reason && ` · ${harmless(o.reason)}`}
          </span>
        ) : (
          <span className="flex min-w-0 flex-1 items-baseline gap-2">
            <Recorded text={operationTitle(o)} className={cx('truncate', o.status === 'cancelled' && 'text-dim')} />
            <span className="shrink-0 text-2xs text-dim @max-2xl:hidden">{o.type}</span>
          </span>
        )}
        <span className="flex max-w-72 shrink-0 items-center gap-3 text-xs tabular-nums">
          <Change operation={o} />
          {named && o.sandbox_id && (
            <Recorded text={o.sandbox_id} className="max-w-24 truncate text-2xs text-dim @max-5xl:hidden" />
          )}
          <span title={harmless(who)} className="max-w-40 truncate text-dim @max-3xl:hidden">{harmless(who)}</span>
          <span className="w-14 text-right text-dim">{o.duration_ms !== null && duration(o.duration_ms)}</span>
        </span>
      </div>
      {hasSecond(o) && <Second operation={o} />}
    </div>
  );
});

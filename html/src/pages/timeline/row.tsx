import { memo } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Lock, ShieldX, TriangleAlert, UserRound, Workflow } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { stderrQuery } from '@/api/queries';
import type { Operation } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { operationTitle } from '@/lib/operation';
import { codeText } from '@/ui/error-note';
import { harmless, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Time } from '@/ui/time';
import { optionId } from '@/ui/virtual-list';
import { actorOf, type Entry, failedWithWords, isGap, waited, wroteWords } from './entries';
import { FirstWords, useRests } from './first-words';
import { readGap } from './gap';
import { plain } from './ansi';
import type { RowView } from './view';

// what stands below begins where the title does
const INDENT = { both: '@xl:pl-[164px]', time: '@xl:pl-[108px]', source: '@xl:pl-[56px]', none: '' } as const;

const indentOf = ({ columns: c }: RowView): keyof typeof INDENT =>
  (c.has('time') ? c.has('source') ? 'both' : 'time' : c.has('source') ? 'source' : 'none');

const SOURCES = ['gateway', 'sdk', 'console'] as const;

const GAP_REASONS = ['history_full', 'queue_full', 'recorder_unavailable', 'worker_died', 'gateway_restarted'] as const;

/** The last line that a failure wrote, without a click. */
function LastWords({ operation: o }: { operation: Operation }) {
  const rests = useRests();
  const { data } = useQuery({ ...stderrQuery(o.id, o.sandbox_id ?? undefined), enabled: rests });
  const line = plain(data ?? '').trimEnd().split('\n').at(-1) ?? '';

  return <Recorded text={line} className="truncate text-bad" />;
}

function Second({ operation: o, who, view }: { operation: Operation; who: string; view: RowView }) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { duration } = useFormat();

  return (
    <div className={cx('flex min-w-0 items-center gap-3 pb-1 pl-3', view.dense ? 'h-4 text-2xs' : 'h-5 text-xs', INDENT[indentOf(view)])}>
      {who && <Recorded text={who} className="max-w-[45%] shrink-0 truncate text-dim" />}
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
        : o.error_code && !denied(o) ? <span title={harmless(o.error_code)} className="truncate text-bad">{codeText(common, o.error_code)}</span>
        : view.columns.has('output') && wroteWords(o) && <FirstWords operation={o} />}
    </div>
  );
}

function Change({ operation: o }: { operation: Operation }) {
  const { bytes } = useFormat();
  const { file } = o;

  if (!file || file.after_size === null) {
    return null;
  }

  // reading changes nothing
  if (file.before_size === null || file.change === 'read') {
    return <span className="text-dim">{bytes(file.after_size)}</span>;
  }

  const more = file.after_size - file.before_size;

  return <span className="text-dim">{more < 0 ? '−' : '+'}{bytes(Math.abs(more))}</span>;
}

function Written({ operation: o }: { operation: Operation }) {
  const { bytes } = useFormat();
  const written = (o.output?.stdout_total_bytes ?? 0) + (o.output?.stderr_total_bytes ?? 0);

  return written > 0 && <span className="text-dim @max-2xl:hidden">{bytes(written)}</span>;
}

/** Where it came from; what people do on these pages reaches the gateway as anybody's call. */
function Source({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const source = o.actor.type === 'console' ? 'console' : o.source;
  const known = SOURCES.find((s) => s === source);

  return <span className="w-11 shrink-0 truncate text-2xs text-dim @max-xl:hidden">{known ? t(`source.${known}`) : harmless(source)}</span>;
}

/** Which operation it was: whole where there is room, what it did to a file anywhere. */
function Type({ operation: o, title }: { operation: Operation; title: string }) {
  if (title === o.type) {
    return null;
  }

  const verb = /^(?:file|dir|isolated)\./.test(o.type) ? o.type.slice(o.type.lastIndexOf('.') + 1) : '';

  return (
    <span className="shrink-0 text-2xs text-dim">
      <span className="@max-2xl:hidden">{harmless(o.type)}</span>
      {verb && <span className="hidden @max-2xl:inline">{harmless(verb)}</span>}
    </span>
  );
}

function Gap({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { count } = useFormat();
  const gap = readGap(o);
  const why = gap && GAP_REASONS.find((one) => one === gap.reason);
  const said = gap ? [
    gap.operations > 0 && t('gapOf.operations', { count: gap.operations, n: count(gap.operations) }),
    gap.size && t('gapOf.output', { size: gap.size }),
    why ? t(`gapOf.${why}`) : gap.reason && harmless(gap.reason),
  ] : [o.summary && harmless(o.summary), o.reason && harmless(o.reason)];

  return (
    <span className="flex min-w-0 flex-1 items-center gap-2 font-medium text-warn">
      <TriangleAlert size={14} aria-hidden className="shrink-0" />
      <span className="truncate rounded-sm bg-bg px-1">
        {[t('gap'), ...said].filter(Boolean).join(' · ')}
      </span>
    </span>
  );
}

export const Day = ({ at }: { at: string }) => {
  const { day } = useFormat();

  return (
    <div role="presentation" className="flex h-full items-end border-b bg-bg px-3 pb-1 text-xs font-medium text-dim">{day(at)}</div>
  );
};

export function Group({ name, value }: { name: 'run' | 'actor'; value: string | null }) {
  const { t } = useTranslation('timeline');
  const Icon = name === 'run' ? Workflow : UserRound;

  return (
    <div role="presentation" className="flex h-full items-center gap-2 border-b bg-raised px-3 text-xs">
      <Icon size={13} aria-hidden className="text-dim" />
      <span className="text-dim">{t(`filter.${name}`)}</span>
      {value === null ? <span className="text-dim">{t('noRun')}</span>
        : name === 'run' ? (
          <Link to={`/runs/${encodeURIComponent(value)}`} className="truncate font-medium hover:underline"><Recorded text={value} /></Link>
        ) : <Recorded text={value} className="truncate font-medium" />}
    </div>
  );
}

interface Props {
  entry: Extract<Entry, { kind: 'record' }>;
  active: boolean;
  /** What the sandbox is called, where the list has several. */
  box: string;
  view: RowView;
  onOpen(o: Operation): void;
}

export const Row = memo(({ entry, active, box, view, onOpen }: Props) => {
  const { t } = useTranslation('timeline');
  const { duration } = useFormat();
  const o = entry.operation;
  const gap = isGap(o);
  const title = operationTitle(o);

  return (
    <div
      id={optionId(o.id)} role="option" aria-selected={active} onClick={() => onOpen(o)} title={gap ? undefined : harmless(actorOf(o))}
      className={cx(
        'flex h-full cursor-pointer flex-col justify-center border-b px-3',
        active ? 'bg-tint' : gap ? 'hatched' : 'hover:bg-raised',
      )}
    >
      <div className={cx('flex min-w-0 shrink-0 items-center gap-3', view.dense ? 'h-[22px] text-xs' : 'h-7')}>
        {view.columns.has('time') && (
          <Time at={o.started_at} as="clock" className="recorded w-24 shrink-0 text-dim @max-xl:w-auto @max-xl:text-2xs" finest="@max-xl:hidden" />
        )}
        {view.columns.has('source') && <Source operation={o} />}
        {gap ? <Gap operation={o} /> : (
          <span className="flex min-w-0 flex-1 items-baseline gap-2">
            <Recorded text={title} className={cx('truncate', o.status === 'cancelled' && 'text-dim')} />
            {view.columns.has('type') && <Type operation={o} title={title} />}
          </span>
        )}
        <span className="flex shrink-0 items-center gap-3 text-xs tabular-nums">
          {o.folded !== null && o.folded > 0 && <span className="text-dim">{t('folded', { count: o.folded })}</span>}
          {view.columns.has('size') && <><Change operation={o} /><Written operation={o} /></>}
          {box && view.columns.has('sandbox') && (
            <Recorded text={box} title={o.sandbox_id ?? ''} className="max-w-32 truncate text-2xs text-dim @max-3xl:hidden" />
          )}
          {!gap && <StatusBadge status={o.status} exitCode={o.exit_code} refused={denied(o)} className={cx('w-22 shrink-0 @max-xl:w-auto', o.status === 'succeeded' && !denied(o) && '@max-xl:text-[0px]')} />}
          {view.columns.has('duration') && <span className="w-13 text-right text-dim @max-xl:w-auto">{o.duration_ms !== null && duration(o.duration_ms)}</span>}
        </span>
      </div>
      {entry.second && <Second operation={o} who={entry.who} view={view} />}
    </div>
  );
}, (a, b) => a.active === b.active && a.box === b.box && a.view === b.view && a.onOpen === b.onOpen
  && a.entry.operation === b.entry.operation && a.entry.second === b.entry.second && a.entry.who === b.entry.who);

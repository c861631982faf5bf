import { lazy, Suspense, useEffect } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Lock, ShieldX, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useSandboxNames } from '@/api/names';
import { operationQuery } from '@/api/queries';
import type { Operation, OperationWhole } from '@/api/types';
import { useFormat } from '@/lib/format';
import { operationTitle } from '@/lib/operation';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, PlainText, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Tabs } from '@/ui/tabs';
import { Time } from '@/ui/time';
import { Around, CopyAs, RunAgain, VerifiedMark } from './actions';
import { Links, Members, Requested } from './detail-tabs';
import { Diff, mayDiffer } from './diff';
import { actorOf, isGap, waited } from './entries';
import { FilesThen } from './files-then';
import type { Property, SetTimelineSearch, TimelineSearch } from './filters';
import { Output } from './output';
import { Value } from './value';

const Replay = lazy(() => import('@/pages/replay'));

// how soon a record is asked for again that has ended, and one that runs
const BEHIND = 500;
const RUNNING = 3_000;

const TABS = ['output', 'diff', 'replay', 'request', 'result', 'actor', 'wire', 'files', 'links'] as const;
type Tab = (typeof TABS)[number];

interface Narrow {
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
}

function Body({ operation: o, search, setSearch }: { operation: OperationWhole } & Narrow) {
  const { t } = useTranslation('timeline');
  const { duration } = useFormat();
  const has: Record<Tab, boolean> = {
    output: o.output !== null && o.terminal == null,
    diff: mayDiffer(o),
    replay: o.terminal != null || o.output !== null,
    request: true, result: true, actor: true, wire: o.wire !== null,
    files: !!o.actor.run && !!o.sandbox_id && o.sandbox_id !== '_gateway',
    links: true,
  };
  const open = TABS.filter((tab) => has[tab]);
  // a difference that there may be is not what one comes to
  const first = open.find((one) => one !== 'diff' || o.file?.has_diff)!;
  const tab = open.find((one) => one === search.tab) ?? first;
  const value = (name: Exclude<Property, 'sandbox' | 'type' | 'path'>, text: string | null) =>
    text && <Value name={name} value={text} search={search} setSearch={setSearch} />;

  const content: Record<Tab, () => React.ReactNode> = {
    output: () => <Output operation={o} />,
    diff: () => <Diff operation={o} />,
    replay: () => <Suspense fallback={<Skeleton className="p-3" />}><Replay operation={o} /></Suspense>,
    request: () => <Requested operation={o} />,
    result: () => (
      <Members of={{ status: o.status, exit_code: o.exit_code, ...o.result, http_status: o.http_status, error_code: o.error_code, reason: o.reason,
        verdict: o.verdict && [o.verdict.decision, o.verdict.rule].filter(Boolean).join(' · '),
        lock: o.lock && t('waited', { time: duration(o.lock.waited_ms) }) }} shown={{
        status: value('status', o.status), exit_code: o.exit_code !== null && value('exit_code', String(o.exit_code)),
      }}
      />
    ),
    actor: () => (
      <Members of={{ ...o.actor }} shown={{
        id: o.actor.id && value('actor', actorOf(o)), run: value('run', o.actor.run), thread: value('thread', o.actor.thread),
        correlation: value('correlation', o.actor.correlation),
      }}
      />
    ),
    wire: () => <Members of={{ ...o.wire, source: o.source, bytes_in: o.bytes_in, bytes_out: o.bytes_out }} shown={{ source: value('source', o.source) }} />,
    files: () => <FilesThen operation={o} />,
    links: () => <Links operation={o} />,
  };

  return (
    <Tabs<Tab> label={t('detail')} value={tab} onChange={(to) => setSearch({ tab: to === first ? '' : to }, 'replace')}
      tabs={open.map((name) => ({ value: name, label: t(`tabs.${name}`), content: content[name] }))}
    />
  );
}

interface Props extends Narrow {
  id: string;
  sandbox: string | undefined;
  /** What the list knows of it: shown until all is there. */
  known: Operation | undefined;
  onClose(): void;
}

/** One record whole, beside the list. */
export default function Detail({ id, sandbox, known, search, setSearch, onClose }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { duration } = useFormat();
  const status = known?.status;
  const { data, error, refetch } = useQuery({
    ...operationQuery(id, sandbox),
    // the list is told at once, the store has it a moment later: until then it says what was, or nothing
    refetchInterval: ({ state }) => {
      if (!state.data) {
        return state.error && status ? RUNNING : false;
      }

      return state.data.status !== 'started' ? false : status && status !== 'started' ? BEHIND : RUNNING;
    },
  });
  const o = data ?? known;

  // it has ended since
  useEffect(() => {
    if (status !== undefined && data && data.status !== status) {
      void refetch();
    }
  }, [status, data, refetch]);

  const nameOf = useSandboxNames();
  const cwd = data?.command?.cwd ?? data?.request?.cwd;

  return (
    <section aria-label={t('detail')} data-keys="arrows" className="flex min-h-0 flex-1 flex-col">
      <div className="grid gap-1.5 border-b px-3 py-2">
        <div className="flex items-start gap-2">
          <div className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2 gap-y-1 pt-1">
            {o ? <Value name="type" value={o.type} search={search} setSearch={setSearch} /> : '…'}
            {o && !isGap(o) && <Value name="actor" value={actorOf(o)} label={o.actor.id ?? o.actor.type} search={search} setSearch={setSearch} />}
            {o?.file?.path && <Value name="path" value={o.file.path} search={search} setSearch={setSearch} />}
            {o?.actor.run && <Value name="run" value={o.actor.run} search={search} setSearch={setSearch} />}
            {sandbox === undefined && o?.sandbox_id && (
              <Value name="sandbox" value={o.sandbox_id} label={nameOf(o.sandbox_id)} search={search} setSearch={setSearch} />
            )}
          </div>
          <Button look="quiet" size="sm" aria-label={common('close')} icon={<X size={16} aria-hidden />} onClick={onClose} />
        </div>
        {o && (
          <>
            <h2 tabIndex={0} className="max-h-24 overflow-y-auto font-medium"><PlainText text={operationTitle(o)} bare /></h2>
            <p className="flex flex-wrap items-center gap-x-3 text-xs text-dim">
              {!isGap(o) && <StatusBadge status={data?.status ?? o.status} exitCode={o.exit_code} refused={denied(o)} />}
              {o.duration_ms !== null && <span>{duration(o.duration_ms)}</span>}
              {typeof cwd === 'string' && cwd && <Recorded text={cwd} />}
              <Time at={o.started_at} />
              {denied(o) && (
                <span className="flex items-center gap-1 text-bad">
                  <ShieldX size={13} aria-hidden />{t('denied', { rule: o.verdict?.rule ? harmless(o.verdict.rule) : '–' })}
                </span>
              )}
              {waited(o) && (
                <span className="flex items-center gap-1 text-warn">
                  <Lock size={13} aria-hidden />{t('waited', { time: duration(o.lock!.waited_ms) })}
                </span>
              )}
              {data && <VerifiedMark operation={data} />}
            </p>
          </>
        )}
        {data && (
          <div className="flex flex-wrap items-center gap-1.5">
            <CopyAs operation={data} />
            <RunAgain operation={data} />
            <Around operation={data} search={search} setSearch={setSearch} />
          </div>
        )}
      </div>
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!data && !error && <Skeleton lines={6} className="p-3" />}
      {data && <Body key={id} operation={data} search={search} setSearch={setSearch} />}
    </section>
  );
}

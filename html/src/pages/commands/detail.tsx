import { type ReactNode, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, CircleStop, Pencil, RotateCcw, ScrollText } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { interruptCommand } from '@/api/commands';
import { operationQuery } from '@/api/queries';
import type { Operation } from '@/api/types';
import { useFormat } from '@/lib/format';
import { operationLink, operationTitle } from '@/lib/operation';
import { Output } from '@/pages/timeline/output';
import { Button, buttonClass } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { PlainText, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { toastError } from '@/ui/toast';
import { RunBadge } from './badge';
import { Job } from './job';
import { Log } from './log';
import { Elapsed } from './rows';
import { interrupt, type Run } from './runs';

const POLL = 2_000;

interface HeadProps {
  command: string;
  cwd: string | null;
  record: Pick<Operation, 'id' | 'sandbox_id'> | null;
  onBack(): void;
  onAgain?: () => void;
  onEdit?: () => void;
  children: ReactNode;
}

function Head({ command, cwd, record, onBack, onAgain, onEdit, children }: HeadProps) {
  const { t } = useTranslation('commands');

  return (
    <div className="shrink-0 border-b">
      <div className="flex items-center gap-1 px-3 pt-2 md:hidden">
        <Button look="quiet" size="sm" icon={<ArrowLeft size={14} aria-hidden />} onClick={onBack}>{t('back')}</Button>
      </div>
      <PlainText text={command} className="max-h-32 font-medium" label={t('command')} />
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 pb-2 text-xs text-dim">
        {children}
        {cwd && <Recorded text={cwd} className="min-w-0 truncate" />}
        <span className="flex-1" />
        {onEdit && <Button size="sm" icon={<Pencil size={13} aria-hidden />} onClick={onEdit}>{t('edit')}</Button>}
        {onAgain && <Button size="sm" icon={<RotateCcw size={13} aria-hidden />} onClick={onAgain}>{t('again')}</Button>}
        {record && (
          <Link to={operationLink(record)} className={buttonClass('plain', 'sm')}>
            <ScrollText size={13} aria-hidden />{t('record')}
          </Link>
        )}
      </div>
    </div>
  );
}

interface RunProps {
  run: Run;
  mayRun: boolean;
  onBack(): void;
  onAgain(): void;
  onEdit(): void;
}

/** A command of this page's: what it writes, as it does. */
export function RunDetail({ run, mayRun, onBack, onAgain, onEdit }: RunProps) {
  const { t } = useTranslation('commands');
  const record = run.operation === null ? null : { id: run.operation, sandbox_id: run.sandbox };
  const running = run.endedAt === null;
  const job = run.request.background && run.id !== null && run.state !== 'refused';

  return (
    <>
      <Head command={run.request.command} cwd={run.request.cwd ?? null} record={record} onBack={onBack}
        onAgain={mayRun ? onAgain : undefined} onEdit={mayRun ? onEdit : undefined}
      >
        {!job && <RunBadge state={run.state} exit={run.exit} />}
        {!job && <Elapsed run={run} />}
      </Head>
      {run.error !== null && <div className="p-3"><ErrorNote error={run.error} /></div>}
      {run.cut && <p className="border-b bg-warn-tint px-3 py-1 text-xs">{running ? t('lost') : t('lostDone')}</p>}
      {run.dropped > 0 && <p className="border-b px-3 py-1 text-xs text-dim">{t('dropped', { count: run.dropped })}</p>}
      {run.why !== null && run.exit === null && (
        <p className="border-b bg-bad-tint px-3 py-1 text-xs"><Recorded text={run.why} /></p>
      )}
      {job && <Job key={run.id} sandbox={run.sandbox} id={run.id!} mayStop={mayRun} />}
      {!job && run.state !== 'refused' && (
        <Log lines={run.lines} empty={t(run.state === 'starting' ? 'starting' : running ? 'waitingOutput' : 'noOutput')}>
          {running && mayRun && (
            <Button size="sm" look="danger" disabled={run.id === null} busy={run.state === 'interrupting'}
              icon={<CircleStop size={14} aria-hidden />} onClick={() => { interrupt(run.key).catch(toastError); }}
            >
              {t(run.state === 'interrupting' ? 'interrupting' : 'interrupt')}
            </Button>
          )}
        </Log>
      )}
    </>
  );
}

interface RecordProps {
  id: string;
  sandbox: string;
  /** As the list has it: newer than the record that was asked for. */
  listed: Operation | undefined;
  mayRun: boolean;
  onBack(): void;
  onAgain(o: Operation): void;
  onEdit(o: Operation): void;
}

/** A command on record. */
export function RecordDetail({ id, sandbox, listed, mayRun, onBack, onAgain, onEdit }: RecordProps) {
  const { t } = useTranslation('commands');
  const { duration } = useFormat();
  const [stopping, setStopping] = useState(false);
  const { data: whole, error, refetch } = useQuery({
    ...operationQuery(id, sandbox),
    refetchInterval: (q) => (q.state.data?.status === 'started' ? POLL : false),
  });
  const o = listed ?? whole;
  const command = whole?.command?.provider_command_id;
  const job = whole?.request?.background === true ? command : null;

  const stop = async (running: string) => {
    setStopping(true);

    try {
      await interruptCommand(sandbox, running);
    } catch (e) {
      toastError(e);
    } finally {
      setStopping(false);
    }
  };

  if (!o || !whole) {
    return error ? <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div> : <Skeleton className="p-3" />;
  }

  return (
    <>
      <Head command={String(whole.command?.command ?? operationTitle(o))} record={o} onBack={onBack}
        cwd={typeof whole.request?.cwd === 'string' ? whole.request.cwd : null}
        onAgain={mayRun ? () => onAgain(o) : undefined} onEdit={mayRun ? () => onEdit(o) : undefined}
      >
        {typeof job !== 'string' && <StatusBadge status={o.status} exitCode={o.exit_code} refused={denied(o)} />}
        {o.duration_ms !== null && <span className="tabular-nums">{duration(o.duration_ms)}</span>}
        {o.actor.id && <Recorded text={o.actor.id} className="min-w-0 truncate" />}
        {mayRun && o.status === 'started' && typeof job !== 'string' && typeof command === 'string' && (
          <Button size="sm" look="danger" busy={stopping} icon={<CircleStop size={14} aria-hidden />} onClick={() => void stop(command)}>
            {t(stopping ? 'interrupting' : 'interrupt')}
          </Button>
        )}
      </Head>
      {typeof job === 'string'
        ? <Job key={job} sandbox={sandbox} id={job} mayStop={mayRun} />
        : <div className="min-h-0 flex-1 overflow-y-auto"><Output operation={o} /></div>}
    </>
  );
}

import { type ReactNode, useEffect, useState } from 'react';
import { RotateCcw } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { Operation } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { operationTitle } from '@/lib/operation';
import { Button } from '@/ui/button';
import { harmless, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Time } from '@/ui/time';
import { RunBadge } from './badge';
import type { Run } from './runs';

interface RowProps {
  title: string;
  selected: boolean;
  onSelect(): void;
  onAgain?: () => void;
  children: ReactNode;
}

function Row({ title, selected, onSelect, onAgain, children }: RowProps) {
  const { t } = useTranslation('commands');
  const short = harmless(title.slice(0, 120));

  return (
    <li className={cx('group flex items-center border-b', selected ? 'bg-tint' : 'hover:bg-raised')}>
      <button type="button" aria-current={selected || undefined} className="grid min-w-0 flex-1 gap-0.5 py-1.5 pl-3 text-left" onClick={onSelect}>
        <span className="truncate text-sm"><Recorded text={title} /></span>
        <span className="flex min-w-0 items-center gap-2 text-xs text-dim">{children}</span>
      </button>
      {onAgain && (
        <Button look="quiet" size="sm" aria-label={t('runAgain', { command: short })} className="mx-1"
          icon={<RotateCcw size={14} aria-hidden />} onClick={onAgain}
        />
      )}
    </li>
  );
}

export function RecordRow({ operation: o, ...rest }: Omit<RowProps, 'title' | 'children'> & { operation: Operation }) {
  const { duration } = useFormat();

  return (
    <Row title={operationTitle(o)} {...rest}>
      <StatusBadge status={o.status} exitCode={o.exit_code} refused={denied(o)} />
      {o.duration_ms !== null && <span className="tabular-nums">{duration(o.duration_ms)}</span>}
      {o.actor.id && <Recorded text={o.actor.id} className="min-w-0 truncate" />}
      <span className="flex-1" />
      <Time at={o.started_at} as="relative" className="whitespace-nowrap" />
    </Row>
  );
}

/** How long it has run, or ran. */
export function Elapsed({ run }: { run: Run }) {
  const { duration } = useFormat();
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    if (run.endedAt !== null) {
      return undefined;
    }

    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [run.endedAt]);

  return <span className="tabular-nums">{duration(Math.max(0, (run.endedAt ?? now) - run.startedAt))}</span>;
}

export function RunRow({ run, ...rest }: Omit<RowProps, 'title' | 'children'> & { run: Run }) {
  return (
    <Row title={run.request.command} {...rest}>
      <RunBadge state={run.state} exit={run.exit} />
      <Elapsed run={run} />
    </Row>
  );
}

import {
  Ban, CircleCheck, CircleDashed, CircleQuestionMark, Clock, type LucideIcon, Pause, CirclePlay, ShieldX, Trash2, CircleX,
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { Operation, Status } from '@/api/types';
import { cx } from '@/lib/cx';
import { harmless } from './plain-text';

type Tone = 'good' | 'bad' | 'warn' | 'dim' | 'accent';

export const TONE: Record<Tone, string> = {
  good: 'text-good', bad: 'text-bad', warn: 'text-warn', dim: 'text-dim', accent: 'text-accent',
};

const STATUS: Record<Status, [LucideIcon, Tone]> = {
  started: [CircleDashed, 'accent'],
  succeeded: [CircleCheck, 'good'],
  failed: [CircleX, 'bad'],
  timeout: [Clock, 'bad'],
  cancelled: [Ban, 'warn'],
  unknown: [CircleQuestionMark, 'warn'],
};

export const statusTone = (s: Status): Tone => STATUS[s][1];

/** How an operation went: a sign and a word.  One that a rule refused has not failed by itself. */
export function StatusBadge({ status, exitCode, refused = false, className }:
  { status: Status; exitCode?: number | null; refused?: boolean; className?: string }) {
  const { t } = useTranslation();
  const [icon, tone] = STATUS[status];
  const Icon = refused ? ShieldX : icon;
  const exit = status === 'failed' && exitCode ? ` · ${exitCode}` : '';

  return (
    <span className={cx('inline-flex items-center gap-1 align-middle whitespace-nowrap text-xs', TONE[tone], className)}>
      <Icon size={14} aria-hidden className={status === 'started' ? 'animate-spin [animation-duration:3s]' : undefined} />
      {refused ? t('status.denied') : t(`status.${status}`)}{exit}
    </span>
  );
}

/** Was it refused by a rule? */
export const denied = (o: Pick<Operation, 'verdict' | 'error_code'>): boolean =>
  o.verdict?.decision === 'deny' || o.error_code === 'GATEWAY_POLICY_DENIED';

const STATES: Record<string, [LucideIcon, Tone]> = {
  running: [CirclePlay, 'good'],
  paused: [Pause, 'warn'],
  deleted: [Trash2, 'dim'],
  failed: [CircleX, 'bad'],
};

const NAMED = ['running', 'paused', 'deleted', 'failed', 'pending', 'pausing', 'resuming', 'terminated',
  'stopping'] as const;

/** What a sandbox does, as upstream says it. */
export function StateBadge({ state, className }: { state: string | null; className?: string }) {
  const { t } = useTranslation();

  if (state === null) {
    return null;
  }

  const key = state.toLowerCase();
  const [Icon, tone] = STATES[key] ?? [CircleDashed, 'dim'];
  const named = NAMED.find((n) => n === key);

  return (
    <span className={cx('inline-flex items-center gap-1 align-middle whitespace-nowrap text-xs', TONE[tone], className)}>
      <Icon size={14} aria-hidden />
      {named ? t(`state.${named}`) : harmless(state)}
    </span>
  );
}

/** A small label. */
export function Tag({ children, tone = 'dim' }: { children: React.ReactNode; tone?: Tone }) {
  return (
    <span className={cx('inline-flex h-5 items-center whitespace-nowrap rounded-sm border px-1.5 text-2xs', TONE[tone])}>
      {children}
    </span>
  );
}

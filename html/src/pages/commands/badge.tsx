import {
  Ban, CircleCheck, CircleDashed, CircleQuestionMark, CircleX, Clock, type LucideIcon,
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import type { RunState } from './runs';

const LOOKS: Record<RunState, [LucideIcon, string]> = {
  starting: [CircleDashed, 'text-accent'],
  running: [CircleDashed, 'text-accent'],
  interrupting: [CircleDashed, 'text-warn'],
  done: [CircleCheck, 'text-good'],
  failed: [CircleX, 'text-bad'],
  timeout: [Clock, 'text-bad'],
  interrupted: [Ban, 'text-warn'],
  refused: [Ban, 'text-bad'],
  lost: [CircleQuestionMark, 'text-warn'],
};

/** How a command of this page goes: a sign and a word. */
export function RunBadge({ state, exit }: { state: RunState; exit: number | null }) {
  const { t } = useTranslation('commands');
  const [Icon, colour] = LOOKS[state];

  return (
    <span className={cx('inline-flex items-center gap-1 whitespace-nowrap text-xs', colour)}>
      <Icon size={14} aria-hidden className={colour === 'text-accent' ? 'animate-spin [animation-duration:3s]' : undefined} />
      {state === 'failed' ? t('state.failed', { code: exit ?? '?' }) : t(`state.${state}`)}
    </span>
  );
}

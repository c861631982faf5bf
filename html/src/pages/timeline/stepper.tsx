import { useEffect, useState } from 'react';
import { ChevronFirst, ChevronLast, ChevronLeft, ChevronRight, Pause, Play, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { Operation } from '@/api/types';
import { Button } from '@/ui/button';
import { Select } from '@/ui/field';
import { wentWrong } from './entries';

const SPEEDS = ['1', '4', '16'] as const;
// a pause between two steps is shown as long as it was, but not longer
const LONGEST = 3_000;
const SHORTEST = 250;

interface Props {
  items: readonly Operation[];
  at: number;
  /** Which one it is of all; null while nobody knows. */
  n: number | null;
  all: string;
  /** There are records before the first one, behind the last one. */
  earlier: boolean;
  more: boolean;
  onStep(to: number): void;
  onFirst(): void;
  onLast(): void;
  onWrong(): void;
  onClose(): void;
}

/** Goes through the records of a run, one after the other. */
export default function Stepper({ items, at, n, all, earlier, more, onStep, onFirst, onLast, onWrong, onClose }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<string>('1');
  const o = items[at];
  const next = items[at + 1];

  useEffect(() => {
    if (!playing || !o || !next) {
      return undefined;
    }

    const apart = (Date.parse(next.started_at) - Date.parse(o.started_at)) / Number(speed);
    const timer = setTimeout(() => onStep(at + 1), Math.min(Math.max(apart, SHORTEST), LONGEST));

    return () => clearTimeout(timer);
  }, [playing, o, next, at, speed, onStep]);

  // the next thing that went wrong
  const wrong = items.findIndex((one, i) => i > at && wentWrong(one));
  const icon = { size: 15, 'aria-hidden': true } as const;

  return (
    <div role="group" aria-label={t('step.through')} className="flex flex-wrap items-center gap-1 border-b bg-raised px-3 py-1">
      <Button size="sm" look="quiet" aria-label={t('step.first')} icon={<ChevronFirst {...icon} />} disabled={at === 0 && !earlier} onClick={onFirst} />
      <Button size="sm" look="quiet" aria-label={t('step.back')} icon={<ChevronLeft {...icon} />} disabled={at === 0} onClick={() => onStep(at - 1)} />
      <Button size="sm" look="quiet" aria-label={playing ? t('replay.pause') : t('replay.play')}
        icon={playing ? <Pause {...icon} /> : <Play {...icon} />} onClick={() => setPlaying(!playing)}
      />
      <Button size="sm" look="quiet" aria-label={t('step.next')} icon={<ChevronRight {...icon} />} disabled={!next} onClick={() => onStep(at + 1)} />
      <Button size="sm" look="quiet" aria-label={t('step.last')} icon={<ChevronLast {...icon} />} disabled={!next && !more} onClick={onLast} />
      <span role="status" className="px-2 text-sm tabular-nums">
        {t('step.of', { n: n ?? '–', all })}
      </span>
      <Select aria-label={t('replay.speed')} value={speed} className="h-7" onChange={(e) => setSpeed(e.target.value)}>
        {SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}
      </Select>
      <Button size="sm" disabled={wrong < 0 && !more} onClick={onWrong}>{t('step.wrong')}</Button>
      <span className="flex-1" />
      <Button size="sm" look="quiet" aria-label={common('close')} icon={<X {...icon} />} onClick={onClose} />
    </div>
  );
}

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Download, Maximize, Pause, Play, SkipBack, StepBack, StepForward } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { apiUrl, path, request, wholeOf } from '@/api/request';
import type { OperationWhole } from '@/api/types';
import { save } from '@/lib/save';
import { useStored } from '@/lib/stored';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Select } from '@/ui/field';
import { harmless } from '@/ui/plain-text';
import { toastError } from '@/ui/toast';
import { type Cast, readCast, withoutIdle } from './cast';
import { Player, type State } from './player';

const SPEEDS = ['0.5', '1', '2', '4', '8'] as const;
const JUMP = 5;

const time = (s: number) => `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, '0')}`;

const recordingOf = (o: OperationWhole) => path`sandboxes/${o.sandbox_id ?? '_gateway'}/operations/${o.id}/recording`;

function Screen({ cast: recorded, operation: o }: { cast: Cast; operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const [speed, setSpeed] = useStored('replay.speed', SPEEDS, '1');
  const [idle, setIdle] = useStored('replay.idle', ['skip', 'keep'], 'skip');
  const cast = useMemo(() => (idle === 'skip' ? withoutIdle(recorded) : recorded), [recorded, idle]);
  const [state, setState] = useState<State>({ at: 0, length: cast.frames.at(-1)?.at ?? 0, playing: false });
  const frame = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const player = useRef<Player | null>(null);
  const first = useRef(cast);

  useEffect(() => {
    const made = new Player(host.current!, first.current, setState);

    player.current = made;
    // there is something to see before it is played
    made.seek(matchMedia('(prefers-reduced-motion: reduce)').matches ? made.length : 0);
    return () => {
      player.current = null;
      made.dispose();
    };
  }, []);

  useEffect(() => player.current?.change(cast), [cast]);
  useEffect(() => player.current?.setSpeed(Number(speed)), [speed]);

  const download = async () => {
    const response = await request(apiUrl(recordingOf(o)));
    save(await wholeOf(response.blob()), `${o.id}.cast`);
  };

  const marker = (by: 1 | -1) => {
    const to = by > 0 ? cast.markers.find((m) => m.at > state.at + 0.01) : cast.markers.findLast((m) => m.at < state.at - 0.5);
    player.current?.seek(to?.at ?? (by > 0 ? state.length : 0));
  };

  const keys: Record<string, () => void> = {
    ' ': () => player.current?.toggle(),
    'ArrowLeft': () => player.current?.seek(state.at - JUMP),
    'ArrowRight': () => player.current?.seek(state.at + JUMP),
    ',': () => player.current?.step(-1),
    '.': () => player.current?.step(1),
    '[': () => marker(-1),
    ']': () => marker(1),
    'f': () => void full(),
    'Home': () => player.current?.seek(0),
    'End': () => player.current?.seek(state.length),
  };

  const full = () => (document.fullscreenElement ? document.exitFullscreen() : frame.current!.requestFullscreen()).catch(toastError);

  const onKey = (e: KeyboardEvent) => {
    const at = e.target as HTMLElement;

    if (e.ctrlKey || e.metaKey || e.altKey || at.tagName === 'SELECT' || (e.key === ' ' && at.tagName === 'BUTTON')) {
      return;
    }

    const does = /^\d$/.test(e.key) ? () => player.current?.seek((state.length * Number(e.key)) / 10) : keys[e.key];

    if (does) {
      e.preventDefault();
      e.stopPropagation();
      does();
    }
  };

  const icon = { size: 15, 'aria-hidden': true } as const;

  return (
    <div ref={frame} role="group" aria-label={t('tabs.replay')} data-keys="own" tabIndex={0} onKeyDown={onKey}
      className="flex min-h-full flex-col bg-bg focus-visible:outline-offset-[-2px]"
    >
      <div className="flex flex-wrap items-center gap-1 border-b px-2 py-1.5">
        <Button size="sm" look="quiet" aria-label={t('replay.start')} icon={<SkipBack {...icon} />} onClick={() => player.current?.seek(0)} />
        <Button size="sm" look="quiet" aria-label={t('replay.back')} icon={<StepBack {...icon} />} onClick={() => player.current?.step(-1)} />
        <Button size="sm" aria-label={state.playing ? t('replay.pause') : t('replay.play')}
          icon={state.playing ? <Pause {...icon} /> : <Play {...icon} />} onClick={() => player.current?.toggle()}
        />
        <Button size="sm" look="quiet" aria-label={t('replay.next')} icon={<StepForward {...icon} />} onClick={() => player.current?.step(1)} />
        <span role="timer" className="px-1 text-xs text-dim tabular-nums">{time(state.at)} / {time(state.length)}</span>
        <span className="flex-1" />
        <Select aria-label={t('replay.speed')} value={speed} className="h-7" onChange={(e) => setSpeed(e.target.value as '1')}>
          {SPEEDS.map((s) => <option key={s} value={s}>{s}×</option>)}
        </Select>
        <label className="flex items-center gap-1.5 px-1 text-sm">
          <input type="checkbox" checked={idle === 'skip'} onChange={(e) => setIdle(e.target.checked ? 'skip' : 'keep')} />
          {t('replay.skipIdle')}
        </label>
        <Button size="sm" look="quiet" aria-label={t('replay.download')} icon={<Download {...icon} />} onClick={() => void download().catch(toastError)} />
        <Button size="sm" look="quiet" aria-label={t('replay.full')} icon={<Maximize {...icon} />} onClick={() => void full()} />
      </div>
      <div className="relative border-b px-3 pt-2 pb-1">
        <input type="range" aria-label={t('replay.seek')} aria-valuetext={time(state.at)} min={0} max={Math.max(state.length, 0.001)} step="any"
          value={Math.min(state.at, state.length)} onChange={(e) => player.current?.seek(Number(e.target.value))}
          className="w-full accent-(--c-accent)"
        />
        {state.length > 0 && cast.markers.map((m, i) => (
          <span key={i} aria-hidden title={harmless(m.label)} className="pointer-events-none absolute top-1 h-2 w-0.5 bg-warn"
            style={{ left: `calc(12px + ${m.at / state.length} * (100% - 24px))` }}
          />
        ))}
      </div>
      {recorded.cut && <p className="border-b bg-warn-tint px-3 py-1 text-xs">{t('replay.cut')}</p>}
      <div className="min-h-0 overflow-auto p-2">
        <div ref={host} aria-hidden className="recorded inline-block" />
        <pre role="region" className="sr-only" aria-label={t('replay.screen')}>{!state.playing && harmless(player.current?.text() ?? '')}</pre>
      </div>
      {cast.markers.length > 0 && (
        <ol aria-label={t('replay.markers')} className="border-t">
          {cast.markers.map((m, i) => (
            <li key={i}>
              <button type="button" className="flex h-7 w-full items-center gap-3 border-b px-3 text-left hover:bg-raised"
                onClick={() => player.current?.seek(m.at)}
              >
                <span className="w-14 shrink-0 text-xs text-dim tabular-nums">{time(m.at)}</span>
                <span className="recorded truncate">{harmless(m.label)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** What a terminal or a command showed, played again. */
export default function Replay({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['recording', o.id, o.status],
    queryFn: async ({ signal }) => readCast((await request(apiUrl(recordingOf(o)), { signal })).body!, signal),
    staleTime: Infinity,
    gcTime: 0,
  });

  if (error) {
    return <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>;
  }

  if (isPending) {
    return <Skeleton lines={8} className="p-3" />;
  }

  return data.frames.length === 0 ? <p className="px-3 py-4 text-sm text-dim">{t('noOutput')}</p> : <Screen cast={data} operation={o} />;
}

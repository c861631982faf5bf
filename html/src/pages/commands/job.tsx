import { useEffect, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { CircleStop } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { commandLogs, commandStatus, interruptCommand } from '@/api/commands';
import { ApiError } from '@/api/errors';
import { Button } from '@/ui/button';
import { ErrorNote } from '@/ui/error-note';
import { toastError } from '@/ui/toast';
import { RunBadge } from './badge';
import { Log } from './log';
import type { Line } from './runs';

const POLL = 1_500;
const MOST_LINES = 10_000;

interface Read {
  lines: Line[];
  /** The beginning of a line whose end is still to come. */
  rest: string;
  next: number;
}

function take(read: Read, text: string): Read {
  const parts = (read.rest + text).split(/\r\n|\n/);
  const rest = parts.pop()!;
  const lines = parts.map((one, i): Line => ({ n: read.next + i, stream: 'stdout', text: one }));

  return { rest, lines: [...read.lines, ...lines].slice(-MOST_LINES), next: read.next + lines.length };
}

/** A command in the background: how it is, and what it has written so far. */
export function Job({ sandbox, id, mayStop }: { sandbox: string; id: string; mayStop: boolean }) {
  const { t } = useTranslation('commands');
  const [stopping, setStopping] = useState(false);
  const [read, setRead] = useState<Read>({ lines: [], rest: '', next: 0 });
  const at = useRef({ cursor: 0, decoder: new TextDecoder() });
  const [logError, setLogError] = useState<unknown>(null);
  const status = useQuery({
    queryKey: ['command', sandbox, id],
    queryFn: ({ signal }) => commandStatus(sandbox, id, signal),
    refetchInterval: (q) => (q.state.data?.running === false || q.state.error ? false : POLL),
  });
  const running = status.data?.running;

  // the log is read on as long as it grows, and once more after the end
  useEffect(() => {
    if (running === undefined) {
      return undefined;
    }

    const aborter = new AbortController();
    let timer: ReturnType<typeof setTimeout>;

    const on = async () => {
      try {
        const { bytes, cursor } = await commandLogs(sandbox, id, at.current.cursor, aborter.signal);
        const text = at.current.decoder.decode(bytes, { stream: running });

        at.current.cursor = cursor;
        setRead((old) => take(old, text));
        setLogError(null);
      } catch (e) {
        if (aborter.signal.aborted) {
          return;
        }
        setLogError(e);
      }

      if (running) {
        timer = setTimeout(() => void on(), POLL);
      }
    };

    void on();
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [sandbox, id, running]);

  const stop = async () => {
    setStopping(true);

    try {
      await interruptCommand(sandbox, id);
      await status.refetch();
    } catch (e) {
      toastError(e);
    } finally {
      setStopping(false);
    }
  };

  if (status.error) {
    return status.error instanceof ApiError && status.error.status === 404
      ? <p className="px-3 py-4 text-sm text-dim">{t('jobOver')}</p>
      : <div className="p-3"><ErrorNote error={status.error} onRetry={() => void status.refetch()} /></div>;
  }

  const { data } = status;
  const lines = read.rest === '' ? read.lines
    : [...read.lines, { n: read.next, stream: 'stdout' as const, text: read.rest }];

  return (
    <>
      {logError !== null && <div className="p-3"><ErrorNote error={logError} /></div>}
      <Log lines={lines} empty={t(running ? 'waitingOutput' : 'noOutput')}>
        <span className="text-xs font-medium">{t('job')}</span>
        {data && (
          <RunBadge exit={data.exit_code ?? null}
            state={data.running ? (stopping ? 'interrupting' : 'running') : data.exit_code === 0 ? 'done' : 'failed'}
          />
        )}
        {running && mayStop && (
          <Button size="sm" look="danger" busy={stopping} icon={<CircleStop size={14} aria-hidden />} onClick={() => void stop()}>
            {t(stopping ? 'interrupting' : 'interrupt')}
          </Button>
        )}
      </Log>
    </>
  );
}

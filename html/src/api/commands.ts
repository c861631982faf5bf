// Commands of a sandbox, by execd's routes: a stream of events for one that is
// waited for, status and log for one in the background.

import { execd, execdUrl, path, request, wholeOf } from './request';

export interface CommandRequest {
  /** For a shell; of one that was given as words, how they would be typed. */
  command: string;
  /** Its words, which no shell reads. */
  argv?: string[];
  cwd?: string;
  /** Milliseconds. */
  timeout?: number;
  uid?: number;
  gid?: number;
  background?: boolean;
  envs?: Record<string, string>;
}

/** As execd takes it: words or a text. */
export const commandBody = ({ command, argv, ...rest }: CommandRequest) => (argv ? { argv, ...rest } : { command, ...rest });

export interface CommandStatus {
  id: string;
  running: boolean;
  exit_code?: number;
  error?: string;
  started_at: string;
  finished_at?: string;
}

export interface CommandSink {
  /** It was let through; the id of its record. */
  accepted(operation: string | null): void;
  /** It runs; execd's id of it. */
  started(id: string): void;
  line(stream: 'stdout' | 'stderr', text: string): void;
  ended(exit: number | null, why: string | null): void;
}

interface Event {
  type?: string;
  text?: string;
  message?: string;
  error?: { evalue?: string; traceback?: string[] | null };
}

const SILENT = 20_000;          // a sign of life comes every 3 s
const LONGEST_EVENT = 8 * 1024 * 1024;

/** One event of the stream; true when it is the last one that counts. */
function tell(line: string, sink: CommandSink): boolean {
  let e: Event;

  try {
    e = JSON.parse(line.replace(/^data:/, ''));
  } catch {
    return false;
  }

  switch (e.type) {
    case 'init':
      sink.started(e.text ?? '');
      return false;
    case 'stdout':
    case 'stderr':
      sink.line(e.type, e.text === '\n' ? '' : e.text ?? '');
      return false;
    case 'execution_complete':
      sink.ended(0, null);
      return true;
    case 'error': {
      const value = e.error?.evalue ?? '';
      const number = /^-?\d+$/.test(value);

      sink.ended(number ? Number(value) : null, e.error?.traceback?.[0] ?? (number ? null : value));
      return true;
    }
    case undefined:
      if (e.message !== undefined) {
        sink.ended(null, e.message);
        return true;
      }
  }

  return false;
}

/**
 * Runs a command, and tells what happens as it does.  False when the line was
 * cut before its end; an ApiError when it was refused.
 */
export async function runCommand(
  sandbox: string, what: CommandRequest, sink: CommandSink, again: string | null = null,
): Promise<boolean> {
  const aborter = new AbortController();
  const response = await request(execdUrl(sandbox, 'command'), {
    method: 'POST', json: commandBody(what), signal: aborter.signal,
    headers: { Accept: 'text/event-stream', ...(again ? { 'X-Parent-Operation-Id': again } : {}) },
  });

  sink.accepted(response.headers.get('X-Operation-Id'));

  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest: string[] = [];
  let size = 0;
  let over = false;

  // a line that is cut says nothing
  const cut = () => aborter.abort();
  let silence = setTimeout(cut, SILENT);

  addEventListener('offline', cut);

  try {
    for (;;) {
      const { done, value } = await reader.read();

      clearTimeout(silence);
      silence = setTimeout(cut, SILENT);

      const lines = done ? ['', ''] : decoder.decode(value, { stream: true }).split('\n');

      for (const [i, part] of lines.entries()) {
        size += part.length;

        // a line without an end may be longer than a page can hold
        if (size <= LONGEST_EVENT) {
          rest.push(part);
        }

        if (i < lines.length - 1) {
          over ||= tell(rest.join(''), sink);
          rest = [];
          size = 0;
        }
      }

      if (done) {
        return over;
      }
    }
  } catch {
    return over;
  } finally {
    clearTimeout(silence);
    removeEventListener('offline', cut);
  }
}

export const interruptCommand = (sandbox: string, id: string) =>
  execd<void>(sandbox, 'command', { method: 'DELETE', params: { id } });

export const commandStatus = (sandbox: string, id: string, signal?: AbortSignal) =>
  execd<CommandStatus>(sandbox, path`command/status/${id}`, { signal });

const MOST_LOG = 8 * 1024 * 1024;

/** What a background command has written from byte `cursor` on (of much, the end), and the cursor behind it. */
export async function commandLogs(sandbox: string, id: string, cursor: number, signal?: AbortSignal) {
  const response = await request(execdUrl(sandbox, path`command/${id}/logs`, { cursor }), { signal });
  const reader = response.body!.getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  let all = 0;

  for (;;) {
    const { done, value } = await wholeOf(reader.read(), signal);

    if (done) {
      break;
    }

    pieces.push(value);
    size += value.length;
    all += value.length;

    while (size > MOST_LOG && pieces.length > 1) {
      size -= pieces.shift()!.length;
    }
  }

  const bytes = new Uint8Array(size);
  let at = 0;

  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }

  return { bytes, cursor: Number(response.headers.get('Execd-Commands-Tail-Cursor') ?? cursor + all) };
}

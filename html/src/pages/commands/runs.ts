// The commands that this page has run, kept while the console is open: one may
// look at something else and find them going on.

import { useSyncExternalStore } from 'react';
import {
  type CommandRequest, commandStatus, interruptCommand, runCommand,
} from '@/api/commands';
import { ApiError } from '@/api/errors';

export interface Line {
  n: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

export type RunState =
  | 'starting' | 'running' | 'interrupting' | 'done' | 'failed' | 'timeout' | 'interrupted' | 'refused' | 'lost';

export interface Run {
  key: string;
  sandbox: string;
  /** Who has run it: whoever signs in next does not see it. */
  owner: string | null;
  request: CommandRequest;
  state: RunState;
  /** Of its record. */
  operation: string | null;
  /** execd's. */
  id: string | null;
  exit: number | null;
  why: string | null;
  error: unknown;
  startedAt: number;
  endedAt: number | null;
  lines: Line[];
  /** Lines that were let go of. */
  dropped: number;
  /** The line was cut; its end was asked for. */
  cut: boolean;
}

const MOST_RUNS = 50;
const MOST_LINES = 10_000;
const SLACK = 1_000;
const MOST_TEXT = 8 * 1024 * 1024;
const DRAWN_EVERY = 50;
const ASKED_EVERY = 2_000;

const runs = new Map<string, Run>();
const sizes = new Map<string, number>();
const listeners = new Set<() => void>();
let snapshot: readonly Run[] = [];
let told: ReturnType<typeof setTimeout> | undefined;
let last = 0;

/** All who look are told, but not for each line of thousands. */
function changed() {
  told ??= setTimeout(() => {
    told = undefined;
    snapshot = [...runs.values()].reverse();
    listeners.forEach((f) => f());
  }, DRAWN_EVERY);
}

function set(key: string, patch: Partial<Run>) {
  const run = runs.get(key);

  if (run) {
    runs.set(key, { ...run, ...patch });
    changed();
  }
}

function add(key: string, stream: Line['stream'], text: string) {
  const { lines, dropped } = runs.get(key)!;
  let size = (sizes.get(key) ?? 0) + text.length;
  let drop = 0;

  lines.push({ n: dropped + lines.length, stream, text });

  // many at once: an array is not moved for each line
  if (lines.length > MOST_LINES + SLACK || size > MOST_TEXT) {
    while (lines.length - drop > MOST_LINES || (size > MOST_TEXT / 2 && lines.length - drop > 1)) {
      size -= lines[drop++]!.text.length;
    }
  }

  sizes.set(key, size);
  set(key, drop === 0 ? {} : { lines: lines.slice(drop), dropped: dropped + drop });
}

const active = (run: Run) => run.endedAt === null;

function end(key: string, exit: number | null, why: string | null) {
  const run = runs.get(key)!;
  const killed = exit === -1 && /^signal: (?:terminated|killed)/.test(why ?? '');

  set(key, {
    exit, why, endedAt: Date.now(),
    state: exit === 0 ? 'done'
      : killed && run.state === 'interrupting' ? 'interrupted'
        : killed && run.request.timeout && Date.now() - run.startedAt >= run.request.timeout ? 'timeout' : 'failed',
  });
}

/** The line is cut, the command is not: its end can still be asked for. */
async function askForEnd(key: string) {
  const { id, sandbox } = runs.get(key)!;

  set(key, { cut: true });

  while (id !== null) {
    try {
      const s = await commandStatus(sandbox, id);

      if (!s.running) {
        end(key, s.exit_code ?? null, s.error ?? null);
        return;
      }
    } catch (e) {
      if (e instanceof ApiError && !e.passing) {
        break;
      }
    }
    await new Promise((f) => setTimeout(f, ASKED_EVERY));
  }

  set(key, { state: 'lost', endedAt: Date.now() });
}

/** Runs a command; its key. */
export function start(
  sandbox: string, owner: string | null, request: CommandRequest, again: string | null = null,
): string {
  const key = `run-${++last}`;

  runs.set(key, {
    key, sandbox, owner, request, state: 'starting', operation: null, id: null, exit: null, why: null, error: null,
    startedAt: Date.now(), endedAt: null, lines: [], dropped: 0, cut: false,
  });

  for (const old of [...runs.values()].filter((r) => !active(r)).slice(0, Math.max(0, runs.size - MOST_RUNS))) {
    runs.delete(old.key);
    sizes.delete(old.key);
  }

  changed();

  void runCommand(sandbox, request, {
    accepted: (operation) => set(key, { operation }),
    started: (id) => set(key, { id, state: 'running' }),
    line: (stream, text) => add(key, stream, text),
    ended: (exit, why) => end(key, exit, why),
  }, again).then((whole) => {
    if (!whole && active(runs.get(key)!)) {
      void askForEnd(key);
    }
  }, (error: unknown) => set(key, { error, state: 'refused', endedAt: Date.now() }));

  return key;
}

export async function interrupt(key: string): Promise<void> {
  const run = runs.get(key);

  if (!run?.id || !active(run)) {
    return;
  }

  set(key, { state: 'interrupting' });

  try {
    await interruptCommand(run.sandbox, run.id);
  } catch (e) {
    // it may have ended by itself meanwhile
    if (runs.get(key)!.state === 'interrupting') {
      set(key, { state: 'running' });
      throw e;
    }
  }
}

function subscribe(f: () => void) {
  listeners.add(f);
  return () => void listeners.delete(f);
}

/** Those of somebody in a sandbox, the newest first. */
export function useRuns(sandbox: string, owner: string | null): readonly Run[] {
  return useSyncExternalStore(subscribe, () => snapshot).filter((r) => r.sandbox === sandbox && r.owner === owner);
}

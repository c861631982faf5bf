// Who holds keys of a sandbox, and who waits for them.  The live stream tells
// when that may be otherwise; how it is, only the list does.

import { useCallback, useEffect, useRef, useState } from 'react';
import { queryOptions, useQueryClient } from '@tanstack/react-query';
import type { LiveState } from './live';
import { api, path } from './request';
import type { LiveEvent } from './types';

export interface Lock {
  /** Of the operation or lease. */
  id: string;
  state: 'held' | 'waiting' | 'queued';
  type: string;
  /** Who asked for it, as the gateway knows; may be empty. */
  actor: string;
  /** Of a lease: what it says of itself. */
  owner?: string;
  since: string;
  waited_ms: number;
  detached: boolean;
  keys: { path: string; mode: 'read' | 'write' }[];
  /** Of leases only. */
  fence?: number;
  expires_at?: string | null;
}

export const locksQuery = (sandbox: string) => queryOptions({
  queryKey: ['locks', sandbox],
  queryFn: ({ signal }) => api<{ items: Lock[]; more: boolean }>(path`sandboxes/${sandbox}/locks`, { signal }),
});

export const breakLock = (sandbox: string, lock: string) =>
  api<void>(path`sandboxes/${sandbox}/locks/${lock}`, { method: 'DELETE' });

// what comes with one event often comes with more; keys are taken right behind the beginning
const SETTLES = 200;
// an upload takes its keys once it is read, and says nothing of it
const WHILE_FILES_GO = 2_000;

export interface LocksFollowed {
  onEvent(e: LiveEvent): void;
  onState(s: LiveState): void;
}

/**
 * Keeps the list of locks right by what a live stream tells, which has to have
 * `lock` events and operations: keys that are had at once have no event of their own.
 */
export function useLocksFollowed(sandbox: string): LocksFollowed {
  const client = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const files = useRef(new Set<string>());
  const [busy, setBusy] = useState(false);

  const ask = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: ['locks', sandbox] });
    }, SETTLES);
  }, [client, sandbox]);

  useEffect(() => () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    files.current.clear();
    setBusy(false);
  }, [sandbox]);

  useEffect(() => {
    if (!busy) {
      return undefined;
    }

    const again = setInterval(ask, WHILE_FILES_GO);
    return () => clearInterval(again);
  }, [busy, ask]);

  const onEvent = useCallback((e: LiveEvent) => {
    if (e.event === 'output' || e.event === 'sandbox') {
      return;
    }

    if (e.event === 'operation' && e.data.type.startsWith('file.')) {
      files.current[e.data.phase === 'completed' ? 'delete' : 'add'](e.data.id);
    } else if (e.event === 'reset') {
      files.current.clear();
    }

    setBusy(files.current.size > 0);
    ask();
  }, [ask]);

  // between the list and the stream, or while it was away, something may have happened
  const onState = useCallback((s: LiveState) => {
    if (s === 'open') {
      ask();
    }
  }, [ask]);

  return { onEvent, onState };
}

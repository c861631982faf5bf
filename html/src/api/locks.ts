// Who holds keys of a sandbox, and who waits for them.

import { queryOptions } from '@tanstack/react-query';
import { api, path } from './request';

export interface Lock {
  /** Of the operation or lease. */
  id: string;
  state: 'held' | 'waiting' | 'queued';
  type: string;
  /** TYPE/ID */
  actor: string;
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
  refetchInterval: 2_000,
});

export const breakLock = (sandbox: string, lock: string) =>
  api<void>(path`sandboxes/${sandbox}/locks/${lock}`, { method: 'DELETE' });

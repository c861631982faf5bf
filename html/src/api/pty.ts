// Terminals of a sandbox, by execd's routes.  A handshake of a browser's carries
// no header: the session's cookie speaks for it.

import { operationsRoute } from './queries';
import { api, execd, execdUrl, path } from './request';
import type { Operation, OperationPage, OperationWhole } from './types';

export interface PtyStatus {
  session_id: string;
  running: boolean;
  output_offset: number;
}

export const openPty = async (sandbox: string): Promise<string> =>
  (await execd<{ session_id: string }>(sandbox, 'pty', { method: 'POST', json: {} })).session_id;

export const ptyStatus = (sandbox: string, pty: string, signal?: AbortSignal) =>
  execd<PtyStatus>(sandbox, path`pty/${pty}`, { signal });

export const endPty = (sandbox: string, pty: string) =>
  execd<void>(sandbox, path`pty/${pty}`, { method: 'DELETE' });

/**
 * Address of a terminal's socket: output from byte `since` on; `takeover` puts out
 * whoever has it.  `client` is a name for the record, which execd has no use for.
 */
export function ptySocket(sandbox: string, pty: string, since: number, client: string, takeover: boolean): string {
  const url = new URL(execdUrl(sandbox, path`pty/${pty}/ws`, { since, client, takeover: takeover ? 1 : null }));

  url.protocol = url.protocol.replace('http', 'ws');
  return url.href;
}

/** The records of this terminal having been open, newest first: who has it, who had it. */
export async function ptyOpens(sandbox: string, pty: string): Promise<Operation[]> {
  const { items } = await api<OperationPage>(operationsRoute(sandbox), { params: { type: 'pty.open', limit: 100 } });

  return items.filter((o) => o.summary?.includes(`/pty/${pty}/`));
}

/** The `client` by whom a terminal was opened, of one of those records. */
export async function ptyClient(sandbox: string, open: Operation): Promise<unknown> {
  return (await api<OperationWhole>(`${operationsRoute(sandbox)}/${encodeURIComponent(open.id)}`)).request?.client;
}

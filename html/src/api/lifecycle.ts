// OpenSandbox's own routes for sandboxes, recorded like any client's.

import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { api, lifecycle, path } from './request';
import type { Sandbox, SandboxPage } from './types';

export interface CreateRequest {
  image?: { uri: string };
  snapshotId?: string;
  entrypoint?: string[];
  env?: Record<string, string>;
  resourceLimits: Record<string, string>;
  timeout?: number;
  metadata?: Record<string, string>;
  networkPolicy?: { defaultAction: 'allow' | 'deny'; egress: { action: 'allow' | 'deny'; target: string }[] };
}

interface UpstreamSandbox {
  id: string;
  status: { state: string };
  metadata?: Record<string, string>;
  expiresAt?: string;
}

export interface Snapshot {
  id: string;
  sandboxId: string;
  name?: string;
  status: { state: string; message?: string };
  createdAt: string;
}

interface Page<T> { items: T[]; pagination: { hasNextPage: boolean } }

const ROWS = 200;
const PAGES = 25;

/** All pages of a list of upstream's, up to 5,000 items. */
async function all<T>(route: string, params: Record<string, string>, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];

  for (let page = 1; page <= PAGES; page++) {
    const answer = await lifecycle<Page<T>>(route, { params: { ...params, page, pageSize: ROWS }, signal });

    items.push(...answer.items);
    if (!answer.pagination.hasNextPage) {
      break;
    }
  }

  return items;
}

/** Ids of the sandboxes that have all of these metadata. */
export const metadataQuery = (metadata: Record<string, string>) => queryOptions({
  queryKey: ['sandboxes-by-metadata', metadata],
  queryFn: async ({ signal }) => new Set((await all<UpstreamSandbox>('sandboxes',
    { metadata: new URLSearchParams(metadata).toString() }, signal)).map((s) => s.id)),
  enabled: Object.keys(metadata).length > 0,
  refetchInterval: 10_000,
});

/** What upstream says of one sandbox. */
export const upstreamQuery = (id: string) => queryOptions({
  queryKey: ['upstream-sandbox', id],
  queryFn: ({ signal }) => lifecycle<UpstreamSandbox>(path`sandboxes/${id}`, { signal }),
});

export const snapshotsQuery = (sandbox?: string) => queryOptions({
  queryKey: ['snapshots', sandbox ?? null],
  queryFn: ({ signal }) => all<Snapshot>('snapshots', sandbox ? { sandboxId: sandbox } : {}, signal),
  // while one is being made
  refetchInterval: (q) => (q.state.data?.some((s) => s.status.state === 'Creating') ? 1_000 : 15_000),
});

const SEEN = 20;

/** Creates one, and waits (6 s at most) until the console knows it; its id. */
export async function createSandbox(client: QueryClient, what: CreateRequest): Promise<string> {
  const { id } = await lifecycle<UpstreamSandbox>('sandboxes', { json: what });

  for (let i = 0; i < SEEN; i++) {
    const known = await api<SandboxPage>('sandboxes', { params: { q: id } }).catch(() => null);

    if (known?.items.some((s) => s.id === id && s.state !== null)) {
      break;
    }
    await new Promise((done) => setTimeout(done, 300));
  }

  await client.invalidateQueries({ queryKey: ['sandboxes'] });
  return id;
}

export type Change = 'pause' | 'resume' | 'delete';

/** Changes a sandbox, and shows at once what it is then: the console's list is some seconds old. */
export async function changeSandbox(client: QueryClient, id: string, change: Change): Promise<void> {
  const route = path`sandboxes/${id}`;
  let state = 'Deleted';

  if (change === 'delete') {
    await lifecycle(route, { method: 'DELETE' });
  } else {
    await lifecycle(`${route}/${change}`, { method: 'POST' });
    state = (await lifecycle<UpstreamSandbox>(route)).status.state;
  }

  await showAs(client, id, { state });
}

export async function renewSandbox(client: QueryClient, id: string, ms: number): Promise<string> {
  const { expiresAt } = await lifecycle<{ expiresAt: string }>(path`sandboxes/${id}/renew-expiration`,
    { json: { expiresAt: new Date(Date.now() + ms).toISOString() } });

  await showAs(client, id, { expires_at: expiresAt });
  return expiresAt;
}

async function showAs(client: QueryClient, id: string, what: Partial<Sandbox>) {
  await client.cancelQueries({ queryKey: ['sandbox', id] });
  client.setQueryData<Sandbox | null>(['sandbox', id], (s) => s && { ...s, ...what });
  void client.invalidateQueries({ queryKey: ['sandboxes'] });
}

export const takeSnapshot = (id: string, name: string) =>
  lifecycle<Snapshot>(path`sandboxes/${id}/snapshots`, { json: name ? { name } : {} });

export const deleteSnapshot = (id: string) => lifecycle<void>(path`snapshots/${id}`, { method: 'DELETE' });

/** Where a browser opens a port of a sandbox: good once, and for a minute. */
export const openPort = async (id: string, port: number): Promise<string> =>
  (await api<{ url: string }>(path`sandboxes/${id}/ports/${port}`, { method: 'POST' })).url;

// What pages ask, in one place, so that one answer serves all who want it.

import {
  infiniteQueryOptions, keepPreviousData, queryOptions,
} from '@tanstack/react-query';
import { ApiError } from './errors';
import { api, lifecycle, path, type Params } from './request';
import type {
  Health, OperationPage, OperationWhole, OutputPage, Overview, Sandbox, SandboxPage,
} from './types';

/** Filters of lists of records, as the console API names them. */
export interface OperationFilters {
  type?: string[];
  status?: string[];
  actor?: string;
  actor_type?: string;
  source?: string;
  thread?: string;
  run?: string;
  correlation?: string;
  path?: string;
  exit_code?: string;
  q?: string;
  from?: string;
  to?: string;
  min_duration_ms?: string;
}

/** Where records are listed: of one sandbox, or of all. */
export const operationsRoute = (sandbox?: string) =>
  (sandbox === undefined ? 'operations' : path`sandboxes/${sandbox}/operations`);

export const liveRoute = (sandbox?: string) =>
  (sandbox === undefined ? 'live' : path`sandboxes/${sandbox}/live`);

export const overviewQuery = (params: { from?: string; to?: string } = {}) => queryOptions({
  queryKey: ['overview', params],
  queryFn: ({ signal }) => api<Overview>('overview', { params, signal }),
  placeholderData: keepPreviousData,
  refetchInterval: 10_000,
});

export const healthQuery = () => queryOptions({
  queryKey: ['health'],
  // 503 has a body too, which says what is wrong
  queryFn: ({ signal }) => api<Health>('health', { signal }),
  refetchInterval: 15_000,
});

export const sandboxesQuery = (params: { state?: string; q?: string; limit?: number }) =>
  infiniteQueryOptions({
    queryKey: ['sandboxes', params],
    queryFn: ({ signal, pageParam }) =>
      api<SandboxPage>('sandboxes', { params: { ...params, after: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

interface Upstream {
  id: string;
  status: { state: string };
  image?: { uri: string };
  metadata?: Record<string, string>;
  createdAt?: string;
  expiresAt?: string;
}

/** What upstream says of it: who may see certain sandboxes only gets no list.  One that upstream does not know may have a history. */
async function upstreamSandbox(id: string, signal: AbortSignal): Promise<Sandbox> {
  const s = await lifecycle<Upstream>(path`sandboxes/${id}`, { signal })
    .catch((e: unknown) => (e instanceof ApiError && e.status === 404 ? null : Promise.reject(e)));

  return {
    id, name: s?.metadata?.['agent_sandbox.name'] ?? s?.metadata?.sandbox_name ?? id, state: s?.status.state ?? 'Deleted',
    image: s?.image?.uri ?? null, created_at: s?.createdAt ?? null, expires_at: s?.expiresAt ?? null, last_activity_at: null,
    operations: null, failures: null, running: null, gaps: null, history_bytes: null, history: 'ok', upstream: s !== null,
  };
}

/** One sandbox out of the list: the console API has no route of its own for it. */
export const sandboxQuery = (id: string) => queryOptions({
  queryKey: ['sandbox', id],
  queryFn: async ({ signal, client }) => {
    if (client.getQueryData<{ sandboxes: readonly string[] } | null>(['session'])?.sandboxes.length) {
      return upstreamSandbox(id, signal);
    }

    const ask = (after: string | null) => api<SandboxPage>('sandboxes', { params: { q: id, limit: 50, after }, signal });
    const among = (of: SandboxPage) => of.items.find((s) => s.id === id);
    let page = await ask(null);

    // a short id is part of many others
    while (!among(page) && page.next !== null) {
      page = await ask(page.next);
    }

    const found = among(page);

    // a list that lacks something says nothing of what is not in it
    if (!found && (!page.complete || page.upstream !== 'ok')) {
      throw new ApiError(503, 'GATEWAY_OVERLOADED', '');
    }

    return found ?? null;
  },
  refetchInterval: 10_000,
});

interface Asked {
  data: { pages: readonly OperationPage[] } | undefined;
  dataUpdateCount: number;
  errorUpdateCount: number;
}

const ASK_AGAIN = 1_200;
const ASK_SELDOM = 20_000;

// how often a list was asked for, when its newest page was first seen to lack something
const lacking = new WeakMap<object, number>();

/**
 * When to ask again for a list whose newest page lacks what was acknowledged
 * and was not to be read yet.  Less often when it stays away: a search that
 * needs longer than it is given lacks something each time.
 */
function askAgain(q: { state: Asked }): number | false {
  const { data, dataUpdateCount, errorUpdateCount } = q.state;
  const asked = dataUpdateCount + errorUpdateCount;

  if (data?.pages[0]?.complete !== false) {
    lacking.delete(q);
    return false;
  }

  const since = lacking.get(q) ?? asked;

  lacking.set(q, since);
  return Math.min(ASK_AGAIN * 2 ** (asked - since), ASK_SELDOM);
}

export const operationsQuery = (sandbox: string | undefined, filters: OperationFilters, limit = 200) =>
  infiniteQueryOptions({
    queryKey: ['operations', sandbox ?? null, filters],
    queryFn: ({ signal, pageParam }) => api<OperationPage>(operationsRoute(sandbox), {
      params: { ...filters, limit, before: pageParam } as Params, signal,
    }),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    refetchInterval: askAgain,
  });

/** Counts of what passes the filters, without the records. */
export const facetsQuery = (sandbox: string | undefined, filters: OperationFilters) => queryOptions({
  queryKey: ['facets', sandbox ?? null, filters],
  queryFn: ({ signal }) => api<OperationPage>(operationsRoute(sandbox), {
    params: { ...filters, limit: 1, facets: 1 } as Params, signal,
  }),
  placeholderData: keepPreviousData,
  staleTime: 5_000,
  refetchInterval: 15_000,
});

export const operationQuery = (id: string, sandbox?: string) => queryOptions({
  queryKey: ['operation', id],
  queryFn: ({ signal }) =>
    api<OperationWhole>(`${operationsRoute(sandbox)}/${encodeURIComponent(id)}`, { signal }),
});

/** What it wrote, behind `after`. */
export const outputPage = (id: string, stream: 'stdout' | 'stderr' | 'both', after: number | null, sandbox?: string, signal?: AbortSignal) =>
  api<OutputPage>(`${operationsRoute(sandbox)}/${encodeURIComponent(id)}/output`, { params: { stream, after }, signal });

/** All that it wrote to stderr, as text: for what wrote little. */
export const stderrQuery = (id: string, sandbox?: string) => queryOptions({
  queryKey: ['stderr', id],
  queryFn: async ({ signal }) => {
    let said = '';
    let after: number | null = null;

    do {
      const page: OutputPage = await outputPage(id, 'stderr', after, sandbox, signal);

      said += page.items.map((i) => i.text ?? '').join('');
      after = page.next;
    } while (after !== null);

    return said;
  },
  staleTime: Infinity,
  gcTime: 60_000,
});

// Runs, as the records of their operations tell of them: there is no list of
// runs, so the newest records are read, page by page, and counted.

import { infiniteQueryOptions } from '@tanstack/react-query';
import { operationsRoute } from '@/api/queries';
import { api } from '@/api/request';
import type { Operation, OperationPage } from '@/api/types';

/** Most that one answer may have. */
const PAGE = 500;

export interface Run {
  name: string;
  /** When its first and its last operation began, as far as they were read. */
  first: string;
  last: string;
  operations: number;
  failures: number;
  running: boolean;
  actors: string[];
  sandboxes: string[];
}

export const runsQuery = () => infiniteQueryOptions({
  queryKey: ['runs'],
  queryFn: ({ signal, pageParam }) => api<OperationPage>(operationsRoute(), { params: { limit: PAGE, before: pageParam }, signal }),
  initialPageParam: null as number | null,
  getNextPageParam: (page) => page.next,
  // all pages are read again: not by itself once there are several
  refetchInterval: (q) => ((q.state.data?.pages.length ?? 1) === 1 ? 10_000 : false),
});

/** The runs of some records, newest first, the one that did something last before the others. */
export function runsOf(records: readonly Operation[]): Run[] {
  const runs = new Map<string, Run & { actorsSeen: Set<string>; sandboxesSeen: Set<string> }>();

  for (const o of records) {
    if (!o.actor.run) {
      continue;
    }

    let run = runs.get(o.actor.run);

    if (!run) {
      run = { name: o.actor.run, first: o.started_at, last: o.started_at, operations: 0, failures: 0, running: false,
        actors: [], sandboxes: [], actorsSeen: new Set(), sandboxesSeen: new Set() };
      runs.set(o.actor.run, run);
    }

    run.first = o.started_at;
    run.operations++;
    run.failures += o.status === 'failed' || o.status === 'timeout' ? 1 : 0;
    run.running ||= o.status === 'started';
    run.actorsSeen.add(o.actor.id ?? o.actor.type);

    if (o.sandbox_id && o.sandbox_id !== '_gateway') {
      run.sandboxesSeen.add(o.sandbox_id);
    }
  }

  return [...runs.values()].map(({ actorsSeen, sandboxesSeen, ...run }) => ({ ...run, actors: [...actorsSeen], sandboxes: [...sandboxesSeen] }));
}

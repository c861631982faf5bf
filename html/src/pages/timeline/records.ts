// The window on a timeline's records, and the live stream that feeds it.

import { useEffect, useState, useSyncExternalStore } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { type LiveState, useLive } from '@/api/live';
import { liveRoute, type OperationFilters, operationQuery } from '@/api/queries';
import type { Params } from '@/api/request';
import { hides } from './filters';
import { type Held, RecordWindow } from './window';

export interface Records extends Held {
  window: RecordWindow;
  live: LiveState | 'off';
  /** The record that the list was opened at, when it is in it. */
  startAt: string | undefined;
}

const EMPTY = { get: () => null, subscribe: () => () => {} };

interface Asked {
  sandbox: string | undefined;
  filters: OperationFilters;
  not: readonly string[];
  follow: boolean;
  /** A record to begin at: the list is what is around it. */
  at: string | undefined;
}

export function useRecords({ sandbox, filters, not, follow, at }: Asked): Records | null {
  const client = useQueryClient();
  const key = JSON.stringify([sandbox ?? null, filters, not]);
  const [made, setMade] = useState<{ window: RecordWindow; key: string; startAt: string | undefined } | null>(null);

  useEffect(() => {
    const window = new RecordWindow({ sandbox, filters, hidden: hides(not) });
    let over = false;

    setMade({ window, key, startAt: at });
    // a record that is not here any more: the newest ones then
    void (at === undefined ? Promise.resolve(undefined)
      : client.fetchQuery({ ...operationQuery(at, sandbox), staleTime: 10_000 }).then((o) => o.cursor, () => undefined))
      .then((cursor) => (over ? undefined : window.show(cursor)));

    return () => {
      over = true;
      window.close();
    };
    // `at` is where it begins, not where it goes on
  }, [key, client]);

  // a link leads to a record of the same list that is far away
  useEffect(() => {
    const { window } = made ?? {};

    if (at === undefined || !window || made?.startAt === at || window.get().loading || window.get().items.some((o) => o.id === at)) {
      return undefined;
    }

    let over = false;

    client.fetchQuery({ ...operationQuery(at, sandbox), staleTime: 10_000 }).then(({ cursor }) => {
      const { items, older, newer } = window.get();
      const far = (older && cursor < items[0]!.cursor) || (newer && cursor > items.at(-1)!.cursor);

      if (!over && items.length > 0 && far) {
        setMade((m) => m && { ...m, startAt: at });
        void window.show(cursor);
      }
    }, () => undefined);

    return () => { over = true; };
  }, [at, made, client, sandbox]);

  const source = made?.window ?? EMPTY;
  const held = useSyncExternalStore(source.subscribe, source.get);
  const { q: _q, status: _status, ...others } = filters;

  const live = useLive({
    route: liveRoute(sandbox),
    params: { ...others, output: 0 } as Params,
    after: made?.window.cursor,
    // it goes on where a page ended: not before there was one
    enabled: follow && made?.key === key && held !== null && !held.loading && held.older !== null,
    onEvent: (e) => made?.window.tell(e),
    onState: (to) => { if (to === 'open') made?.window.recover(); },
  });

  return made && held && { ...held, window: made.window, live, startAt: made.startAt };
}

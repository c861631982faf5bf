// The records of a timeline: pages of the history, newest first, and in front
// of them what is told live.  Nothing is lost between the two: the live stream
// begins behind the newest record that the first page had.

import { useCallback, useMemo, useReducer, useState } from 'react';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { type LiveState, useLive } from '@/api/live';
import { liveRoute, type OperationFilters, operationsQuery } from '@/api/queries';
import type { Params } from '@/api/request';
import type { LiveEvent, Operation } from '@/api/types';

// told live and not yet part of a page: then the pages are asked for again
const MOST_LIVE = 2_000;

interface Told {
  records: Map<string, Operation>;
  version: number;
}

type Action = { record: Operation } | 'forget';

function tell(told: Told, action: Action): Told {
  if (action === 'forget') {
    return { records: new Map(), version: told.version + 1 };
  }

  const { record } = action;
  const before = told.records.get(record.id);

  // a list is in the order in which operations began
  told.records.set(record.id, before ? { ...record, cursor: before.cursor } : record);
  return { records: told.records, version: told.version + 1 };
}

export interface Records {
  items: Operation[];
  /** Records that came since one has left the top. */
  fresh: number;
  /** Shows them. */
  catchUp(): void;
  live: LiveState | 'off';
  loading: boolean;
  error: Error | null;
  complete: boolean;
  loadMore(): void;
  loadingMore: boolean;
  end: boolean;
  retry(): void;
}

export function useRecords(sandbox: string | undefined, filters: OperationFilters, follow: boolean, held: boolean): Records {
  const client = useQueryClient();
  const options = operationsQuery(sandbox, filters);
  const query = useInfiniteQuery(options);
  const [told, dispatch] = useReducer(tell, { records: new Map(), version: 0 });
  const [shownTo, setShownTo] = useState(Infinity);
  const key = JSON.stringify(options.queryKey);
  const [lastKey, setLastKey] = useState(key);

  if (key !== lastKey) {
    setLastKey(key);
    setShownTo(Infinity);
    dispatch('forget');
  }

  const again = useCallback(() => {
    dispatch('forget');
    void client.resetQueries({ queryKey: JSON.parse(key) as unknown[] });
  }, [client, key]);

  const pages = query.data?.pages;
  const { q, ...others } = filters;

  const live = useLive({
    route: liveRoute(sandbox),
    params: { ...others, output: 0 } as Params,
    after: pages?.[0]?.items[0]?.cursor,
    // full text is not filtered live
    enabled: follow && !q && query.isSuccess && !query.isPlaceholderData,
    onEvent: (e: LiveEvent) => {
      if (e.event === 'operation') {
        dispatch({ record: e.data });
        if (told.records.size > MOST_LIVE) {
          again();
        }
      } else if (e.event === 'reset' || (e.event === 'gap' && e.data.operation_id === null)) {
        again();
      }
    },
  });

  const all = useMemo(() => {
    const old = (pages ?? []).flatMap((p) => p.items);
    const known = new Set(old.map((o) => o.id));
    const fresh = [...told.records.values()]
      .filter((o) => !known.has(o.id)).sort((a, b) => b.cursor - a.cursor);

    return [
      ...fresh,
      ...old.map((o) => {
        const now = told.records.get(o.id);
        return now ? { ...now, seq: now.seq ?? o.seq, cursor: o.cursor } : o;
      }),
    ];
    // the map is changed in place; its version says so
  }, [pages, told.records, told.version]);

  // whoever reads further down is not moved by what comes on top
  const newest = all[0]?.cursor ?? 0;

  if (!held && shownTo !== Infinity) {
    setShownTo(Infinity);
  } else if (held && shownTo === Infinity && newest > 0) {
    setShownTo(newest);
  }

  const items = useMemo(
    () => (shownTo === Infinity ? all : all.filter((o) => o.cursor <= shownTo)), [all, shownTo]);

  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;

  return {
    items,
    fresh: all.length - items.length,
    catchUp: () => setShownTo(Infinity),
    live,
    loading: query.isPending,
    error: query.error,
    complete: pages?.every((p) => p.complete) ?? true,
    loadMore: useCallback(() => {
      if (hasNextPage && !isFetchingNextPage) {
        void fetchNextPage();
      }
    }, [fetchNextPage, hasNextPage, isFetchingNextPage]),
    loadingMore: isFetchingNextPage,
    end: query.isSuccess && !hasNextPage,
    retry: again,
  };
}

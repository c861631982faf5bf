// How many records began when: bars of equal length over a time.

import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { type OperationFilters, operationsRoute } from './queries';
import { api, type Params } from './request';
import type { Histogram, OperationPage } from './types';

export const histogramQuery = (sandbox: string | undefined, filters: OperationFilters, buckets: number) => queryOptions({
  queryKey: ['histogram', sandbox ?? null, filters, buckets],
  queryFn: async ({ signal }): Promise<Histogram> => {
    const page = await api<OperationPage>(operationsRoute(sandbox), {
      params: { ...filters, limit: 1, buckets } as Params, signal,
    });

    return page.histogram!;
  },
  enabled: !!filters.from,
  placeholderData: keepPreviousData,
  refetchInterval: filters.to ? false : 10_000,
});

/** When the oldest of the records began: where the bars begin when no time was asked for. */
export function useOldest(sandbox: string | undefined, filters: OperationFilters, enabled: boolean): string | undefined {
  const { data } = useQuery({
    queryKey: ['oldest', sandbox ?? null, filters],
    queryFn: async ({ signal }) => {
      const page = await api<OperationPage>(operationsRoute(sandbox), {
        params: { ...filters, limit: 1, order: 'asc' } as Params, signal,
      });

      return page.items[0]?.started_at ?? null;
    },
    enabled,
    staleTime: 60_000,
  });

  return data ?? undefined;
}

// Names of sandboxes, for lists of records that know their ids only.

import { useCallback, useMemo } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api } from './request';
import { useSession } from './session';
import type { SandboxPage } from './types';

// what is beyond is called by its id
const MOST = 500;

/** What a sandbox is called; its id where nobody knows better. */
export function useSandboxNames(): (id: string) => string {
  const { limited } = useSession();
  const { data } = useQuery({
    enabled: !limited,
    queryKey: ['sandbox-names'],
    queryFn: ({ signal }) => api<SandboxPage>('sandboxes', { params: { limit: MOST }, signal }),
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
  const names = useMemo(() => new Map(data?.items.map((s) => [s.id, s.name])), [data]);

  return useCallback((id: string) => names.get(id) || id, [names]);
}

import { useEffect, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { ChevronRight } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { outputPage } from '@/api/queries';
import type { Operation } from '@/api/types';
import { useFormat } from '@/lib/format';
import { Recorded } from '@/ui/plain-text';
import { plain } from './ansi';

// a row that is only scrolled past asks nothing
const RESTS = 150;
const EMPTY = 2_000;

/** Is this row still there, a moment after it came into sight? */
export function useRests(): boolean {
  const [rests, setRests] = useState(false);

  useEffect(() => {
    const timer = setTimeout(() => setRests(true), RESTS);
    return () => clearTimeout(timer);
  }, []);

  return rests;
}

/** How a command's output begins, and how long it is: all of it is one click away. */
export function FirstWords({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { count } = useFormat();
  const rests = useRests();
  const { data } = useQuery({
    queryKey: ['first-words', o.id],
    queryFn: ({ signal }) => outputPage(o.id, 'both', null, o.sandbox_id ?? undefined, signal),
    select: (page) => plain(page.items.map((i) => i.text ?? '').join('')).trimEnd().split('\n'),
    staleTime: Infinity, gcTime: 60_000, enabled: rests,
    // it has only just ended: what it wrote can be read a moment later
    refetchInterval: ({ state }) => (state.data?.items.length === 0 ? EMPTY : false),
  });
  const line = data?.find((l) => l.trim() !== '');

  return line !== undefined && (
    <>
      <span className="flex min-w-0 flex-1 items-center gap-1 text-dim">
        <ChevronRight size={12} aria-hidden className="shrink-0" />
        <Recorded text={line} className="truncate" />
      </span>
      {data!.length > 1 && <span className="shrink-0 text-dim tabular-nums">{t('lines', { count: data!.length, n: count(data!.length) })}</span>}
    </>
  );
}

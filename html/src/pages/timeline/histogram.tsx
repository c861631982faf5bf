import { useRef } from 'react';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { histogramQuery, useOldest } from '@/api/histogram';
import type { OperationFilters } from '@/api/queries';
import { useFormat } from '@/lib/format';
import type { Histogram } from '@/api/types';
import { Bars } from '@/ui/bars';
import { addBars, termsOf } from './counted';
import type { SetTimelineSearch, TimelineSearch } from './filters';

const BARS = 120;

interface Props {
  sandbox: string | undefined;
  filters: OperationFilters;
  /** Values that are left out of what passes. */
  not: readonly string[];
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
}

/** The bars without what is left out: undefined while it is counted, or when that cannot be. */
function useLeftOut(whole: Histogram | undefined, sandbox: string | undefined, filters: OperationFilters, not: readonly string[]) {
  const terms = termsOf(sandbox, filters, not);
  const off = whole && terms ? terms.slice(1) : [];

  // of exactly the time that the whole is of: else the bars would not fit each other
  const bars = useQueries({
    queries: off.map((t) => ({
      ...histogramQuery(t.sandbox, { ...t.filters, from: whole!.from, to: whole!.to }, BARS), staleTime: Infinity, gcTime: 15_000,
      placeholderData: undefined,
    })),
    combine: (answers) => answers.map((r) => r.data),
  });
  const all = [whole, ...bars];
  const fits = whole && terms && all.every((h) => h !== undefined) ? addBars(terms, all as Histogram[]) : null;
  const last = useRef<{ key: string; of: Histogram } | null>(null);
  const key = JSON.stringify([sandbox, filters, not]);

  if (fits) {
    last.current = { key, of: fits };
  }

  // while the next ones are on their way
  return fits ?? (last.current?.key === key ? last.current.of : undefined);
}

/** When the records of the list began; a stretch that is drawn becomes the list's range. */
export function TimelineHistogram({ sandbox, filters, not, search, setSearch }: Props) {
  const { t } = useTranslation('timeline');
  const { count, moment } = useFormat();
  const oldest = useOldest(sandbox, filters, !filters.from);
  const { data: whole } = useQuery(histogramQuery(sandbox, { ...filters, from: filters.from || oldest }, BARS));
  const data = useLeftOut(whole, sandbox, filters, not);
  const before = useRef<{ from: string; to: string }[]>([]);

  if (!data || data.counts.length === 0) {
    return <div aria-hidden className="h-14 border-b" />;
  }

  const total = data.counts.reduce((sum, c) => sum + c.total, 0);

  return (
    <Bars
      of={data} className="h-14 border-b px-3 pt-1 pb-4"
      label={t('histogram', { from: moment(data.from), to: moment(data.to), count: total })}
      said={(at, n, failed) => t('bar', { at: moment(at), count: n, failed: count(failed) })}
      onZoom={(from, to) => {
        before.current.push({ from: search.from, to: search.to });
        setSearch({ from, to });
      }}
      onBack={() => setSearch(before.current.pop() ?? { from: '', to: '' })}
    />
  );
}

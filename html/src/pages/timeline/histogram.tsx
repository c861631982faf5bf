import { useRef } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { histogramQuery, useOldest } from '@/api/histogram';
import type { OperationFilters } from '@/api/queries';
import { useFormat } from '@/lib/format';
import { Bars } from '@/ui/bars';
import type { SetTimelineSearch, TimelineSearch } from './filters';

const BARS = 120;

interface Props {
  sandbox: string | undefined;
  filters: OperationFilters;
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
}

/** When the records of the list began; a stretch that is drawn becomes the list's range. */
export function TimelineHistogram({ sandbox, filters, search, setSearch }: Props) {
  const { t } = useTranslation('timeline');
  const { count, moment } = useFormat();
  const oldest = useOldest(sandbox, filters, !filters.from);
  const { data } = useQuery(histogramQuery(sandbox, { ...filters, from: filters.from || oldest }, BARS));
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

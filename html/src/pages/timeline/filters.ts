import type { OperationFilters } from '@/api/queries';
import { STATUSES } from '@/api/types';
import { defineSearch, flag, list, text } from '@/lib/search';

/** What a timeline keeps in its address, named as the console API names it. */
export const useTimelineSearch = defineSearch({
  q: text(),
  type: list(),
  status: list(STATUSES),
  actor: text(),
  actor_type: text(),
  source: text(),
  run: text(),
  thread: text(),
  correlation: text(),
  path: text(),
  exit_code: text(),
  min_duration_ms: text(),
  from: text(),
  to: text(),
  /** The record that is open. */
  op: text(),
  /** The live tail stands still. */
  still: flag(),
});

export type TimelineSearch = ReturnType<typeof useTimelineSearch>[0];
export type SetTimelineSearch = ReturnType<typeof useTimelineSearch>[1];

export const FILTERS = ['type', 'status', 'actor_type', 'actor', 'source', 'run', 'thread', 'correlation', 'path',
  'exit_code', 'min_duration_ms', 'from', 'to'] as const;
export type FilterName = (typeof FILTERS)[number];

/** The same as questions to the console API. */
export function filtersOf(s: TimelineSearch, run?: string): OperationFilters {
  const { op: _op, still: _still, ...filters } = s;

  return {
    ...filters,
    run: run ?? s.run,
  };
}

export const NO_FILTERS = {
  q: '', type: [], status: [], actor: '', actor_type: '', source: '', run: '', thread: '', correlation: '', path: '',
  exit_code: '', min_duration_ms: '', from: '', to: '',
} satisfies Partial<TimelineSearch>;

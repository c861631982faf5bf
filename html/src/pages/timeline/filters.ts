import type { OperationFilters } from '@/api/queries';
import { type Operation, STATUSES } from '@/api/types';
import { choice, defineSearch, flag, list, text } from '@/lib/search';

export const GROUPS = ['none', 'run', 'actor'] as const;

/** What is filtered, as a file. */
export const FORMATS = ['jsonl', 'csv', 'html'] as const;
export type ExportFormat = (typeof FORMATS)[number];

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
  /** Values that are not shown: `type:file.read`. */
  not: list(),
  group: choice(GROUPS),
  /** The record that is open. */
  op: text(),
  /** What of it is looked at. */
  tab: text(),
  /** Everything around that record, whatever the filters. */
  around: text(),
  /** The live tail stands still. */
  still: flag(),
});

export type TimelineSearch = ReturnType<typeof useTimelineSearch>[0];
export type SetTimelineSearch = ReturnType<typeof useTimelineSearch>[1];

export const FILTERS = ['type', 'status', 'actor_type', 'actor', 'source', 'run', 'thread', 'correlation', 'path',
  'exit_code', 'min_duration_ms', 'from', 'to'] as const;
export type FilterName = (typeof FILTERS)[number];

/** Filters whose values nobody lists. */
export const TYPED = ['path', 'exit_code', 'min_duration_ms', 'run', 'thread', 'correlation'] as const satisfies readonly FilterName[];

/** What people do in the console is left out of lists unless it is asked for. */
export const PEOPLE = 'console.*';

/** Properties of which values can be left out. */
const VALUE = {
  type: (o: Operation) => o.type,
  status: (o: Operation) => o.status,
  actor: (o: Operation) => `${o.actor.type}:${o.actor.id ?? ''}`,
  source: (o: Operation) => o.source,
  run: (o: Operation) => o.actor.run,
  thread: (o: Operation) => o.actor.thread,
  correlation: (o: Operation) => o.actor.correlation,
  path: (o: Operation) => o.file?.path ?? null,
  exit_code: (o: Operation) => (o.exit_code === null ? null : String(o.exit_code)),
  sandbox: (o: Operation) => o.sandbox_id,
} as const;
export type Property = keyof typeof VALUE;

export const valueOf = (o: Operation, name: Property): string | null => VALUE[name](o);

const split = (text: string): [string, string] => {
  const at = text.indexOf(':');
  return [text.slice(0, at), text.slice(at + 1)];
};

/** The filters, changed so that only this value is left, or one more of its kind. */
export function only(s: TimelineSearch, name: Exclude<Property, 'sandbox'>, value: string): Partial<TimelineSearch> {
  const not = s.not.filter((n) => n !== `${name}:${value}`);

  if (name === 'type' || name === 'status') {
    const all = s[name] as string[];
    return { not, [name]: all.includes(value) ? all : [...all, value] };
  }

  if (name === 'actor') {
    const [actor_type, actor] = split(value);
    return { not, actor_type, actor };
  }

  return { not, [name]: value };
}

/** The filters without what `only` did. */
export function without(s: TimelineSearch, name: Property, value: string): Partial<TimelineSearch> {
  const not = s.not.filter((n) => n !== `${name}:${value}`);

  if (name === 'type' || name === 'status') {
    return { not, [name]: (s[name] as string[]).filter((v) => v !== value) };
  }

  return name === 'actor' ? { not, actor_type: '', actor: '' } : { not, ...(name === 'sandbox' ? {} : { [name]: '' }) };
}

/** The filters, changed so that this value is left out. */
export const except = (s: TimelineSearch, name: Property, value: string): Partial<TimelineSearch> => ({
  ...without(s, name, value), not: [...new Set([...s.not, `${name}:${value}`])],
});

export const isOnly = (s: TimelineSearch, name: Property, value: string): boolean => {
  switch (name) {
    case 'type':
    case 'status': return (s[name] as string[]).includes(value);
    case 'actor': return s.actor !== '' && `${s.actor_type}:${s.actor}` === value;
    case 'sandbox': return false;
    default: return s[name] === value;
  }
};

export const isExcept = (s: TimelineSearch, name: Property, value: string): boolean => s.not.includes(`${name}:${value}`);

/** What is left out, by property. */
export const splitNot = (not: readonly string[]): [Property, string][] =>
  [...new Set(not)].map(split).filter(([name]) => name in VALUE) as [Property, string][];

/** Is a record left out? */
export function hides(not: readonly string[]): (o: Operation) => boolean {
  const all = splitNot(not);

  return (o) => all.some(([name, value]) => VALUE[name](o) === value);
}

/** The same as questions to the console API. */
export function filtersOf(s: TimelineSearch, run?: string): OperationFilters {
  const { op: _op, tab: _tab, around, still: _still, group: _group, not, ...filters } = s;
  const unwanted = not.flatMap((n) => (n.startsWith('status:') ? [n.slice('status:'.length)] : []));

  if (around) {
    return run === undefined ? {} : { run };
  }

  return {
    ...filters,
    status: unwanted.length > 0
      ? (s.status.length > 0 ? s.status : STATUSES).filter((v) => !unwanted.includes(v)) : s.status,
    run: run ?? s.run,
  };
}

/** The same list, of one sandbox: of a run whose page it was, too. */
export const inSandbox = (id: string, s: TimelineSearch, run: string | undefined): string =>
  `/sandboxes/${encodeURIComponent(id)}/history${useTimelineSearch.link({ ...s, run: run ?? s.run })}`;

export const NO_FILTERS = {
  q: '', type: [], status: [], actor: '', actor_type: '', source: '', run: '', thread: '', correlation: '', path: '',
  exit_code: '', min_duration_ms: '', from: '', to: '', not: [],
} satisfies Partial<TimelineSearch>;

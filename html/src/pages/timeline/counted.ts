// How many records there are without those that are left out.  The console API
// counts what passes, not what does not: what is left out is counted by itself
// and taken off, what is left out twice is put back.

import { useQueries } from '@tanstack/react-query';
import { facetsQuery, type OperationFilters } from '@/api/queries';
import type { Facets, FacetValues, Histogram, OperationPage } from '@/api/types';
import { type Property, splitNot } from './filters';

export interface Term {
  sign: 1 | -1;
  sandbox: string | undefined;
  filters: OperationFilters;
  /** What of it counts values that are left out. */
  off: readonly Property[];
}

const MOST_TERMS = 8;
const MOST_TYPES = 32;

const escaped = (s: string) => s.replace(/[.+?^${}()|[\]\\]/g, '\\$&');

/** Is a type asked for?  Without any, what people look at is not. */
const asksFor = (globs: readonly string[], type: string) => (globs.length === 0 ? !type.startsWith('console.')
  : globs.some((g) => new RegExp(`^${escaped(g).replaceAll('*', '.*')}$`).test(type)));

/** A question, narrowed to values of one property: null when nothing passes it, undefined when it cannot be asked. */
function narrowed(t: Term, name: Property, values: string[]): Term[] | undefined {
  const with_ = (filters: OperationFilters, sandbox = t.sandbox): Term => (
    { sign: t.sign === 1 ? -1 : 1, sandbox, filters: { ...t.filters, ...filters }, off: [...t.off, name] });

  switch (name) {
    case 'type': {
      const asked = values.filter((v) => asksFor(t.filters.type ?? [], v));

      return asked.length > MOST_TYPES ? undefined : asked.length > 0 ? [with_({ type: asked })] : [];
    }
    case 'actor': {
      const all = values.map((v) => [v.slice(0, v.indexOf(':')), v.slice(v.indexOf(':') + 1)] as const);

      // nobody can ask for those without an id
      return all.some(([, actor]) => actor === '') ? undefined
        : all.filter(([type, actor]) => (t.filters.actor_type || type) === type && (t.filters.actor || actor) === actor)
          .map(([actor_type, actor]) => with_({ actor_type, actor }));
    }
    case 'sandbox':
      return values.filter((v) => (t.sandbox ?? v) === v).map((v) => with_({}, v));
    case 'status':
      return [];      // is part of the question itself
    case 'path':
      return undefined;   // is asked of all files of a record, and left out by the one that is shown
    default:
      return values.filter((v) => (t.filters[name] || v) === v).map((v) => with_({ [name]: v }));
  }
}

/** What has to be counted, and added up; null when that would be too much, or cannot be asked. */
export function termsOf(sandbox: string | undefined, filters: OperationFilters, not: readonly string[]): Term[] | null {
  const by = new Map<Property, string[]>();

  for (const [name, value] of splitNot(not)) {
    by.set(name, [...by.get(name) ?? [], value]);
  }

  let all: Term[] = [{ sign: 1, sandbox, filters, off: [] }];

  for (const [name, values] of by) {
    const off = all.map((t) => narrowed(t, name, values));

    if (off.some((one) => one === undefined)) {
      return null;
    }

    all = [...all, ...off.flatMap((one) => one!)];

    if (all.length > MOST_TERMS) {
      return null;
    }
  }

  return all;
}

function addValues(of: readonly { sign: number; values: FacetValues }[]): FacetValues {
  const all = new Map<string, number>();
  const cut = new Set<string>();

  for (const value of of[0]!.values.values) {
    all.set(value.value, 0);
  }

  for (const { sign, values } of of) {
    for (const value of all.keys()) {
      const found = values.values.find((v) => v.value === value);

      if (!found && values.other > 0) {
        cut.add(value);
      }
      all.set(value, all.get(value)! + sign * (found?.count ?? 0));
    }
  }

  return {
    values: [...all].filter(([value]) => !cut.has(value)).map(([value, count]) => ({ value, count: Math.max(0, count) })),
    other: Math.max(0, of.reduce((sum, { sign, values }) => sum + sign * values.other, 0)),
  };
}

/** Counts of all terms as one; null when one of them is not exact, for what is missing is not the same in all. */
export function addFacets(terms: readonly Term[], all: readonly Facets[]): Facets | null {
  const [first] = all;

  if (all.length === 1) {
    return first!;
  }
  if (all.some((f) => !f.exact)) {
    return null;
  }

  const sum = (of: (f: Facets) => number) => Math.max(0, all.reduce((n, f, i) => n + terms[i]!.sign * of(f), 0));
  // a value that is left out says how much it is
  const values = (name: 'type' | 'status' | 'actor' | 'sandbox' | 'source') => addValues(
    all.flatMap((f, i) => (terms[i]!.off.includes(name) ? [] : [{ sign: terms[i]!.sign, values: f[name] }])));

  return {
    total: sum((f) => f.total), failed: sum((f) => f.failed), exact: true,
    type: values('type'), status: values('status'), actor: values('actor'), sandbox: values('sandbox'), source: values('source'),
  };
}

/** Bars of all terms as one; null when they do not fit each other. */
export function addBars(terms: readonly Term[], all: readonly Histogram[]): Histogram | null {
  const [first] = all;

  if (!first || all.some((h) => h.from !== first.from || h.to !== first.to || h.counts.length !== first.counts.length)) {
    return null;
  }

  const sum = (of: (h: Histogram) => number) => Math.max(0, all.reduce((n, h, i) => n + terms[i]!.sign * of(h), 0));

  return {
    ...first, exact: all.every((h) => h.exact),
    counts: first.counts.map((_, i) => ({ total: sum((h) => h.counts[i]!.total), failed: sum((h) => h.counts[i]!.failed) })),
  };
}

export interface Counted {
  /** Of what passes and is not left out: null when nobody can tell, undefined while they are on their way. */
  facets: Facets | null | undefined;
  /** Of all that passes: which values there are. */
  all: Facets | undefined;
}

export function useCounted(sandbox: string | undefined, filters: OperationFilters, not: readonly string[]): Counted {
  const terms = termsOf(sandbox, filters, not);

  return useQueries({
    queries: (terms ?? [{ sandbox, filters }]).map((t) => facetsQuery(t.sandbox, t.filters)),
    combine: (answers) => {
      const pages = answers.map((r) => r.data as OperationPage | undefined);
      const all = pages[0]?.facets;

      // what stood there before belongs to other questions
      if ((answers.length > 1 && answers.some((r) => r.isPlaceholderData)) || pages.some((p) => !p?.facets)) {
        return { facets: undefined, all };
      }

      return { facets: terms && addFacets(terms, pages.map((p) => p!.facets!)), all };
    },
  });
}

// State in the address.  A page says what it keeps there and how each value is
// read and written; what is not said stays as it is.
//
//   const useFilters = defineSearch({ q: text(), status: list(STATUSES), live: flag() });
//   const [filters, setFilters] = useFilters();
//   setFilters({ q: 'migrate' });              // a step that Back undoes
//   setFilters({ q: 'mig' }, 'replace');       // none, as while typing

import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'react-router';

export interface Param<T> {
  read(values: string[]): T;
  write(value: T): string[];
}

/** A text; '' when absent. */
export const text = (): Param<string> => ({
  read: (values) => values[0] ?? '',
  write: (value) => (value === '' ? [] : [value]),
});

/** True when present as 1. */
export const flag = (): Param<boolean> => ({
  read: (values) => values[0] === '1',
  write: (value) => (value ? ['1'] : []),
});

/** One of some values; the first of them when absent or unknown. */
export const choice = <T extends string>(values: readonly [T, ...T[]]): Param<T> => ({
  read: ([v]) => values.find((one) => one === v) ?? values[0],
  write: (value) => (value === values[0] ? [] : [value]),
});

/** Any number of values; of those only, if some are given. */
export const list = <T extends string = string>(values?: readonly T[]): Param<T[]> => ({
  read: (all) => [...new Set(all)].filter((v): v is T => !values || values.includes(v as T)),
  write: (all) => all,
});

type Shape = Record<string, Param<any>>;
type Values<S extends Shape> = { [K in keyof S]: S[K] extends Param<infer T> ? T : never };

export function defineSearch<S extends Shape>(shape: S) {
  const read = (params: URLSearchParams) => Object.fromEntries(
    Object.entries(shape).map(([key, p]) => [key, p.read(params.getAll(key))]),
  ) as Values<S>;

  const write = (params: URLSearchParams, patch: Partial<Values<S>>) => {
    const next = new URLSearchParams(params);

    for (const [key, value] of Object.entries(patch)) {
      next.delete(key);
      for (const v of shape[key]!.write(value as never)) {
        next.append(key, v);
      }
    }

    return next;
  };

  /** The query of an address with these values, with its `?`. */
  const link = (patch: Partial<Values<S>>) => {
    const query = write(new URLSearchParams(), patch).toString();
    return query && `?${query}`;
  };

  const useSearch = () => {
    const [params, setParams] = useSearchParams();
    const query = params.toString();
    const values = useMemo(() => read(new URLSearchParams(query)), [query]);

    const set = useCallback((patch: Partial<Values<S>>, how: 'push' | 'replace' = 'push') => {
      setParams((now) => write(now, patch), { replace: how === 'replace', preventScrollReset: true });
    }, [setParams]);

    return [values, set] as const;
  };

  return Object.assign(useSearch, { link });
}

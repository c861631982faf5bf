// What this browser remembers: choices, never anything secret or recorded.

import { useCallback, useMemo, useSyncExternalStore } from 'react';

const PREFIX = 'sandbox-gateway.';
const listeners = new Set<() => void>();
const memory = new Map<string, string>();

export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key) ?? memory.get(key) ?? null;
  } catch {
    return memory.get(key) ?? null;
  }
}

export function remember(key: string, value: string): void {
  memory.set(key, value);

  try {
    localStorage.setItem(PREFIX + key, value);
  } catch {
    // a browser that stores nothing: the choice lasts as long as the page
  }

  listeners.forEach((f) => f());
}

function subscribe(f: () => void) {
  listeners.add(f);
  addEventListener('storage', f);

  return () => {
    listeners.delete(f);
    removeEventListener('storage', f);
  };
}

/** A text, kept over visits and the same in all tabs; null when there is none. */
export function useRemembered(key: string) {
  const text = useSyncExternalStore(subscribe, () => remembered(key));

  return [text, useCallback((v: string) => remember(key, v), [key])] as const;
}

/** Some of several, kept over visits and the same in all tabs; at first all of them. */
export function useStoredSome<T extends string>(key: string, values: readonly T[]) {
  const text = useSyncExternalStore(subscribe, () => remembered(key));
  const chosen = useMemo(() => new Set(text === null ? values : values.filter((v) => text.split(' ').includes(v))), [text, values]);
  const set = (value: T, on: boolean) => remember(key, values.filter((v) => (v === value ? on : chosen.has(v))).join(' '));

  return [chosen as ReadonlySet<T>, set] as const;
}

/** A choice out of some, kept over visits and the same in all tabs. */
export function useStored<T extends string>(key: string, values: readonly T[], initial: T) {
  const text = useSyncExternalStore(subscribe, () => remembered(key));
  const value = values.find((v) => v === text) ?? initial;

  return [value, (v: T) => remember(key, v)] as const;
}

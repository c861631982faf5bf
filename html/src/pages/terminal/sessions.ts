// The terminals of a sandbox that this tab of the browser has open: in the
// address, and kept for when one comes back by a link that does not name them.

import { defineSearch, list, text } from '@/lib/search';

export const useTerminals = defineSearch({ pty: list(), at: text() });

const key = (sandbox: string) => `sandbox-gateway.terminals.${sandbox}`;

export function keptTerminals(sandbox: string): string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(key(sandbox)) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function keepTerminals(sandbox: string, all: readonly string[]): void {
  try {
    sessionStorage.setItem(key(sandbox), JSON.stringify(all));
  } catch {
    // they are in the address
  }
}

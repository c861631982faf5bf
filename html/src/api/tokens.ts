// Tokens: what there is, made and revoked.  Admins only.

import { queryOptions } from '@tanstack/react-query';
import { api, path } from './request';
import type { Role } from './session';

export interface Token {
  id: string;
  role: Role;
  actor: { type: string | null; id: string | null } | null;
  /** Ids with "*"; empty: all. */
  sandboxes: string[];
  /** May it say for whom it asks? */
  states_actors: boolean;
  /** null: not known. */
  created_at: string | null;
  /** null: never. */
  expires_at: string | null;
  /** Is it the one that asks? */
  self: boolean;
}

export interface TokenRequest {
  role: Role;
  actor?: { type?: string; id: string };
  sandboxes?: string[];
  /** Seconds. */
  expires_in?: number;
  states_actors?: boolean;
}

/** `token` is told this once. */
export type MadeToken = Token & { token: string };

export const tokensQuery = () => queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => api<{ items: Token[] }>('tokens', { signal }),
  // changed elsewhere too
  refetchInterval: 10_000,
});

export const makeToken = (wanted: TokenRequest) => api<MadeToken>('tokens', { json: wanted });

export const revokeToken = (id: string) => api<void>(path`tokens/${id}`, { method: 'DELETE' });

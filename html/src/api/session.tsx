// Who is signed in.  POST /session {token} or {code}, GET /session, DELETE
// /session of the console API.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import {
  createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState,
} from 'react';
import { onSessionEnd, sessionEnded } from './credential';
import { api } from './request';

export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface Session {
  /** Whose session it is; null when the gateway does not say. */
  name: string | null;
  role: Role | null;
  /** When it ends by itself. */
  expiresAt: string | null;
  /** The sandboxes that it is for, by id, with `*`; none when it is for all. */
  sandboxes: readonly string[];
}

interface SessionAnswer {
  actor: { type?: string; id?: string } | string | null;
  role?: string | null;
  expires_at?: string | null;
  sandboxes?: string[];
}

function read(answer: SessionAnswer): Session | null {
  if (answer.actor === null) {
    return null;
  }

  return {
    name: typeof answer.actor === 'string' ? answer.actor : answer.actor.id ?? null,
    role: ROLES.find((r) => r === answer.role) ?? null,
    expiresAt: answer.expires_at ?? null,
    sandboxes: answer.sandboxes ?? [],
  };
}

const whoAmI = async (): Promise<Session | null> =>
  read(await api<SessionAnswer>('session', { keepSession: true }));

const signIn = (by: { token: string } | { code: string }): Promise<unknown> =>
  api('session', { method: 'POST', json: by, keepSession: true });

interface Value {
  session: Session | null;
  loading: boolean;
  error: Error | null;
  /** There was a session, and the gateway no longer takes it. */
  ended: boolean;
  signIn(by: { token: string } | { code: string }): Promise<void>;
  signOut(): Promise<void>;
  /** May this session do what needs that role?  Unknown roles may: the gateway decides. */
  may(role: Role): boolean;
  /** Is it for certain sandboxes only?  What is asked of all is refused then. */
  limited: boolean;
}

const Context = createContext<Value | null>(null);

export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [ended, setEnded] = useState(false);
  const { data, isPending, error } = useQuery({
    queryKey: ['session'],
    queryFn: whoAmI,
    staleTime: 60_000,
    // who cannot be told who is signed in, for a gateway that is away, is told as soon as it is back
    refetchInterval: (q) => (q.state.status === 'error' ? 3_000 : 5 * 60_000),
  });
  const session = data ?? null;
  // while it is asked again, what was wrong stays said
  const failed = useRef<Error | null>(null);

  if (error || !isPending) {
    failed.current = error;
  }

  useEffect(() => onSessionEnd(() => {
    if (client.getQueryData(['session'])) {
      setEnded(true);
    }
    client.setQueryData(['session'], null);
  }), [client]);

  // not a second later than the gateway says
  useEffect(() => {
    if (!session?.expiresAt) {
      return undefined;
    }

    const left = Date.parse(session.expiresAt) - Date.now();
    const timer = setTimeout(sessionEnded, Math.min(Math.max(left, 0), 2 ** 31 - 1));
    return () => clearTimeout(timer);
  }, [session?.expiresAt]);

  const doSignIn = useCallback(async (by: { token: string } | { code: string }) => {
    await signIn(by);
    setEnded(false);
    client.removeQueries({ predicate: (q) => q.queryKey[0] !== 'session' });
    await client.invalidateQueries({ queryKey: ['session'] });
  }, [client]);

  const doSignOut = useCallback(async () => {
    await api('session', { method: 'DELETE', keepSession: true });
    setEnded(false);
    client.removeQueries({ predicate: (q) => q.queryKey[0] !== 'session' });
    client.setQueryData(['session'], null);
  }, [client]);

  const value = useMemo<Value>(() => ({
    session,
    loading: isPending && !failed.current,
    error: session ? null : failed.current,
    ended,
    signIn: doSignIn,
    signOut: doSignOut,
    limited: (session?.sandboxes.length ?? 0) > 0,
    may: (role) => !session?.role || ROLES.indexOf(session.role) >= ROLES.indexOf(role),
  }), [session, isPending, error, ended, doSignIn, doSignOut]);

  return <Context value={value}>{children}</Context>;
}

export function useSession(): Value {
  const value = useContext(Context);

  if (!value) {
    throw new Error('useSession outside of SessionProvider');
  }

  return value;
}

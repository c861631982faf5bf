// Who is signed in.  POST /session {token} or {code}, GET /session, DELETE
// /session of the console API.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import {
  createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState,
} from 'react';
import { onSessionEnd, sessionBegun, sessionEnded, sessionIsOver } from './credential';
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

/** The same person, who may do the same. */
const same = (a: Session, b: Session) =>
  a.name !== null && a.name === b.name && a.role === b.role && a.sandboxes.join() === b.sandboxes.join();

const rest = { predicate: (q: { queryKey: readonly unknown[] }) => q.queryKey[0] !== 'session' };

const signIn = (by: { token: string } | { code: string }): Promise<unknown> =>
  api('session', { method: 'POST', json: by, keepSession: true });

interface Value {
  session: Session | null;
  loading: boolean;
  error: Error | null;
  /** Whose session it was that the gateway no longer takes. */
  ended: Session | null;
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
  const [ended, setEnded] = useState<Session | null>(null);
  const last = useRef<Session | null>(null);

  // what was open for somebody stays for them, and for nobody else
  const learn = useCallback((now: Session | null) => {
    const before = last.current;

    if (now === null) {
      setEnded(before);
      return;
    }

    const again = sessionIsOver();

    last.current = now;
    sessionBegun();
    if (before && !same(before, now)) {
      client.removeQueries(rest);
    } else if (again) {
      void client.invalidateQueries(rest);
    }
  }, [client]);

  const { data, isPending, error } = useQuery({
    queryKey: ['session'],
    queryFn: async () => {
      const now = await whoAmI();

      learn(now);
      return now;
    },
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
    learn(null);
    client.setQueryData(['session'], null);
  }), [client, learn]);

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

    const now = await whoAmI();

    await client.cancelQueries({ queryKey: ['session'] });
    learn(now);
    client.setQueryData(['session'], now);
  }, [client, learn]);

  const doSignOut = useCallback(async () => {
    await api('session', { method: 'DELETE', keepSession: true });
    last.current = null;
    setEnded(null);
    client.removeQueries(rest);
    client.setQueryData(['session'], null);
  }, [client]);

  const value = useMemo<Value>(() => ({
    session,
    loading: isPending && !failed.current,
    error: session ? null : failed.current,
    ended: session ? null : ended,
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

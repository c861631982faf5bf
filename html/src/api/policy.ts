// The rules in force, and what they would say.

import { queryOptions } from '@tanstack/react-query';
import { api } from './request';

export interface Place { server: string; location: string }

export interface Rule {
  effect: 'allow' | 'deny' | 'observe';
  name: string;
  line: number;
  text: string;
}

export interface PolicyInForce {
  places: Place[];
  policy: { name: string; default: Rule; rules: Rule[] } | null;
}

/** What is known of an operation; docs/console-api.md. */
export interface PolicyQuestion {
  operation: string;
  path?: string[];
  command?: string;
  actor?: string;
  role?: string;
  sandbox?: string;
  metadata?: Record<string, string>;
  image?: string;
  port?: number;
  size?: number;
  mode?: number;
  archive?: string[];
}

export interface Judgement {
  places: Place[];
  decision: 'allow' | 'deny';
  rule: string | null;
  line: number | null;
  reason?: string | null;
  path?: string | null;
  limit?: boolean;
  unread?: boolean;
  observed?: { rule: string; line: number; reason?: string | null } | null;
}

export const policyQuery = () => queryOptions({
  queryKey: ['policy'],
  queryFn: ({ signal }) => api<{ items: PolicyInForce[] }>('policy', { signal }),
  // changed elsewhere too
  refetchInterval: 10_000,
});

export const checkPolicy = (question: PolicyQuestion) =>
  api<{ items: Judgement[] }>('policy/check', { json: question });

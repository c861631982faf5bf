// What is on record of a request, as it was asked.  A record has another form
// (members are named otherwise, values of variables are left out), and says what
// it does not have whole: that is never made up.

import type { CommandRequest } from '@/api/commands';
import type { OperationWhole } from '@/api/types';
import { typed } from './shell';

export type Members = Record<string, unknown>;

/** Why a request cannot be made again from its record. */
export interface Lack {
  why: 'cut' | 'dropped' | 'redacted' | 'kind' | 'sdk';
  /** Members it is about. */
  names: string;
}

export const lacks = (v: object): v is Lack => 'why' in v;

export const lack = (why: Lack['why'], names: readonly string[] = []): Lack => ({ why, names: [...new Set(names)].join(', ') });

// members that the recorder puts beside, or in place of, what it does not keep whole
const CUT = /^(.+)_(?:bytes|total|more)$/;
// what is in these is named by whoever sends it
const FREE = new Set(['metadata', 'resourceLimits', 'resourceRequests', 'platform', 'credentialProxy', 'capacitySpec', 'dropped']);

function cutIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }

  return Array.isArray(value) ? value.flatMap(cutIn) : Object.entries(value).flatMap(([name, v]) => {
    const cut = typeof v === 'number' && CUT.exec(name);
    return cut ? [cut[1]!] : FREE.has(name) ? [] : cutIn(v);
  });
}

/** The texts of a list: names whose values are not on record. */
export const namesIn = (v: unknown): string[] => (Array.isArray(v) ? v.filter((one) => typeof one === 'string') : []);

/** The request that a record has, or what is missing in it. */
export function recordedRequest(o: OperationWhole): Members | Lack {
  const { request, command } = o;

  if (request === null) {
    return lack('kind');
  }

  const { command_bytes: bytes, ...rest } = request;
  const text = command?.command;
  // a long command is cut in the request, and may be whole beside it
  const r = bytes !== undefined && typeof text === 'string' && new TextEncoder().encode(text).length === bytes
    ? { ...rest, command: text } : request;
  const cut = cutIn(r);

  if (cut.length > 0) {
    return lack('cut', cut);
  }

  if (Array.isArray(r.dropped)) {
    return lack('dropped', namesIn(r.dropped));
  }

  return JSON.stringify(r).includes('[redacted]') ? lack('redacted') : r;
}

/** A command as it was asked for. */
export interface Asked {
  what: CommandRequest;
  /** Variables of its environment, whose values are not on record. */
  missing: string[];
}

const text = (v: unknown) => (typeof v === 'string' && v !== '' ? v : undefined);
const number = (v: unknown, least: number) => (typeof v === 'number' && v >= least ? v : undefined);

/** What was run; what is missing when that cannot be said. */
export function requestOf(o: OperationWhole): Asked | Lack {
  if (o.type !== 'command.execute') {
    return lack('kind');
  }

  const r = recordedRequest(o);

  if (lacks(r)) {
    return r;
  }

  // execd also takes commands as code, of a context that may be a shell which goes on
  const code = o.wire?.path === '/code';
  const argv = namesIn(r.argv);
  const command = code ? text(r.code) : argv.length > 0 ? typed(argv) : text(r.command);

  if (command === undefined || (code && text(r.context_id) !== undefined)) {
    return lack('kind');
  }

  const what: CommandRequest = {
    command,
    ...(argv.length > 0 && !code ? { argv } : {}),
    cwd: text(r.cwd), timeout: number(r.timeout_ms, 1), uid: number(r.uid, 0), gid: number(r.gid, 0),
    background: r.background === true || (code && r.language === 'background-command') || undefined,
  };

  // what is not there is not said
  return { what: JSON.parse(JSON.stringify(what)) as CommandRequest, missing: namesIn(r.env_names) };
}

// What the fields of a new sandbox say, and what is wrong with them.

import type { CreateRequest } from '@/api/lifecycle';
import { pairs } from '@/lib/pairs';

export const NAME_KEY = 'agent_sandbox.name';

export interface Fields {
  image: string;
  /** '' is none: from the image. */
  snapshot: string;
  name: string;
  entrypoint: string;
  env: string;
  cpu: string;
  memory: string;
  gpu: string;
  minutes: string;
  metadata: string;
  network: 'open' | 'allow' | 'deny';
  targets: string;
}

export const INITIAL: Fields = {
  image: '', snapshot: '', name: '', entrypoint: 'tail -f /dev/null', env: '', cpu: '500m', memory: '512Mi', gpu: '',
  minutes: '60', metadata: '', network: 'open', targets: '',
};

// values of Kubernetes labels, which metadata become
const LABEL = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const WORD = /"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g;

/** Words of a command line: quotes keep blanks together, nothing else is special. */
export const words = (line: string): string[] =>
  [...line.matchAll(WORD)].map((m) => m[1]?.replace(/\\(.)/g, '$1') ?? m[2] ?? m[3]!);

type Wrong = 'image' | 'name' | 'entrypoint' | 'cpu' | 'memory' | 'minutes';

export interface Faults {
  fields: Partial<Record<Wrong, true>>;
  env: number | null;
  metadata: number | null;
}

export function check(f: Fields): Faults & { any: boolean } {
  const fields: Faults['fields'] = {};
  const minutes = Number(f.minutes);
  const metadata = pairs(f.metadata);
  const bad = Object.values(metadata.values).findIndex((v) => !LABEL.test(v));

  if (!f.snapshot && !f.image.trim()) fields.image = true;
  if (!LABEL.test(f.name.trim())) fields.name = true;
  if (!f.snapshot && words(f.entrypoint).length === 0) fields.entrypoint = true;
  if (!f.cpu.trim()) fields.cpu = true;
  if (!f.memory.trim()) fields.memory = true;
  if (f.minutes !== '' && !(minutes >= 1)) fields.minutes = true;

  const faults: Faults = {
    fields,
    env: pairs(f.env, VARIABLE).wrong,
    metadata: metadata.wrong ?? (bad < 0 ? null : bad + 1),
  };

  return { ...faults, any: Object.keys(fields).length > 0 || faults.env !== null || faults.metadata !== null };
}

export function requestOf(f: Fields): CreateRequest {
  const entrypoint = words(f.entrypoint);
  const env = pairs(f.env, VARIABLE).values;
  const metadata = { ...pairs(f.metadata).values, ...(f.name.trim() ? { [NAME_KEY]: f.name.trim() } : {}) };
  const other = f.network === 'allow' ? 'deny' : 'allow';

  return {
    ...(f.snapshot ? { snapshotId: f.snapshot } : { image: { uri: f.image.trim() } }),
    ...(entrypoint.length > 0 ? { entrypoint } : {}),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    resourceLimits: {
      cpu: f.cpu.trim(), memory: f.memory.trim(), ...(f.gpu.trim() ? { gpu: f.gpu.trim() } : {}),
    },
    ...(f.minutes ? { timeout: Math.round(Number(f.minutes) * 60) } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(f.network === 'open' ? {} : {
      networkPolicy: {
        defaultAction: f.network,
        egress: f.targets.split('\n').map((t) => t.trim()).filter(Boolean)
          .map((target) => ({ action: other, target }) as const),
      },
    }),
  };
}

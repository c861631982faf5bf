// A recorded operation as somebody would do it again, with curl.  Secrets are
// not on record: the token is a variable of the shell, and so is each value of
// an environment; one that is not set ends the command before it is sent.

import type { OperationWhole } from '@/api/types';
import { sandboxUrl, path as route } from '@/api/request';
import { type Lack, lack, lacks, type Members, recordedRequest, namesIn } from '@/lib/recorded';
import { quoted } from '@/lib/shell';

export interface CallFile {
  path: string;
  mode: number | null;
}

/** A request again: as it was sent, not as it is recorded. */
export interface Call {
  method: string;
  url: URL;
  body?: unknown;
  /** Members of the body that are objects whose values are not on record: their names. */
  unknown?: Record<string, string[]>;
  files?: CallFile[];
}

// execd and the sandbox's egress; other ports are their users' own
const PORTS = [44772, 18080];

const without = (r: Members, ...names: string[]): Members =>
  Object.fromEntries(Object.entries(r).filter(([name]) => !names.includes(name)));

/** Under the names that they are sent with. */
const renamed = (r: Members, names: Record<string, string>): Members =>
  Object.fromEntries(Object.entries(r).map(([name, v]) => [names[name] ?? name, v]));

const timed = (r: Members) => renamed(without(r, 'session_id'), { timeout_ms: 'timeout' });

function codeOf(r: Members): Members {
  const { context_id: id, language, cwd, code } = r;
  const context = { ...(id === undefined ? {} : { id }), ...(language === undefined ? {} : { language }), ...(cwd === undefined ? {} : { cwd }) };

  return { ...(Object.keys(context).length > 0 ? { context } : {}), code };
}

/** Bodies, of those operations that have one which is on record whole. */
const BODIES: Record<string, (r: Members) => unknown> = {
  'sandbox.create': (r) => r,
  'sandbox.metadata.patch': (r) => r.metadata,
  'sandbox.renew': (r) => r,
  'sandbox.networkpolicy.set': (r) => r,
  'sandbox.networkpolicy.patch': (r) => r.egress,
  'sandbox.networkpolicy.delete': (r) => r.targets,
  'snapshot.create': (r) => r,
  'command.execute': timed,
  'code.execute': codeOf,
  'code.context.create': (r) => r,
  'session.create': (r) => r,
  'session.run': timed,
  'file.move': (r) => r.moves,
  'file.chmod': (r) => r.files,
  'dir.create': (r) => r.files,
  'pty.create': (r) => r,
  'isolated.create': (r) => r,
  'isolated.run': timed,
  'egress.policy.set': (r) => r,
  'egress.policy.patch': (r) => r.egress,
  'egress.policy.delete_rules': (r) => r.targets,
};

/** Parameters, of those operations that have no body; `paths` is `path` several times. */
const PARAMETERS: Record<string, readonly string[]> = {
  'sandbox.list': ['state', 'metadata', 'page', 'pageSize'],
  'sandbox.get': [], 'sandbox.delete': [], 'sandbox.pause': [], 'sandbox.resume': [], 'sandbox.networkpolicy.get': [],
  'endpoint.get': ['use_server_proxy'],
  'snapshot.list': ['sandboxId', 'state', 'name', 'page', 'pageSize'], 'snapshot.get': [], 'snapshot.delete': [],
  'diagnostics.logs': ['tail', 'since', 'scope'], 'diagnostics.events': ['limit', 'scope'], 'diagnostics.inspect': [],
  'diagnostics.summary': ['tail', 'event_limit'],
  'pool.list': [], 'pool.get': [], 'pool.delete': [], 'template.list': [], 'template.get': [], 'template.delete': [],
  'command.interrupt': ['id'], 'command.status': [], 'command.logs': ['cursor'],
  'code.interrupt': ['id'], 'code.context.list': ['language'], 'code.context.get': [],
  'code.context.delete_all': ['language'], 'code.context.delete': [],
  'session.delete': [],
  'file.read': ['path', 'offset', 'limit'], 'file.stat': ['paths'], 'file.delete': ['paths'], 'file.search': ['path', 'pattern'],
  'dir.list': ['path', 'depth'], 'dir.delete': ['paths'],
  'metrics.get': [], 'metrics.watch': [],
  'pty.status': [], 'pty.delete': [],
  'isolated.list': [], 'isolated.get': [], 'isolated.delete': [], 'isolated.diff': [], 'isolated.capabilities': [],
  'egress.policy.get': [], 'egress.policy.reset': [],
};

/** Files of an isolated session are told as all files are. */
const kindOf = (type: string) => type.replace(/^isolated\.(?=file\.|dir\.)/, '');

function addressOf(o: OperationWhole): URL | null {
  const { path, port } = o.wire ?? {};

  if (typeof path !== 'string' || !path.startsWith('/') || (port != null && (!o.sandbox_id || !PORTS.includes(Number(port))))) {
    return null;
  }

  const inner = path.slice(1).split('/').map(encodeURIComponent).join('/');
  return new URL(sandboxUrl(port == null ? inner : route`sandboxes/${o.sandbox_id!}/proxy/${Number(port)}/` + inner));
}

/** A record's request as it was sent; what it lacks when that cannot be said. */
export function callOf(o: OperationWhole): Call | Lack {
  const url = addressOf(o);
  const method = o.wire?.method;
  const kind = kindOf(o.type);

  if (url === null || typeof method !== 'string') {
    return lack('kind');
  }

  if (kind === 'file.write') {
    const files = (o.files ?? []).map(({ path, mode }) => ({ path, mode: mode ?? null }));

    return files.length === 0 || files.length < (o.files_total ?? 0) || files.some((f) => (f.mode ?? 0) > 7777)
      ? lack('cut', ['files']) : { method, url, files };
  }

  const r = recordedRequest(o);

  if (lacks(r)) {
    return r;
  }

  if (kind in BODIES) {
    const code = o.type === 'command.execute' && o.wire?.path === '/code';
    const body = (code ? codeOf : BODIES[kind]!)(without(r, 'env_names', 'extension_names'));

    return body === undefined ? lack('kind') : {
      method, url, body,
      unknown: {
        ...(r.env_names === undefined ? {} : { [o.type === 'sandbox.create' ? 'env' : 'envs']: namesIn(r.env_names) }),
        ...(r.extension_names === undefined ? {} : { extensions: namesIn(r.extension_names) }),
      },
    };
  }

  // when a signed address ends is not told
  if (!(kind in PARAMETERS) || r.signed === true) {
    return lack('kind');
  }

  for (const name of PARAMETERS[kind]!) {
    [r[name] ?? []].flat().forEach((v) => url.searchParams.append(name === 'paths' ? 'path' : name, String(v)));
  }

  return { method, url };
}

/** Text to be copied, and what has to be known to use it. */
export interface Copied {
  text: string;
  /** It sends FILE, FILE_2 … */
  files: boolean;
  /** Variables that have to be set. */
  values: string[];
}

/** The variable that stands for a value which is not on record. */
export const variable = (name: string) => `VALUE_OF_${name.replace(/\W/g, '_')}`;

export const fileName = (i: number) => (i === 0 ? 'FILE' : `FILE_${i + 1}`);

/** A body for a shell: JSON, with variables in place of what is not on record. */
function bodyWord(body: unknown, unknown: Record<string, string[]>): string {
  const text = JSON.stringify(body);
  const members = Object.entries(unknown);

  if (members.length === 0) {
    return quoted(text);
  }

  const objects = members.map(([member, names]) => `${quoted(`${JSON.stringify(member)}:{`)}${
    names.map((n) => `${quoted(`${JSON.stringify(n)}:"`)}"\${${variable(n)}:?}"'"'`).join(',')}'}'`);

  return `${quoted(text.slice(0, -1) + (text === '{}' ? '' : ','))}${objects.join(',')}'}'`;
}

/** In double quotes curl takes nothing in it for an option of the part. */
const part = ({ path, mode }: CallFile) =>
  quoted(`metadata="${JSON.stringify({ path, ...(mode === null ? {} : { mode }) }).replace(/[\\"]/g, '\\$&')}";type=application/json;filename=metadata`);

export function curlOf(o: OperationWhole): Copied | Lack {
  const call = callOf(o);

  if (lacks(call)) {
    return call;
  }

  const { method, url, body, files = [], unknown = {} } = call;
  const values = Object.values(unknown).flat().map(variable);

  // one variable cannot be two values
  if (new Set(values).size < values.length) {
    return lack('cut', Object.keys(unknown));
  }

  return {
    text: [
      `curl -X ${method} ${quoted(url.href)}`,
      '-H "OPEN-SANDBOX-API-KEY: $SANDBOX_TOKEN"',
      ...files.map((f, i) => `-F ${part(f)} -F 'file=@${fileName(i)};filename=file'`),
      ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${bodyWord(body, unknown)}`]),
    ].join(' \\\n  '),
    files: files.length > 0,
    values,
  };
}

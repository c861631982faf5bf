// A recorded operation as somebody would do it again: with curl, with an SDK.
// Secrets are not on record: the token is a variable, and so are values of the
// environment.

import type { OperationWhole } from '@/api/types';
import { execdUrl, sandboxUrl } from '@/api/request';
import { gatewayDomain, gatewayProtocol } from '@/lib/mount';

const PORT = 44772;

/** A word for a shell, whatever is in it. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const str = (v: unknown): string | undefined => (typeof v === 'string' && v !== '' ? v : undefined);
const names = (o: OperationWhole): string[] => (Array.isArray(o.request?.env_names) ? o.request.env_names as string[] : [])
  .filter((n) => /^\w+$/.test(n));

/** What a command was asked for with; null when it is none, or not all of it is known. */
export function commandOf(o: OperationWhole): { command: string; cwd?: string; timeout?: number; background?: boolean } | null {
  const command = str(o.command?.command) ?? str(o.request?.command);

  if (o.type !== 'command.execute' || command === undefined || o.wire?.path !== '/command') {
    return null;
  }

  const cwd = str(o.command?.cwd) ?? str(o.request?.cwd);
  const timeout = Number(o.request?.timeout ?? NaN);

  return {
    command,
    ...(cwd ? { cwd } : {}),
    ...(Number.isFinite(timeout) ? { timeout } : {}),
    ...(o.request?.background === true ? { background: true } : {}),
  };
}

export const envOf = names;

function addressOf(o: OperationWhole): string | null {
  const path = str(o.wire?.path);

  if (path === undefined) {
    return null;
  }

  return o.wire?.port === PORT && o.sandbox_id ? execdUrl(o.sandbox_id, path.replace(/^\//, ''))
    : o.wire?.port === null && path.startsWith('/') ? sandboxUrl(path.slice(1)) : null;
}

export function curlOf(o: OperationWhole): string | null {
  const at = addressOf(o);

  if (at === null) {
    return null;
  }

  const method = str(o.wire?.method) ?? 'GET';
  const command = commandOf(o);
  const url = new URL(at);
  const parts = [`curl -X ${method} URL`, `-H "OPEN-SANDBOX-API-KEY: $SANDBOX_TOKEN"`];

  if (o.wire?.path === '/files/upload' && o.file) {
    parts.push(`-F ${quoted(`metadata=${JSON.stringify({ path: o.file.path })};type=application/json`)}`, '-F file=@FILE');
  } else if (method !== 'GET' && method !== 'DELETE') {
    const env = command ? envOf(o) : [];
    const body = command
      ? { ...command, ...(env.length > 0 ? { envs: Object.fromEntries(env.map((n) => [n, 'VALUE'])) } : {}) }
      : o.request ?? {};

    parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  } else if (Array.isArray(o.request?.paths)) {
    o.request.paths.forEach((p) => url.searchParams.append('path', String(p)));
  } else if (o.file && o.wire?.port === PORT) {
    url.searchParams.set('path', o.file.path);
  }

  parts[0] = parts[0]!.replace('URL', () => quoted(url.href));
  return parts.join(' \\\n  ');
}

/** The same in Python's SDK; null for what it has no call for. */
export function sdkOf(o: OperationWhole): string | null {
  const text = JSON.stringify;
  const command = commandOf(o);
  const paths = Array.isArray(o.request?.paths) ? o.request.paths as string[] : o.file ? [o.file.path] : [];
  let call: string | null = null;
  let more = '';

  if (command) {
    const opts = [
      command.cwd && `working_directory=${text(command.cwd)}`,
      command.background && 'background=True',
      envOf(o).length > 0 && `envs={${envOf(o).map((n) => `${text(n)}: os.environ[${text(n)}]`).join(', ')}}`,
    ].filter(Boolean);

    more = opts.length > 0 ? 'from opensandbox.models.execd import RunCommandOpts\n' : '';
    call = `print(sandbox.commands.run(${text(command.command)}${opts.length > 0 ? `, opts=RunCommandOpts(${opts.join(', ')})` : ''}))`;
  } else if (o.type === 'file.write' && o.file) {
    call = `sandbox.files.write_file(${text(o.file.path)}, open("FILE", "rb").read())`;
  } else if (o.type === 'file.read' && o.file) {
    call = `print(sandbox.files.read_file(${text(o.file.path)}))`;
  } else if (o.type === 'file.delete' && paths.length > 0) {
    call = `sandbox.files.delete_files(${text(paths)})`;
  } else if (o.type === 'sandbox.delete') {
    call = 'sandbox.kill()';
  } else if (o.type === 'sandbox.pause') {
    call = 'sandbox.pause()';
  }

  if (call === null || !o.sandbox_id) {
    return null;
  }

  return `import os
from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync
${more}
config = ConnectionConfigSync(domain=${text(gatewayDomain)}, protocol=${text(gatewayProtocol)},
                              api_key=os.environ["SANDBOX_TOKEN"])
sandbox = SandboxSync.connect(${text(o.sandbox_id)}, connection_config=config)
${call}`;
}

// A recorded operation as a call of Python's SDK.

import type { OperationWhole } from '@/api/types';
import { gatewayDomain, gatewayProtocol } from '@/lib/mount';
import { type Lack, lack, lacks, type Members, recordedRequest, requestOf } from '@/lib/recorded';
import { type CallFile, callOf, type Copied, fileName, variable } from './call';

const text = JSON.stringify;

interface Line {
  line: string;
  /** What it takes beside the sandbox. */
  imports?: string[];
  values?: string[];
}

const EXECD = 'from opensandbox.models.execd import RunCommandOpts';
const FILES = 'from opensandbox.models.filesystem import';

const delta = (ms: number) => `timedelta(milliseconds=${ms})`;

/** Members that are there, as keywords. */
const keywords = (members: Record<string, string | false | undefined>) =>
  Object.entries(members).filter(([, v]) => v).map(([name, v]) => `${name}=${v}`).join(', ');

function commandLine(o: OperationWhole): Line | Lack {
  const asked = requestOf(o);

  if (lacks(asked) || asked.what.argv || o.wire?.path !== '/command') {
    return lacks(asked) ? asked : lack('sdk');
  }

  const { what, missing } = asked;
  const opts = keywords({
    working_directory: what.cwd && text(what.cwd),
    timeout: what.timeout !== undefined && delta(what.timeout),
    uid: what.uid !== undefined && String(what.uid),
    gid: what.gid !== undefined && String(what.gid),
    background: what.background && 'True',
    envs: missing.length > 0 && `{${missing.map((n) => `${text(n)}: os.environ[${text(variable(n))}]`).join(', ')}}`,
  });

  return {
    line: `print(sandbox.commands.run(${text(what.command)}${opts && `, opts=RunCommandOpts(${opts})`}))`,
    imports: opts ? [EXECD] : [], values: missing.map(variable),
  };
}

const fileEntry = (f: CallFile, i: number) =>
  `WriteEntry(path=${text(f.path)}, data=open(${text(fileName(i))}, "rb").read(), mode=${f.mode})`;

const path = (r: Members) => text(String(r.path ?? ''));
const paths = (r: Members) => text(r.paths ?? []);
const range = (r: Members) => {
  const all = keywords({ offset: r.offset !== undefined && String(Number(r.offset)), limit: r.limit !== undefined && String(Number(r.limit)) });
  return all && `, ${all}`;
};

const LINES: Record<string, (r: Members) => Line | null> = {
  'file.read': (r) => ({ line: `print(sandbox.files.read_file(${path(r)}${range(r)}))` }),
  'file.stat': (r) => ({ line: `print(sandbox.files.get_file_info(${paths(r)}))` }),
  'file.delete': (r) => ({ line: `sandbox.files.delete_files(${paths(r)})` }),
  'dir.delete': (r) => ({ line: `sandbox.files.delete_directories(${paths(r)})` }),
  'file.search': (r) => ({
    line: `print(sandbox.files.search(SearchEntry(path=${path(r)}, pattern=${text(String(r.pattern ?? ''))})))`, imports: [`${FILES} SearchEntry`],
  }),
  'dir.list': (r) => ({
    line: `print(sandbox.files.list_directory(DirectoryListEntry(path=${path(r)}${r.depth === undefined ? '' : `, depth=${Number(r.depth)}`})))`,
    imports: [`${FILES} DirectoryListEntry`],
  }),
  'file.move': (r) => ({
    line: `sandbox.files.move_files([${(r.moves as Members[]).map((m) => `MoveEntry(src=${text(m.src)}, dest=${text(m.dest)})`).join(', ')}])`,
    imports: [`${FILES} MoveEntry`],
  }),
  'file.chmod': (r) => {
    const files = Object.entries(r.files as Record<string, Members | null>);

    return files.some(([, f]) => f?.mode === undefined) ? null : {
      line: `sandbox.files.set_permissions([${files.map(([name, f]) => `SetPermissionEntry(${keywords({
        path: text(name), mode: String(f!.mode), owner: f!.owner !== undefined && text(f!.owner), group: f!.group !== undefined && text(f!.group),
      })})`).join(', ')}])`,
      imports: [`${FILES} SetPermissionEntry`],
    };
  },
  'session.run': (r) => ({
    line: `print(sandbox.commands.run_in_session(${text(r.session_id)}, ${text(r.command)}${[
      r.cwd === undefined ? '' : `, working_directory=${text(r.cwd)}`, Number(r.timeout_ms ?? 0) > 0 ? `, timeout=${delta(Number(r.timeout_ms))}` : '',
    ].join('')}))`,
  }),
  'command.interrupt': (r) => ({ line: `sandbox.commands.interrupt(${text(r.id)})` }),
  'command.status': (r) => ({ line: `print(sandbox.commands.get_command_status(${text(r.id)}))` }),
  'snapshot.create': (r) => ({ line: `print(sandbox.create_snapshot(${r.name === undefined ? '' : text(r.name)}))` }),
  'sandbox.pause': () => ({ line: 'sandbox.pause()' }),
  'sandbox.delete': () => ({ line: 'sandbox.kill()' }),
};

function lineOf(o: OperationWhole): Line | Lack {
  const call = callOf(o);

  if (lacks(call)) {
    return call;
  }

  if (o.type === 'command.execute') {
    return commandLine(o);
  }

  // the SDK always sends a mode
  if (o.type === 'file.write') {
    return call.files!.some((f) => f.mode === null) ? lack('sdk') : { line: `sandbox.files.write_files([${call.files!.map(fileEntry).join(', ')}])`, imports: [`${FILES} WriteEntry`] };
  }

  const r = recordedRequest(o);
  return lacks(r) ? r : LINES[o.type]?.(r) ?? lack('sdk');
}

/** The same in Python; a lack for what it has no call for. */
export function sdkOf(o: OperationWhole): Copied | Lack {
  const line = lineOf(o);

  if (lacks(line) || !o.sandbox_id || o.sandbox_id === '_gateway') {
    return lacks(line) ? line : lack('sdk');
  }

  const imports = ['import os', ...(line.line.includes('timedelta(') ? ['from datetime import timedelta'] : []), '',
    'from opensandbox import SandboxSync', 'from opensandbox.config import ConnectionConfigSync', ...(line.imports ?? [])];

  return {
    text: `${imports.join('\n')}

config = ConnectionConfigSync(domain=${text(gatewayDomain)}, protocol=${text(gatewayProtocol)},
                              api_key=os.environ["SANDBOX_TOKEN"])
sandbox = SandboxSync.connect(${text(o.sandbox_id)}, connection_config=config)
${line.line}`,
    files: o.type === 'file.write', values: line.values ?? [],
  };
}

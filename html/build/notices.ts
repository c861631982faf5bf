// The licences of all that ends up in the bundle, as one text beside it.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type { Plugin } from 'vite';

const LICENCE = /^(?:licen[cs]e|copying|notice|thirdpartynotices)(?:[.-].*)?$/i;

function packageOf(id: string): string | undefined {
  const file = id.split('?')[0]!.replace(/^\0/, '');
  const at = file.lastIndexOf(`${sep}node_modules${sep}`);

  if (at < 0) {
    return undefined;
  }

  const root = file.slice(0, at + sep.length + 'node_modules'.length + sep.length);
  const [scope, name] = file.slice(root.length).split(sep);
  return join(root, scope!.startsWith('@') ? join(scope!, name!) : scope!);
}

function noticeOf(dir: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const files = existsSync(dir) ? readdirSync(dir).filter((f) => LICENCE.test(f)).sort() : [];
  const texts = files.map((f) => readFileSync(join(dir, f), 'utf8').trim());

  if (typeof license !== 'string') {
    throw new Error(`${name} says no licence in its package.json`);
  }

  return [`${name} ${version} (${license})`, ...texts].join('\n\n');
}

export function notices(): Plugin {
  return {
    name: 'console-notices',
    apply: 'build',

    generateBundle(_options, bundle) {
      const dirs = new Set<string>();

      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.type === 'chunk' ? chunk.moduleIds : []) {
          const dir = packageOf(id);

          if (dir !== undefined && existsSync(join(dir, 'package.json'))) {
            dirs.add(dirname(join(dir, 'package.json')));
          }
        }
      }

      // its preflight is in our style sheet
      dirs.add(join(process.cwd(), 'node_modules', 'tailwindcss'));

      this.emitFile({
        type: 'asset',
        fileName: 'THIRD-PARTY.txt',
        source: 'The console contains these works of others.\n\n'
          + [...dirs].sort().map(noticeOf).join(`\n\n${'-'.repeat(72)}\n\n`) + '\n',
      });
    },
  };
}

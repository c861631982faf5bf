// A .gz beside everything that is worth it, for nginx's gzip_static: the best
// ratio, and no work for the workers.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

const WORTH = /\.(?:html|js|css|svg|json|txt|wasm)$/;
const SMALLEST = 600;

export function compressed(): Plugin {
  let dir = '';

  return {
    name: 'console-compressed',
    apply: 'build',

    configResolved(config) {
      dir = resolve(config.root, config.build.outDir);
    },

    async closeBundle() {
      for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !WORTH.test(entry.name)) {
          continue;
        }

        const file = join(entry.parentPath, entry.name);
        const text = await readFile(file);

        if (text.length >= SMALLEST) {
          await writeFile(`${file}.gz`, gzipSync(text, { level: 9 }));
        }
      }
    },
  };
}

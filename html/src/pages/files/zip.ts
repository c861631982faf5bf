// A folder as a zip, made here: execd gives files one by one.

import { Zip, ZipDeflate, ZipPassThrough } from 'fflate';
import { type Entry, listFolder, readFile } from '@/api/files';

const DEPTH = 64;
export const MOST_FILES = 5_000;
export const MOST_BYTES = 256 * 1024 * 1024;

export interface Plan {
  files: Entry[];
  bytes: number;
  /** Links and devices, which a zip does not hold. */
  left: number;
}

export const fits = (plan: Plan): boolean => plan.files.length <= MOST_FILES && plan.bytes <= MOST_BYTES;

/** What would be in it. */
export async function planZip(id: string, folder: string, signal: AbortSignal): Promise<Plan> {
  const all = await listFolder(id, folder, DEPTH, signal);
  const files = all.filter((e) => e.type === 'file');

  return {
    files, bytes: files.reduce((n, e) => n + e.size, 0),
    left: all.filter((e) => e.type === 'symlink' || e.type === 'other').length,
  };
}

/** A name that stays below where it is unpacked, on systems with `\` between names too. */
export const zipName = (path: string, folder: string): string =>
  path.slice(folder === '/' ? 1 : folder.length + 1).replaceAll('\\', '_');

const PACKED = /\.(?:zip|gz|tgz|bz2|xz|zst|7z|png|jpe?g|gif|webp|mp[34]|whl|jar)$/i;

/** Reads the files one after the other; what could not be read is told by its path. */
export async function makeZip(
  id: string, folder: string, plan: Plan, onProgress: (files: number, bytes: number) => void, signal: AbortSignal,
): Promise<{ blob: Blob; failed: string[] }> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const failed: string[] = [];
  const zip = new Zip((error, part) => {
    if (error) {
      throw error;
    }
    parts.push(part);
  });
  let bytes = 0;

  for (const [n, file] of plan.files.entries()) {
    let content: Uint8Array;

    try {
      content = await readFile(id, file.path, signal);
    } catch (e) {
      if (signal.aborted) {
        throw e;
      }
      failed.push(file.path);
      continue;
    }

    const name = zipName(file.path, folder);
    const member = PACKED.test(name) ? new ZipPassThrough(name) : new ZipDeflate(name, { level: 6 });

    member.mtime = Math.max(Date.parse(file.modified_at) || 0, Date.UTC(1980, 0, 2));
    member.os = 3;
    member.attrs = (0o100000 | parseInt(String(file.mode), 8)) << 16;
    zip.add(member);
    member.push(content, true);
    bytes += content.length;
    onProgress(n + 1, bytes);
  }

  zip.end();
  return { blob: new Blob(parts, { type: 'application/zip' }), failed };
}

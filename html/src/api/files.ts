// Files of a sandbox, through execd's routes as any client of OpenSandbox uses
// them: each call is judged and recorded.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { queryOptions } from '@tanstack/react-query';
import { sessionEnded } from './credential';
import { ApiError, errorOf } from './errors';
import { api, apiUrl, execd, execdUrl, path as route, request, wholeOf } from './request';

export interface Entry {
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  modified_at: string;
  owner: string;
  group: string;
  /** Octal digits, as a decimal number. */
  mode: number;
}

export interface Content {
  bytes: Uint8Array<ArrayBuffer>;
  /** SHA-256, in hexadecimal. */
  hash: string;
}

export interface Version {
  seq: number;
  id: string;
  n: number;
  type: string;
  status: string;
  started_at: string;
  completed_at: string | null;
  actor_type: string;
  actor_id: string | null;
  path: string;
  old_path: string | null;
  size: number | null;
  sha256: string | null;
  /** How the content before it is known. */
  before: string | null;
  before_size: number | null;
  before_sha256: string | null;
  restored_from: string | null;
  kept: boolean;
}

export interface VersionPage {
  items: Version[];
  next: number | null;
}

export const hashOf = (bytes: Uint8Array): string => bytesToHex(sha256(bytes));

/** execd expands $NAME and ~ in paths, and has no way to say that it should not. */
function literal(path: string): string {
  if (path.includes('$') || !path.startsWith('/')) {
    throw new ApiError(0, 'PATH_EXPANDS', path);
  }

  return path;
}

export const listFolder = (id: string, path: string, depth = 1, signal?: AbortSignal) =>
  execd<Entry[]>(id, 'directories/list', { params: { path: literal(path), depth }, signal });

const ROOT: Entry = { path: '/', type: 'directory', size: 0, modified_at: '', owner: '', group: '', mode: 0 };

const above = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

/**
 * What stands there; null when nothing does.  Out of the list of its folder:
 * lists wait for no lock, and files/info waits for all below its path.
 */
export async function statPath(id: string, path: string, signal?: AbortSignal): Promise<Entry | null> {
  if (path === '/') {
    return ROOT;
  }

  try {
    return (await listFolder(id, above(path), 1, signal)).find((e) => e.path === path) ?? null;
  } catch (e) {
    if (e instanceof ApiError && e.code === 'FILE_NOT_FOUND') {
      return null;
    }
    throw e;
  }
}

/** The bytes of a file, or its first `most`. */
export async function readFile(id: string, path: string, signal?: AbortSignal, most?: number): Promise<Uint8Array<ArrayBuffer>> {
  const response = await request(execdUrl(id, 'files/download', { path: literal(path) }), {
    signal, headers: most === undefined ? {} : { Range: `bytes=0-${most - 1}` },
  });

  return new Uint8Array(await wholeOf(response.arrayBuffer(), signal));
}

/** A file that there is keeps its mode, a new one gets that of files which nobody runs. */
function uploadForm(path: string, file: Blob, isNew: boolean): FormData {
  const form = new FormData();
  const meta = JSON.stringify({ path: literal(path), ...(isNew ? { mode: 644 } : {}) });

  form.append('metadata', new Blob([meta], { type: 'application/json' }), 'metadata');
  form.append('file', file, 'file');
  return form;
}

interface WriteOptions {
  /** Only if this is what stands there now. */
  ifHash?: string;
  /** Only if nothing stands there now. */
  ifNew?: boolean;
  /** The operation whose content this is. */
  restoredFrom?: string;
}

async function put(id: string, path: string, bytes: Uint8Array<ArrayBuffer>, o: WriteOptions): Promise<void> {
  await request(execdUrl(id, 'files/upload'), {
    method: 'POST',
    body: uploadForm(path, new Blob([bytes]), o.ifNew ?? false),
    headers: {
      ...(o.ifHash === undefined ? {} : { 'If-Match': `sha256:${o.ifHash}` }),
      ...(o.ifNew ? { 'If-None-Match': '*' } : {}),
      ...(o.restoredFrom === undefined ? {} : { 'X-Sandbox-Restored-From': o.restoredFrom }),
    },
  });
}

/** Writes a file; an ApiError of 412 when something else stands there than was said. */
export async function writeFile(id: string, path: string, bytes: Uint8Array<ArrayBuffer>, o: WriteOptions = {}): Promise<void> {
  try {
    return await put(id, path, bytes, o);
  } catch (e) {
    if (!(e instanceof ApiError && e.status === 501)) {
      throw e;
    }
  }

  // a gateway without locks does not compare; this page can, if not at the same moment
  const there = await statPath(id, path);
  const same = o.ifHash === undefined ? !there : there && hashOf(await readFile(id, path)) === o.ifHash;

  if (!same) {
    throw new ApiError(412, 'GATEWAY_PRECONDITION_FAILED', '');
  }

  await put(id, path, bytes, { restoredFrom: o.restoredFrom });
}

/**
 * Sends a file of any size and tells how far it is; only XMLHttpRequest can.  A
 * new one only where nothing stands: an ApiError of 412 when something does.
 */
export async function uploadFile(
  id: string, path: string, file: Blob, isNew: boolean, onProgress: (sent: number) => void, signal: AbortSignal,
): Promise<void> {
  try {
    return await send(id, path, file, isNew, isNew, onProgress, signal);
  } catch (e) {
    if (!(isNew && e instanceof ApiError && e.status === 501)) {
      throw e;
    }
  }

  // a gateway without locks does not compare; this page can, if not at the same moment
  if (await statPath(id, path, signal)) {
    throw new ApiError(412, 'GATEWAY_PRECONDITION_FAILED', '');
  }

  await send(id, path, file, isNew, false, onProgress, signal);
}

function send(
  id: string, path: string, file: Blob, isNew: boolean, onlyNew: boolean, onProgress: (sent: number) => void, signal: AbortSignal,
): Promise<void> {
  return new Promise((done, fail) => {
    const form = uploadForm(path, file, isNew);
    const x = new XMLHttpRequest();
    const stop = () => x.abort();

    x.open('POST', execdUrl(id, 'files/upload'));
    if (onlyNew) {
      x.setRequestHeader('If-None-Match', '*');
    }
    x.upload.onprogress = (e) => onProgress(Math.min(e.loaded, file.size));
    x.onloadend = () => signal.removeEventListener('abort', stop);
    x.onabort = () => fail(new DOMException('stopped', 'AbortError'));
    x.onerror = () => fail(new ApiError(0, 'NETWORK', ''));
    x.onload = async () => {
      if (x.status >= 200 && x.status < 300) {
        done();
        return;
      }
      if (x.status === 401) {
        sessionEnded();
      }
      fail(await errorOf(new Response(x.responseText, { status: x.status })));
    };
    signal.addEventListener('abort', stop);
    x.send(form);
  });
}

export const movePath = (id: string, src: string, dest: string) =>
  execd<void>(id, 'files/mv', { method: 'POST', json: [{ src: literal(src), dest: literal(dest) }] });

export const makeFolder = (id: string, path: string) =>
  execd<void>(id, 'directories', { method: 'POST', json: { [literal(path)]: {} } });

/** A folder goes with all that is in it. */
export const deletePath = (id: string, entry: Pick<Entry, 'path' | 'type'>) =>
  execd<void>(id, entry.type === 'directory' ? 'directories' : 'files',
    { method: 'DELETE', params: { path: literal(entry.path) } });

/** What a version of a file was, or what stood there before it. */
export async function versionContent(id: string, op: string, n: number, version: 'before' | 'after', signal?: AbortSignal) {
  const response = await request(apiUrl(route`sandboxes/${id}/operations/${op}/content`, { version, n }), { signal });

  return new Uint8Array(await wholeOf(response.arrayBuffer(), signal));
}

const order = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** Folders first, then by name. */
const sorted = (entries: Entry[]) => entries.sort((a, b) =>
  Number(b.type === 'directory') - Number(a.type === 'directory') || order.compare(a.path, b.path));

export const folderQuery = (id: string, path: string) => queryOptions({
  queryKey: ['files', id, 'folder', path],
  queryFn: async ({ signal }) => sorted(await listFolder(id, path, 1, signal)),
  staleTime: 10_000,
});

/** One entry, from what is known of its folder. */
export const entryQuery = (id: string, path: string) => queryOptions({
  ...folderQuery(id, above(path)),
  select: (entries) => (path === '/' ? ROOT : entries.find((e) => e.path === path) ?? null),
});

export const contentQuery = (id: string, path: string) => queryOptions({
  queryKey: ['files', id, 'content', path],
  queryFn: async ({ signal }): Promise<Content> => {
    const bytes = await readFile(id, path, signal);
    return { bytes, hash: hashOf(bytes) };
  },
  structuralSharing: false,
  gcTime: 0,
  staleTime: Infinity,
});

/** A read that found what was known already says nothing new; one that did not saw what a command wrote. */
const distinct = (page: VersionPage): VersionPage => ({
  ...page,
  items: page.items.filter((v, i) => v.type !== 'file.read' || v.sha256 !== page.items.slice(i + 1).find((o) => o.sha256 !== null)?.sha256),
});

export const versionsQuery = (id: string, path: string) => queryOptions({
  queryKey: ['files', id, 'versions', path],
  queryFn: ({ signal }) => api<VersionPage>(route`sandboxes/${id}/versions`, { params: { path, limit: 200 }, signal }),
  select: distinct,
});

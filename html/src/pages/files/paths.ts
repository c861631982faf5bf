// Absolute paths of a sandbox.

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1) || '/';

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

export const join = (folder: string, name: string): string => (folder === '/' ? `/${name}` : `${folder}/${name}`);

/** What was done with a file, or with all below a folder, in the sandbox's history. */
export const historyOf = (id: string, path: string, folder = false): string =>
  `/sandboxes/${encodeURIComponent(id)}/history?path=${encodeURIComponent(folder ? `${path === '/' ? '' : path}/*` : path)}`;

/** Is it that folder, or below it? */
export const within = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);

/** In one spelling; a relative one begins in `folder`. */
export function normal(path: string, folder = '/'): string {
  const parts: string[] = [];

  for (const part of (path.startsWith('/') ? path : `${folder}/${path}`).split('/')) {
    if (part === '..') {
      parts.pop();
    } else if (part !== '' && part !== '.') {
      parts.push(part);
    }
  }

  return `/${parts.join('/')}`;
}

/** The folders from the root down to it, each with its name. */
export function crumbs(path: string): { path: string; name: string }[] {
  const parts = path.split('/').filter(Boolean);

  return [{ path: '/', name: '/' },
    ...parts.map((name, i) => ({ path: `/${parts.slice(0, i + 1).join('/')}`, name }))];
}

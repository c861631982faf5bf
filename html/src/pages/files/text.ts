// Is it text, and can an editor give it back as it was?

/** A NUL, or bytes that are no UTF-8, make it binary: null. */
export function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) {
    return null;
  }

  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Line ends of more than one kind, or of a kind that an editor does not keep. */
export function mixedLineEnds(text: string): boolean {
  const crlf = text.match(/\r\n/g)?.length ?? 0;
  const cr = (text.match(/\r/g)?.length ?? 0) - crlf;
  const lf = (text.match(/\n/g)?.length ?? 0) - crlf;

  return cr > 0 || (crlf > 0 && lf > 0);
}

const ENDS = /\r\n|\r|\n/g;
// lines times lines that are compared at most
const MOST_COMPARED = 4_000_000;

/** Which line of `a` each of `b` was: the longest common ones, those between them by their place. */
function matches(a: readonly string[], b: readonly string[]): Int32Array {
  const was = new Int32Array(b.length).fill(-1);
  let start = 0;
  let [enda, endb] = [a.length, b.length];

  while (start < enda && start < endb && a[start] === b[start]) {
    was[start] = start++;
  }
  while (enda > start && endb > start && a[enda - 1] === b[endb - 1]) {
    was[--endb] = --enda;
  }

  const [n, m] = [enda - start, endb - start];
  const between = (i: number, toI: number, j: number, toJ: number) => {
    for (; i < toI && j < toJ; i++, j++) {
      was[j] = i;
    }
  };

  if (n * m > MOST_COMPARED) {
    between(start, enda, start, endb);
    return was;
  }

  // lengths of what the rest of both has in common
  const common = new Uint32Array((n + 1) * (m + 1));

  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      common[i * (m + 1) + j] = a[start + i] === b[start + j] ? common[(i + 1) * (m + 1) + j + 1]! + 1
        : Math.max(common[(i + 1) * (m + 1) + j]!, common[i * (m + 1) + j + 1]!);
    }
  }

  let [i, j, fromI, fromJ] = [0, 0, 0, 0];

  while (i < n && j < m) {
    if (a[start + i] === b[start + j]) {
      between(start + fromI, start + i, start + fromJ, start + j);
      was[start + j++] = start + i++;
      [fromI, fromJ] = [i, j];
    } else if (common[(i + 1) * (m + 1) + j]! >= common[i * (m + 1) + j + 1]!) {
      i++;
    } else {
      j++;
    }
  }

  between(start + fromI, enda, start + fromJ, endb);
  return was;
}

/** A text whose line ends an editor has made alike, with those that its lines had before; a new line has that of the one above. */
export function withOwnEnds(before: string, after: string): string {
  const ends = before.match(ENDS) ?? [];
  const lines = after.split(ENDS);
  const was = matches(before.split(ENDS), lines);
  let end = ends[0] ?? '\n';

  return lines.map((line, i) => {
    end = ends[was[i]!] ?? end;
    return i < lines.length - 1 ? line + end : line;
  }).join('');
}

/** Bytes as people look at them: offset, hexadecimal, letters. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];

  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((b) => b.toString(16).padStart(2, '0')).join(' ');
    const letters = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join('');

    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${letters}`);
  }

  return lines.join('\n');
}

const IMAGES: Record<string, string> = {
  png: 'image/png', apng: 'image/apng', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif',
  webp: 'image/webp', avif: 'image/avif', bmp: 'image/bmp', ico: 'image/x-icon', svg: 'image/svg+xml',
};

/** Its type, when its name says that it is an image. */
export const imageType = (path: string): string | null =>
  IMAGES[/\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ''] ?? null;

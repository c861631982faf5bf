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

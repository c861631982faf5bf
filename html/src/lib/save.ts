import { wholeOf } from '@/api/request';

/** Gives the reader a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');

  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Bytes of a download that stay in memory. */
const HELD = 8 * 1024 * 1024;

/** Reads an answer to its end and tells how far it is. */
export async function readAll(response: Response, onBytes: (n: number) => void, signal?: AbortSignal): Promise<Blob> {
  const parts: Blob[] = [];
  const reader = response.body!.getReader();
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  let n = 0;
  let held = 0;

  for (;;) {
    const { done, value } = await wholeOf(reader.read(), signal);

    if (done) {
      return new Blob([...parts, ...pieces], { type: response.headers.get('Content-Type') ?? 'application/octet-stream' });
    }

    pieces.push(value);
    n += value.length;
    held += value.length;
    // what is a Blob need not be in memory: the browser may put it on disk
    if (held > HELD) {
      parts.push(new Blob(pieces));
      pieces = [];
      held = 0;
    }
    onBytes(n);
  }
}

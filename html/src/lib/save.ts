import { wholeOf } from '@/api/request';

/** Gives the reader a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');

  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Reads an answer to its end and tells how far it is. */
export async function readAll(response: Response, onBytes: (n: number) => void, signal?: AbortSignal): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body!.getReader();
  let n = 0;

  for (;;) {
    const { done, value } = await wholeOf(reader.read(), signal);

    if (done) {
      return new Blob(parts, { type: response.headers.get('Content-Type') ?? 'application/octet-stream' });
    }

    parts.push(value);
    n += value.length;
    onBytes(n);
  }
}

// The records of an export as they come, without those that the list leaves
// out: the gateway is asked for what passes, what is left out of it is left out
// here.  The last line says how many there are, and is written anew then.

import { ApiError } from '@/api/errors';
import type { Operation } from '@/api/types';

/** Formats of which single records can be told apart. */
export const BY_RECORD = ['jsonl', 'csv'] as const;
export type ByRecord = (typeof BY_RECORD)[number];

export interface Told {
  /** Records that came. */
  seen: number;
  /** Those that are in the file. */
  kept: number;
}

type Hidden = (o: Operation) => boolean;

abstract class Rows {
  readonly told: Told = { seen: 0, kept: 0 };
  whole = false;
  protected rest = '';

  /** What of a piece goes into the file. */
  abstract push(text: string): string;

  protected keep(row: string, hidden: boolean): string {
    this.told.seen++;
    this.told.kept += hidden ? 0 : 1;
    return hidden ? '' : row;
  }
}

class JsonLines extends Rows {
  constructor(private readonly hidden: Hidden | null) { super(); }

  push(text: string): string {
    const lines = (this.rest + text).split('\n');
    let out = '';

    this.rest = lines.pop()!;

    for (const line of lines) {
      if (line.startsWith('{"export":')) {
        const end = JSON.parse(line) as { export: { records: number } };

        this.whole = true;
        out += `${JSON.stringify({ export: { ...end.export, records: this.told.kept } })}\n`;
      } else {
        out += this.keep(`${line}\n`, this.hidden !== null && this.hidden(JSON.parse(line) as Operation));
      }
    }

    return out;
  }
}

/** The cells of a row (RFC 4180); an apostrophe in front of what a program would take for a formula is ours. */
function cells(row: string): string[] {
  const all: string[] = [];

  for (const [, quoted, plain] of row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) {
    all.push((quoted?.replaceAll('""', '"') ?? plain ?? '').replace(/^'(?=[=+\-@\t\r])/, ''));
  }

  return all;
}

class Csv extends Rows {
  private head: string[] | null = null;
  // the rows before `at` of what has come are told; quotes are open up to there
  private open = false;

  constructor(private readonly hidden: Hidden | null) { super(); }

  push(text: string): string {
    const all = this.rest + text;
    let out = '';
    let from = 0;

    for (let at = this.rest.length; ;) {
      const end = all.indexOf('\n', at);
      const part = all.slice(at, end < 0 ? undefined : end + 1);

      for (let q = part.indexOf('"'); q >= 0; q = part.indexOf('"', q + 1)) {
        this.open = !this.open;
      }

      if (end < 0) {
        this.rest = all.slice(from);
        return out;
      }

      at = end + 1;
      if (!this.open) {
        out += this.row(all.slice(from, at));
        from = at;
      }
    }
  }

  private row(row: string): string {
    if (!this.head) {
      this.head = cells(row.trimEnd());
      return row;
    }

    if (row.startsWith('#end,')) {
      this.whole = true;
      return row.replace(/^#end,\d*/, `#end,${this.told.kept}`);
    }

    return this.keep(row, this.hidden !== null && this.hidden(this.operation(row)));
  }

  /** As much of a record as can be left out by. */
  private operation(row: string): Operation {
    const values = cells(row.replace(/\r?\n$/, ''));
    const of = (name: string) => values[this.head!.indexOf(name)] || null;
    const exit = of('exit_code');

    return {
      type: of('type') ?? '', status: of('status'), source: of('source') ?? '', sandbox_id: of('sandbox_id'),
      exit_code: exit === null ? null : Number(exit), file: of('path') === null ? null : { path: of('path') },
      actor: { type: of('actor_type') ?? '', id: of('actor_id'), run: of('run'), thread: of('thread'), correlation: of('correlation') },
    } as Operation;
  }
}

/** What comes, without what is left out; an answer that breaks off is no export. */
export function exported(format: ByRecord, hidden: Hidden | null, onTold: (told: Told) => void): TransformStream<Uint8Array, Uint8Array> {
  const rows = format === 'csv' ? new Csv(hidden) : new JsonLines(hidden);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const encoder = new TextEncoder();

  return new TransformStream({
    transform(piece, to) {
      to.enqueue(encoder.encode(rows.push(decoder.decode(piece, { stream: true }))));
      onTold(rows.told);
    },
    flush() {
      if (!rows.whole) {
        throw new ApiError(0, 'NETWORK', '');
      }
    },
  });
}

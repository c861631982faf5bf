// What a command wrote, read page by page behind what is there: nothing is
// asked for twice, and only the block that grew is drawn anew.

import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { ApiError } from '@/api/errors';
import { outputPage } from '@/api/queries';
import type { Operation, OutputPiece } from '@/api/types';
import { Colours, type Span } from './ansi';

export type Stream = 'both' | 'stdout' | 'stderr';

const POLL = 1_000;
const FAILED = 3_000;
const BLOCK = 64 * 1024;

/** Consecutive text of one stream; ends with a line, as far as there is another block behind it. */
export interface Block {
  key: number;
  stream: 'stdout' | 'stderr';
  text: string;
  lines: number;
  spans: Span[];
}

interface Known {
  blocks: readonly Block[];
  /** Something has come, be it nothing. */
  asked: boolean;
  /** There is more behind it now. */
  more: boolean;
  /** Nothing will come any more. */
  over: boolean;
  error: unknown;
}

const countLines = (text: string): number => {
  let n = 1;

  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) {
    n++;
  }

  return n;
};

class Written {
  known: Known = { blocks: [], asked: false, more: false, over: false, error: null };
  private last: number | null = null;
  private busy: AbortController | null = null;
  private readonly listeners = new Set<() => void>();
  private readonly decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  private readonly encoder = new TextEncoder();
  /** How the colours of a stream stood where its newest block begins. */
  private readonly colours = { stdout: new Colours(), stderr: new Colours() };

  constructor(private readonly id: string, private readonly stream: Stream, private readonly sandbox: string | undefined) {}

  readonly subscribe = (f: () => void) => {
    this.listeners.add(f);

    return () => {
      this.listeners.delete(f);
      if (this.listeners.size === 0) {
        this.busy?.abort();
        this.busy = null;
      }
    };
  };

  readonly now = () => this.known;

  /** Asks for what is behind what is there. */
  readonly go = async (): Promise<void> => {
    if (this.busy) {
      return;
    }

    const aborter = this.busy = new AbortController();

    try {
      const page = await outputPage(this.id, this.stream, this.last, this.sandbox, aborter.signal);

      if (this.busy !== aborter) {
        return;
      }
      this.last = page.last ?? this.last;
      this.tell({
        blocks: this.add(page.items), asked: true, more: page.next !== null,
        over: page.next === null && page.status !== 'started', error: null,
      });
    } catch (error) {
      if (this.busy === aborter) {
        this.tell({ ...this.known, error });
      }
    }
  };

  private tell(known: Known) {
    this.busy = null;
    this.known = known;
    this.listeners.forEach((f) => f());
  }

  /** Characters cut between pieces are whole again, and colours last from piece to piece. */
  private add(items: readonly OutputPiece[]): readonly Block[] {
    if (items.length === 0) {
      return this.known.blocks;
    }

    const blocks = [...this.known.blocks];
    const open: Block[] = [];

    const put = (stream: Block['stream'], text: string) => {
      let last = blocks.at(-1);

      if (text === '') {
        return;
      }
      if (last?.stream !== stream || (last.text.length >= BLOCK && last.text.endsWith('\n'))) {
        last = { key: blocks.length, stream, text: '', lines: 0, spans: [] };
        blocks.push(last);
        open.push(last);
      } else if (!open.includes(last)) {
        last = { ...last };
        blocks[blocks.length - 1] = last;
        open.push(last);
      }
      last.text += text;
    };

    for (const piece of items) {
      const bytes = piece.text !== undefined
        ? this.encoder.encode(piece.text)
        : Uint8Array.from(atob(piece.data_base64 ?? ''), (c) => c.charCodeAt(0));
      const text = this.decoders[piece.stream].decode(bytes, { stream: true });
      const cut = text.lastIndexOf('\n') + 1;

      put(piece.stream, text.slice(0, cut));
      put(piece.stream, text.slice(cut));
    }

    for (const block of open) {
      const newest = blocks.findLast((b) => b.stream === block.stream) === block;
      const colours = newest ? this.colours[block.stream].copy() : this.colours[block.stream];

      block.lines = countLines(block.text);
      block.spans = colours.read(block.text);
    }

    return blocks;
  }
}

/**
 * What an operation wrote to a stream.  The next page comes by itself while
 * `all` is wanted, and what is new while it runs and nothing is missing.
 */
export function useWritten(o: Operation, stream: Stream, all: boolean) {
  const sandbox = o.sandbox_id ?? undefined;
  const written = useMemo(() => new Written(o.id, stream, sandbox), [o.id, stream, sandbox]);
  const known = useSyncExternalStore(written.subscribe, written.now);
  const [asks, setAsks] = useState(false);

  useEffect(() => {
    const { asked, more, over, error } = known;

    if (error !== null ? !(error instanceof ApiError && error.passing) : asked && (over || (more && !all))) {
      setAsks(false);
      return undefined;
    }
    if (error === null && (!asked || more)) {
      setAsks(true);
      void written.go();
      return undefined;
    }

    const timer = setTimeout(() => void written.go(), error === null ? POLL : FAILED);
    return () => clearTimeout(timer);
  }, [written, known, all]);

  return { ...known, asks, go: written.go };
}

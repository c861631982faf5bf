// Server-sent events of /live.  Read with fetch, not EventSource: it can tell
// 401 from a broken line, and sees the comments that are signs of life.
//
// A tab has at most one stream, closed while nobody looks at the tab: browsers
// open six connections to a host, and eight tabs have to work.

import { useEffect, useRef, useState } from 'react';
import { onSessionBegin, sessionEnded, sessionIsOver } from './credential';
import { apiUrl, type Params } from './request';
import { EventParser } from './sse';
import type { LiveEvent } from './types';

export type LiveState = 'connecting' | 'open' | 'waiting' | 'paused';

const SILENT = 40_000;          // a sign of life comes every 10 s
const BEGUN = 5_000;            // the beginning comes at once
const HIDDEN = 5_000;
const FIRST_RETRY = 1_000;
const LONGEST_RETRY = 20_000;

// Nothing has come of a stream that was answered: something on the way passes
// whole buffers only.  All streams of this tab are asked for with signs of life
// that fill one, from then on (docs/console-api.md).
const WHOLE_BUFFER = 16_384;
let padding: number | undefined;

export interface LiveOptions {
  route: string;
  params?: Params;
  /** Cursor behind which it begins; without one, at the present. */
  after?: number;
  onEvent(e: LiveEvent): void;
  onState?(s: LiveState): void;
}

export class LiveStream {
  private last: string | null;
  private aborter: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private hiding: ReturnType<typeof setTimeout> | undefined;
  private retry = FIRST_RETRY;
  private failures = 0;
  private answered = false;
  private heard = false;
  private closed = false;
  private readonly deaf: () => void;

  constructor(private readonly o: LiveOptions) {
    this.last = o.after === undefined ? null : String(o.after);
    document.addEventListener('visibilitychange', this.onVisibility);
    addEventListener('online', this.onOnline);
    addEventListener('offline', this.onOffline);
    this.deaf = onSessionBegin(this.onOnline);

    if (document.hidden) {
      o.onState?.('paused');
    } else {
      void this.connect();
    }
  }

  close(): void {
    this.closed = true;
    document.removeEventListener('visibilitychange', this.onVisibility);
    removeEventListener('online', this.onOnline);
    removeEventListener('offline', this.onOffline);
    this.deaf();
    clearTimeout(this.timer);
    clearTimeout(this.hiding);
    this.hangUp();
  }

  private readonly onVisibility = () => {
    clearTimeout(this.hiding);

    if (document.hidden) {
      this.hiding = setTimeout(() => {
        clearTimeout(this.timer);
        this.hangUp();
        this.o.onState?.('paused');
      }, HIDDEN);
    } else if (!this.aborter) {
      this.now();
    }
  };

  private readonly onOnline = () => {
    if (!this.aborter && !document.hidden) {
      this.now();
    }
  };

  private readonly onOffline = () => {
    if (this.aborter) {
      clearTimeout(this.timer);
      this.hangUp();
      this.o.onState?.('waiting');
    }
  };

  private now() {
    clearTimeout(this.timer);
    this.failures = 0;
    void this.connect();
  }

  private hangUp() {
    clearTimeout(this.silence);
    this.aborter?.abort();
    this.aborter = null;
  }

  private async connect(): Promise<void> {
    if (sessionIsOver()) {
      this.o.onState?.('waiting');
      return;
    }

    const aborter = new AbortController();
    this.aborter = aborter;
    this.o.onState?.('connecting');

    let ended = false;

    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };

      if (this.last !== null) {
        headers['Last-Event-ID'] = this.last;
      }

      this.answered = false;
      this.heard = false;
      this.listen(SILENT);
      const response = await fetch(apiUrl(this.o.route, { ...this.o.params, padding }), {
        headers, signal: aborter.signal, credentials: 'same-origin', cache: 'no-store',
      });

      // who signs in again goes on from here
      if (response.status === 401) {
        this.hangUp();
        this.o.onState?.('waiting');
        sessionEnded();
        return;
      }

      if (!response.ok || !response.body) {
        throw new Error(String(response.status));
      }

      this.answered = true;
      this.o.onState?.('open');
      this.listen(padding === undefined ? BEGUN : SILENT);
      await this.read(response.body);
      ended = true;
    } catch {
      // the line broke, or could not be had
    }

    if (this.closed || this.aborter !== aborter) {
      return;
    }

    this.hangUp();
    this.o.onState?.('waiting');
    this.failures = ended ? 0 : this.failures + 1;

    const wait = Math.min(this.retry * 2 ** Math.max(this.failures - 1, 0), LONGEST_RETRY);
    this.timer = setTimeout(() => void this.connect(), wait * (0.75 + Math.random() / 2));
  }

  private listen(ms: number) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      if (this.answered && !this.heard) {
        padding = WHOLE_BUFFER;
      }
      this.aborter?.abort();
    }, ms);
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    const reader = body.getReader();
    const parser = new EventParser({
      event: (name, data, id) => this.deliver(name, data, id),
      id: (id) => { this.last = id; },
      retry: (ms) => { this.retry = ms; },
    });

    for (;;) {
      const { done, value } = await reader.read();

      if (done) {
        return;
      }

      this.heard = true;
      this.listen(SILENT);
      this.failures = 0;
      parser.push(decoder.decode(value, { stream: true }));
    }
  }

  private deliver(name: string, text: string, id: string | null) {
    let data: { phase?: string };

    try {
      data = JSON.parse(text);
    } catch {
      return;
    }

    const event = name === 'operation' && data.phase === 'output' ? 'output' : name;
    this.o.onEvent({ event, cursor: Number(id ?? this.last), data } as LiveEvent);
  }
}

/** A stream for as long as the component stands and `enabled`; begun anew when route or params change. */
export function useLive(o: LiveOptions & { enabled?: boolean }): LiveState | 'off' {
  const [state, setState] = useState<LiveState | 'off'>('off');
  const onEvent = useRef(o.onEvent);
  const onState = useRef(o.onState);
  const after = useRef(o.after);
  const enabled = o.enabled ?? true;
  const key = JSON.stringify([o.route, o.params]);

  useEffect(() => {
    onEvent.current = o.onEvent;
    onState.current = o.onState;
    after.current = o.after;
  });

  useEffect(() => {
    if (!enabled) {
      setState('off');
      return undefined;
    }

    const [route, params] = JSON.parse(key) as [string, Params | undefined];
    const stream = new LiveStream({
      route, params, after: after.current,
      onEvent: (e) => onEvent.current(e),
      onState: (to) => {
        setState(to);
        onState.current?.(to);
      },
    });

    return () => stream.close();
  }, [enabled, key]);

  return state;
}

// One terminal's socket: frames both ways, reconnecting from the byte that was
// seen last, and the reasons for not doing so.
//
// A terminal has one client at a time.  Whoever finds it held asks before taking
// it; only a line of our own that broke, and that the other end has not missed
// yet, is taken back by itself.

import { onSessionBegin } from '@/api/credential';
import { ApiError } from '@/api/errors';
import { ptyClient, ptyOpens, ptySocket, ptyStatus } from '@/api/pty';
import type { Operation } from '@/api/types';

export type ConnectionState =
  | { is: 'connecting' }
  | { is: 'open' }
  | { is: 'waiting' }
  /** Somebody else has it. */
  | { is: 'held'; by: string | null }
  /** Somebody else has taken it. */
  | { is: 'taken'; by: string | null }
  | { is: 'exited'; code: number | null }
  /** There is no such terminal (any more). */
  | { is: 'gone' }
  | { is: 'refused'; error: unknown };

export interface Output {
  bytes: Uint8Array;
  /** Kept output of before, which nobody waits to be answered. */
  replay: boolean;
  /** So many bytes before it are no longer kept. */
  missing: number;
}

interface Options {
  sandbox: string;
  pty: string;
  size(): { cols: number; rows: number } | null;
  /** Makes the terminal as large as its place is now, and tells it. */
  fit(): void;
  onOutput(o: Output): void;
  onState(s: ConnectionState): void;
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const REPLAY = 3;

const CHUNK = 16 * 1024;
const AHEAD = 256 * 1024;
const MOST_QUEUED = 16 * 1024 * 1024;

const BEAT = 5_000;
const QUIET = 15_000;
const DEAD = 10_000;
const GREETING = 20_000;        // a handshake that nobody answers

const FIRST_RETRY = 300;
const LONGEST_RETRY = 10_000;
const TRIES = 3;                // until the reason is looked for
const SURE = 6;                 // until whoever has it is thought to be on no record

const TAKEN_OVER = 4001;

export class PtyConnection {
  private ws: WebSocket | null = null;
  private greeted = false;
  private offset = 0;
  // a line of ours is known by it when it is in our way; not kept longer than
  // this: another tab may be a copy of ours
  private readonly client = Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join('');
  private takenOver = false;
  private exit: { code: number | null } | null = null;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;
  private heard = 0;
  private asked = 0;
  private queue: Uint8Array<ArrayBuffer>[] = [];
  private queued = 0;
  private pumping: ReturnType<typeof setTimeout> | undefined;
  private sentSize = '';
  private closed = false;
  private readonly deaf: () => void;
  private state: ConnectionState = { is: 'connecting' };

  constructor(private readonly o: Options) {
    addEventListener('online', this.onOnline);
    addEventListener('offline', this.onOffline);
    this.deaf = onSessionBegin(this.onSession);
    this.connect(false);
  }

  /** Leaves; what runs in the terminal goes on. */
  close(): void {
    this.closed = true;
    removeEventListener('online', this.onOnline);
    removeEventListener('offline', this.onOffline);
    this.deaf();
    this.hangUp();
  }

  /** Tries at once: after an end, or taking the terminal from whoever has it. */
  again(takeover = false): void {
    this.tries = 0;
    this.connect(takeover);
  }

  get open(): boolean {
    return this.state.is === 'open';
  }

  /** Types bytes, in order; false when more waits to be typed than is kept. */
  type(bytes: Uint8Array): boolean {
    if (!this.open) {
      return true;
    }

    if (this.queued + bytes.length > MOST_QUEUED) {
      return false;
    }

    for (let at = 0; at < bytes.length; at += CHUNK) {
      const part = bytes.subarray(at, at + CHUNK);
      const frame = new Uint8Array(part.length + 1);

      frame[0] = STDIN;
      frame.set(part, 1);
      this.queue.push(frame);
      this.queued += part.length;
    }

    this.pump();
    return true;
  }

  /** Tells the size, if it is one and another than was told. */
  resize(): void {
    const size = this.o.size();

    if (!this.open || !size || size.cols < 2 || size.rows < 2) {
      return;
    }

    const text = JSON.stringify({ type: 'resize', ...size });

    if (text !== this.sentSize) {
      this.sentSize = text;
      this.ws!.send(text);
    }
  }

  private pump() {
    clearTimeout(this.pumping);

    while (this.queue.length > 0 && this.ws?.readyState === WebSocket.OPEN && this.ws.bufferedAmount < AHEAD) {
      const frame = this.queue.shift()!;
      this.queued -= frame.length - 1;
      this.ws.send(frame);
    }

    if (this.queue.length > 0) {
      this.pumping = setTimeout(() => this.pump(), 10);
    }
  }

  private say(state: ConnectionState) {
    this.state = state;
    this.o.onState(state);
  }

  private readonly onOnline = () => {
    if (this.state.is === 'waiting') {
      this.again();
    }
  };

  /** What was refused for lack of a session goes on with the next one. */
  private readonly onSession = () => {
    if (this.state.is === 'waiting' || this.state.is === 'refused') {
      this.again();
    }
  };

  private readonly onOffline = () => {
    if (this.state.is === 'open' || this.state.is === 'connecting') {
      this.hangUp();
      this.say({ is: 'waiting' });
    }
  };

  /** Lets go of the socket and of all that was to happen later. */
  private hangUp() {
    const ws = this.ws;

    this.ws = null;
    clearTimeout(this.timer);
    clearTimeout(this.pumping);
    clearInterval(this.beat);
    this.queue = [];
    this.queued = 0;
    ws?.close();
  }

  private connect(takeover: boolean) {
    this.hangUp();
    this.greeted = false;
    this.takenOver = false;
    this.exit = null;
    this.sentSize = '';
    this.say({ is: 'connecting' });

    const ws = new WebSocket(ptySocket(this.o.sandbox, this.o.pty, this.offset, this.client, takeover));

    this.ws = ws;
    this.heard = Date.now();
    this.asked = 0;
    ws.binaryType = 'arraybuffer';
    ws.onmessage = (e: MessageEvent<ArrayBuffer | string>) => {
      if (ws === this.ws) {
        this.heard = Date.now();
        this.asked = 0;
        typeof e.data === 'string' ? this.text(e.data) : this.bytes(e.data);
      }
    };
    ws.onclose = (e) => {
      if (ws === this.ws) {
        this.hangUp();
        void this.ended(e.code);
      }
    };
    this.beat = setInterval(() => this.listen(), BEAT);
  }

  /** A line that is cut says nothing: it is asked. */
  private listen() {
    const now = Date.now();

    if (this.asked > 0 ? now - this.asked >= DEAD : !this.greeted && now - this.heard >= GREETING) {
      this.hangUp();
      void this.ended(1006);
    } else if (this.greeted && this.asked === 0 && now - this.heard >= QUIET) {
      this.asked = now;
      this.ws!.send('{"type":"ping"}');
    }
  }

  private bytes(data: ArrayBuffer) {
    const all = new Uint8Array(data);
    const channel = all[0];

    if (channel === STDOUT || channel === STDERR) {
      this.offset += all.length - 1;
      this.o.onOutput({ bytes: all.subarray(1), replay: false, missing: 0 });
    } else if (channel === REPLAY && all.length >= 9) {
      const from = Number(new DataView(data).getBigUint64(1));
      const missing = Math.max(0, from - this.offset);

      this.offset = from + all.length - 9;
      this.o.onOutput({ bytes: all.subarray(9), replay: true, missing });
    }
  }

  private text(data: string) {
    let frame: { type?: string; code?: string; error?: string; exit_code?: number };

    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }

    if (frame.type === 'connected') {
      this.greeted = true;
      this.tries = 0;
      this.say({ is: 'open' });
      this.fitSoon(this.ws);
    } else if (frame.type === 'exit') {
      this.exit = { code: frame.exit_code ?? null };
    } else if (frame.type === 'error' && frame.code === 'TAKEN_OVER') {
      this.takenOver = true;
    }
  }

  /** Once what said that the line was cut has gone: there is more room then. */
  private fitSoon(ws: WebSocket | null) {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (this.ws === ws && this.open) {
        this.o.fit();
      }
    }));
  }

  private async opens() {
    return await ptyOpens(this.o.sandbox, this.o.pty).catch(() => []);
  }

  private async isOurs(open: Operation | undefined) {
    return open !== undefined
      && await ptyClient(this.o.sandbox, open).catch(() => null) === this.client;
  }

  private async ended(code: number) {
    if (this.exit) {
      this.say({ is: 'exited', code: this.exit.code });
      return;
    }

    if (this.takenOver || code === TAKEN_OVER) {
      this.say({ is: 'taken', by: null });
      const [by] = await this.opens();

      if (by && !await this.isOurs(by) && this.state.is === 'taken') {
        this.say({ is: 'taken', by: by.actor.id });
      }
      return;
    }

    // a handshake that is refused does not tell why
    const tries = ++this.tries;

    this.say({ is: 'waiting' });

    try {
      const { running } = await ptyStatus(this.o.sandbox, this.o.pty);
      const [last, ...before] = this.greeted || tries < TRIES ? [] : await this.opens();

      if (!this.still(tries)) {
        return;
      }

      if (last?.error_code && last.verdict?.decision === 'deny') {
        this.say({ is: 'refused', error: new ApiError(403, last.error_code, [last.reason, last.verdict.rule].filter(Boolean).join(' · ')) });
        return;
      }

      if (running && last) {
        const holder = [last, ...before].findLast((o) => o.status === 'started');
        const ours = await this.isOurs(holder);

        if (!this.still(tries)) {
          return;
        }

        // who has none may have left since, or be on record in a moment
        if (holder || tries >= SURE) {
          ours ? this.connect(true) : this.say({ is: 'held', by: holder?.actor.id ?? null });
          return;
        }
      }
    } catch (e) {
      if (!this.still(tries)) {
        return;
      }

      if (e instanceof ApiError && !e.passing) {
        this.say(e.status === 404 ? { is: 'gone' } : { is: 'refused', error: e });
        return;
      }
    }

    this.timer = setTimeout(() => this.connect(false),
      Math.min(FIRST_RETRY * 2 ** (tries - 1), LONGEST_RETRY) * (0.75 + Math.random() / 2));
  }

  /** Has nothing else begun since? */
  private still(tries: number): boolean {
    return !this.closed && this.ws === null && this.state.is === 'waiting' && this.tries === tries;
  }
}

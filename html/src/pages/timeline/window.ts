// The records of a timeline as far as they are held: a stretch of pages with
// older ones at one end and newer ones at the other, loaded by cursor and
// dropped again, so that a million records cost what some pages cost.  At the
// newest end the live stream goes on where the last page stopped.

import { ApiError } from '@/api/errors';
import { api, type Params } from '@/api/request';
import { operationsRoute, type OperationFilters } from '@/api/queries';
import type { LiveEvent, Operation, OperationPage } from '@/api/types';

const PAGE = 200;
/** Records held at most; a page more while it is exchanged. */
export const HELD = 1_600;
// a search is not told live: what happens makes it ask again, so long after
const ASK_AGAIN = 1_200;
// an answer that lacked something does not for long, or for good
const ASK_SELDOM = 20_000;
// what could not be had for a reason that passes is asked for again, so soon at first, so seldom in the end
const RETRY = 1_000;
const RETRY_SELDOM = 20_000;
// a page had nothing to show: the next ones are larger, and after so many in a row the reader is asked
const LARGER = 500;
const BARREN = 20;

export type End = 'older' | 'newer';

export interface Held {
  /** The oldest first. */
  items: readonly Operation[];
  /** Is there more beyond that end?  Null while nobody knows. */
  older: boolean | null;
  newer: boolean | null;
  /** Records that came and are not seen: below what is looked at, or not held. */
  fresh: number;
  /** Older records that were looked at in a row without one to show, and back to when. */
  sought: { records: number; back: string; going: boolean } | null;
  loading: boolean;
  error: Error | null;
  /** Could all be read that was asked for? */
  complete: boolean;
  /** Changes when the list is another one, not the same one moved. */
  epoch: number;
  /** How many stand before the first of `items`; null while nobody knows. */
  base: number | null;
  /** The first of all, when the list is read from there on. */
  from: string | undefined;
}

export interface Question {
  sandbox: string | undefined;
  filters: OperationFilters;
  /** Records that are not to be shown, though the answers have them. */
  hidden(o: Operation): boolean;
}

const NOTHING: Held = {
  items: [], older: null, newer: null, fresh: 0, sought: null, loading: true, error: null, complete: true, epoch: 0,
  base: null, from: undefined,
};

/** One list out of two, each record once; of two versions the one of `over`. */
function merged(base: readonly Operation[], over: readonly Operation[]): Operation[] {
  const all = new Map(base.map((o) => [o.id, o]));

  for (const o of over) {
    const known = all.get(o.id);
    all.set(o.id, known ? { ...o, seq: o.seq ?? known.seq, chain: o.chain ?? known.chain, cursor: known.cursor } : o);
  }

  return [...all.values()].sort((a, b) => a.cursor - b.cursor);
}

const passes = (e: Error | null) => !(e instanceof ApiError) || e.passing;

export class RecordWindow {
  private held: Held = NOTHING;
  private readonly listeners = new Set<() => void>();
  private readonly aborter = new AbortController();
  private readonly busy = new Map<End | 'jump', Promise<void>>();
  private waiting: LiveEvent[] = [];
  private pushed: Operation[] = [];
  private scheduled = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private missing: ReturnType<typeof setTimeout> | undefined;
  private following = true;
  private closed = false;
  // the newest page lacks something, and no other does: so often in a row
  private lacked = 0;
  // what could not be had, to be asked for again, and how often it could not in a row
  private readonly failed = new Map<End | 'jump', () => Promise<void>>();
  private failures = 0;
  private recovery: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly q: Question) {
    addEventListener('online', this.recover);
  }

  readonly subscribe = (f: () => void) => {
    this.listeners.add(f);
    return () => void this.listeners.delete(f);
  };

  readonly get = () => this.held;

  close(): void {
    this.closed = true;
    this.aborter.abort();
    clearTimeout(this.timer);
    clearTimeout(this.missing);
    clearTimeout(this.recovery);
    removeEventListener('online', this.recover);
    cancelAnimationFrame(this.scheduled);
  }

  private set(patch: Partial<Held>) {
    if (!this.closed) {
      this.held = { ...this.held, ...patch };
      this.listeners.forEach((f) => f());
    }
  }

  private ask(params: Params): Promise<OperationPage> {
    return api<OperationPage>(operationsRoute(this.q.sandbox), {
      params: { ...this.q.filters, limit: PAGE, ...params } as Params, signal: this.aborter.signal,
    });
  }

  /** What a page has to show, the gaps in it too. */
  private shown(page: OperationPage): Operation[] {
    return merged(page.gaps, page.items.filter((o) => !this.q.hidden(o)));
  }

  private once(what: End | 'jump', work: () => Promise<void>): Promise<void> {
    const running = this.busy.get(what);

    if (running) {
      return running;
    }

    const promise = work().then(() => this.worked(what), (e: Error) => {
      if (!this.aborter.signal.aborted) {
        this.broke(what, work, e);
      }
    }).finally(() => this.busy.delete(what));

    this.busy.set(what, promise);
    return promise;
  }

  private worked(what: End | 'jump') {
    this.failed.delete(what);
    this.failures = 0;

    if (this.held.error && this.failed.size === 0) {
      clearTimeout(this.recovery);
      this.set({ error: null });
    }
  }

  /** It is said, and tried again by itself when it may be better a moment later. */
  private broke(what: End | 'jump', work: () => Promise<void>, e: Error) {
    this.failed.set(what, work);
    this.set({ error: e, loading: false });

    if (passes(e)) {
      const told = e instanceof ApiError && e.retryAfter !== null ? e.retryAfter * 1_000 : 0;

      clearTimeout(this.recovery);
      this.recovery = setTimeout(this.recover, Math.max(told, Math.min(RETRY * 2 ** this.failures++, RETRY_SELDOM)));
    }
  }

  /** There is reason to think that it would work now: the network is back, the stream is, or time has passed. */
  readonly recover = () => {
    if (this.held.error && passes(this.held.error)) {
      this.retry();
    }
  };

  /** Holds the newest records, or those around a cursor, and nothing else. */
  show(around?: number): Promise<void> {
    return this.once('jump', async () => {
      this.waiting = [];

      const [before, after] = await Promise.all([
        this.ask(around === undefined ? {} : { before: around + 1 }),
        around === undefined ? null : this.ask({ after: around, order: 'asc' }),
      ]);
      const items = merged(this.shown(before), after ? this.shown(after) : []);
      const told = this.waiting;

      this.waiting = [];
      this.oldest = before.items.at(-1)?.cursor ?? around;
      this.newest = after?.items.at(-1)?.cursor ?? before.items[0]?.cursor ?? around ?? 0;
      this.set({
        items, loading: false, error: null, fresh: 0, complete: before.complete && (after?.complete ?? true),
        sought: items.length > 0 || before.next === null ? null : this.looked(null, before, true),
        older: before.next !== null, newer: after ? after.next !== null : false, epoch: this.held.epoch + 1,
        base: before.next === null ? 0 : null, from: undefined,
      });
      this.forget();
      if (!before.complete && !after) {
        this.lacks();
      }
      told.forEach((e) => this.tell(e));

      if (items.length < 50 && before.next !== null) {
        await this.more('older');
      }
    });
  }

  /** Holds the oldest records, and nothing else. */
  first(): Promise<void> {
    return this.once('jump', async () => {
      this.waiting = [];

      const page = await this.ask({ order: 'asc' });
      const items = this.shown(page);
      const told = this.waiting;

      this.waiting = [];
      this.oldest = page.items[0]?.cursor;
      this.newest = page.items.at(-1)?.cursor ?? 0;
      this.set({
        items, loading: false, error: null, fresh: 0, complete: page.complete, sought: null,
        older: false, newer: page.next !== null, epoch: this.held.epoch + 1, base: 0, from: items[0]?.id,
      });
      this.forget();
      told.forEach((e) => this.tell(e));

      if (items.length === 0) {
        await this.more('newer');
      }
    });
  }

  // where pages were cut; hidden records have cursors too
  private oldest: number | undefined;
  private newest = 0;

  /** Cursor behind which the live stream begins. */
  get cursor(): number {
    return this.newest;
  }

  /** Loads what is beyond an end, and lets go of what is furthest from it. */
  more(end: End): Promise<void> {
    if (!this.held[end] || this.held.error || (end === 'older' && this.held.sought?.going === false)) {
      return Promise.resolve();
    }

    return this.once(end, () => this.fill(end));
  }

  /** Looks further back, though there was nothing to show for long. */
  seek(): Promise<void> {
    if (!this.held.older || !this.held.sought) {
      return Promise.resolve();
    }

    this.set({ sought: { ...this.held.sought, going: true } });
    return this.once('older', () => this.fill('older'));
  }

  private looked(before: Held['sought'], page: OperationPage, going: boolean): Held['sought'] {
    return {
      records: (before?.records ?? 0) + page.items.length,
      back: page.items.at(-1)?.started_at ?? before?.back ?? '', going,
    };
  }

  /** Page after page, until there is something to show. */
  private async fill(end: End): Promise<void> {
    const { epoch } = this.held;

    for (let barren = 0; this.held[end] && barren < BARREN; barren++) {
      const limit = barren === 0 ? PAGE : LARGER;
      const page = await this.ask(end === 'older' ? { limit, before: this.oldest } : { limit, after: this.newest, order: 'asc' });

      if (epoch !== this.held.epoch) {
        return;
      }

      if (!page.complete) {
        this.lacked = 0;
      }

      const last = page.items.at(-1)?.cursor;
      const found = this.shown(page);
      const goesOn = page.next !== null && last !== undefined;
      const patch: Partial<Held> = { [end]: goesOn, complete: this.held.complete && page.complete };

      if (end === 'older') {
        this.oldest = last ?? this.oldest;
        patch.sought = found.length > 0 || !goesOn ? null : this.looked(this.held.sought, page, barren + 1 < BARREN);
      } else {
        this.newest = last ?? this.newest;
        if (page.next === null) {
          patch.fresh = this.following ? 0 : this.held.fresh;
        }
      }

      this.keep(merged(this.held.items, found), end, patch);

      if (found.length > 0) {
        return;
      }
    }
  }

  /** Takes a list, without what is too much at the end that nobody looks at. */
  private keep(items: Operation[], looking: End, patch: Partial<Held>) {
    const over = items.length - HELD;
    const [was] = this.held.items;
    let base = this.held.base;

    // what came before the first one, and what goes with it below
    if (base !== null && was) {
      base = Math.max(0, base - Math.max(0, items.findIndex((o) => o.id === was.id)));
    }

    if (over > 0 && looking === 'older') {
      items = items.slice(0, HELD);
      this.newest = items.at(-1)!.cursor;
      patch = { ...patch, newer: true };
    } else if (over > 0) {
      items = items.slice(over);
      this.oldest = items[0]!.cursor;
      patch = { ...patch, older: true };
      base = base === null ? null : base + over;
    }

    this.set({ ...patch, items, base: patch.older === false ? 0 : base });
  }

  /** Does the reader look at the newest end?  Then what comes is seen, and stays in view. */
  follow(on: boolean): void {
    this.following = on;

    if (on && this.held.newer === false && this.held.fresh > 0) {
      this.set({ fresh: 0 });
    }
  }

  retry(): void {
    const again = [...this.failed];

    clearTimeout(this.recovery);
    this.failed.clear();
    // what is said of it stays until it is better: an error that comes and goes all the time is hard to read
    again.forEach(([what, work]) => void this.once(what, work));
  }

  /** An event of the live stream. */
  tell(e: LiveEvent): void {
    if (this.busy.has('jump')) {
      this.waiting.push(e);
      return;
    }

    if (e.event === 'reset' || (e.event === 'gap' && e.data.operation_id === null)) {
      this.again(0);
    } else if (e.event === 'operation') {
      if (this.q.filters.q) {
        this.again(ASK_AGAIN);
      } else if (!this.q.hidden(e.data)) {
        this.pushed.push(e.data);
        // many events, one drawing
        this.scheduled ||= requestAnimationFrame(() => this.take());
      }
    }
  }

  private take() {
    const news = new Map(this.pushed.map((o) => [o.id, o]));
    const { items, newer } = this.held;
    const known = new Set(items.map((o) => o.id));
    const first = this.held.older ? this.oldest ?? -Infinity : -Infinity;
    let fresh = 0;

    this.pushed = [];
    this.scheduled = 0;

    const { status } = this.q.filters;
    const gone = new Set<string>();

    for (const [id, o] of news) {
      // the stream is not asked for a status: a record has to be able to leave
      const passes = !status?.length || status.includes(o.status);

      if (!passes) {
        gone.add(id);
        news.delete(id);
      } else if (!known.has(id)) {
        fresh += o.cursor >= first ? 1 : 0;
        // not in the stretch that is held
        if (o.cursor < first || (newer !== false && o.cursor > this.newest)) {
          news.delete(id);
        }
      }
    }

    const seen = this.following && newer === false;
    const list = merged(items, [...news.values()]).filter((o) => !gone.has(o.id));
    const patch = { fresh: seen ? 0 : this.held.fresh + fresh };

    if (seen) {
      this.newest = Math.max(this.newest, list.at(-1)?.cursor ?? 0);
      this.keep(list, 'newer', patch);
    } else {
      // whoever reads keeps what is read: what is too much is asked for again
      if (newer === false && list.length <= HELD) {
        this.newest = Math.max(this.newest, list.at(-1)?.cursor ?? 0);
      }
      this.keep(list, 'older', patch);
    }
  }

  /** What was acknowledged was not to be read yet: it is asked for, and less often when it stays away. */
  private lacks() {
    this.missing ??= setTimeout(() => {
      this.missing = undefined;
      this.again(0, false);
    }, Math.min(ASK_AGAIN * 2 ** this.lacked++, ASK_SELDOM));
  }

  /** Another list: what the one before it lacked is asked for no more. */
  private forget() {
    clearTimeout(this.missing);
    this.missing = undefined;
    this.lacked = 0;
  }

  /** The newest page once more, for what the stream does not tell. */
  private again(after: number, happened = true) {
    if (this.timer !== undefined) {
      return;
    }

    this.timer = setTimeout(() => {
      this.timer = undefined;

      if (this.held.newer !== false) {
        this.set({ fresh: this.held.fresh + (happened ? 1 : 0) });
        return;
      }

      void this.once('newer', async () => {
        let page: OperationPage;

        try {
          page = await this.ask({});
        } catch (e) {
          if (happened || this.aborter.signal.aborted) {
            throw e;
          }
          // nobody asked, and what is seen is as right as it was
          if (this.lacked > 0) {
            this.lacks();
          }
          return;
        }

        const known = new Set(this.held.items.map((o) => o.id));
        const found = this.shown(page);
        const fresh = found.filter((o) => !known.has(o.id) && o.cursor > this.newest).length;
        const complete = this.lacked > 0 ? page.complete : this.held.complete;

        if (page.complete) {
          this.lacked = 0;
        } else if (this.lacked > 0 || this.held.complete) {
          this.lacks();
        }

        // more has come than a page has: there would be a hole
        if (page.next !== null && (page.items.at(-1)?.cursor ?? 0) > this.newest) {
          this.set({ newer: true, fresh: this.held.fresh + fresh, complete });
          return;
        }

        this.newest = Math.max(this.newest, page.items[0]?.cursor ?? 0);
        this.keep(merged(this.held.items, found), this.following ? 'newer' : 'older',
          { fresh: this.following ? 0 : this.held.fresh + fresh, complete });
      });
    }, after);
  }
}

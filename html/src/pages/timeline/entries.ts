import type { Operation } from '@/api/types';
import { denied } from '@/ui/status';

/** A line of the list: a record, or what stands over some. */
export type Entry =
  | { kind: 'record'; key: string; operation: Operation; second: boolean; who: string }
  | { kind: 'day'; key: string; at: string }
  | { kind: 'group'; key: string; name: 'run' | 'actor'; value: string | null };

// height of a line, and of what stands below it
const LINE = { normal: 28, dense: 22 } as const;
const SECOND = { normal: 20, dense: 16 } as const;
const WAIT_WORTH_SAYING = 50;
const MOST_STDERR = 512 * 1024;
const MOST_WORDS = 16 * 1024;

export const isGap = (o: Operation) => o.type === 'gateway.gap';

export const waited = (o: Operation) => (o.lock?.waited_ms ?? 0) >= WAIT_WORTH_SAYING;

export const failedWithWords = (o: Operation) => (o.status === 'failed' || o.status === 'timeout')
  && !!o.output && o.output.stderr_bytes > 0 && o.output.stderr_bytes <= MOST_STDERR;

export const wentWrong = (o: Operation) => o.status === 'failed' || failedWithWords(o);

/** It went well and wrote a little: how that begins is worth a line. */
export const wroteWords = (o: Operation) => o.type === 'command.execute' && o.status === 'succeeded'
  && !!o.output && o.output.stdout_bytes + o.output.stderr_bytes > 0
  && (o.output.stdout_total_bytes ?? 0) + (o.output.stderr_total_bytes ?? 0) <= MOST_WORDS;

const says = (o: Operation) => failedWithWords(o) || denied(o) || waited(o) || !!o.error_code;

export const entryKey = (e: Entry) => e.key;

const heightIn = (density: keyof typeof LINE) => (e: Entry): number =>
  LINE[density] + (e.kind === 'record' && e.second ? SECOND[density] : 0);

/** Exact heights of entries, by density. */
export const ENTRY_HEIGHT = { normal: heightIn('normal'), dense: heightIn('dense') };

export const actorOf = (o: Operation) => `${o.actor.type}:${o.actor.id ?? ''}`;

/** Records as they are drawn: with days, groups, and who did it where that changes. */
export function entriesOf(items: readonly Operation[], group: 'none' | 'run' | 'actor', dayOf: (iso: string) => string, words = false): Entry[] {
  const out: Entry[] = [];
  let day = '';
  let who: string | undefined;
  let head: string | null | undefined;

  for (const o of items) {
    const now = dayOf(o.started_at);

    if (now !== day) {
      day = now;
      who = undefined;
      head = undefined;
      out.push({ kind: 'day', key: `day ${o.id}`, at: o.started_at });
    }

    if (isGap(o)) {
      out.push({ kind: 'record', key: o.id, operation: o, second: false, who: '' });
      continue;
    }

    if (group !== 'none') {
      const value = group === 'run' ? o.actor.run : actorOf(o);

      if (value !== head) {
        head = value;
        who = undefined;
        out.push({ kind: 'group', key: `group ${o.id}`, name: group, value });
      }
    }

    // what a heading says is not said again
    const said = [group !== 'actor' && (o.actor.id ?? o.actor.type), group !== 'run' && o.actor.run].filter(Boolean).join(' · ');
    const shown = said === who ? '' : said;

    who = said;
    out.push({ kind: 'record', key: o.id, operation: o, second: shown !== '' || says(o) || (words && wroteWords(o)), who: shown });
  }

  return out;
}

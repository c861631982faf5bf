// Numbers, sizes and times as the reader writes them.

import { useTranslation } from 'react-i18next';
import { language } from '@/i18n';
import { useZone, zone } from './zone';

const formats = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>();

function cached<T extends Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>(
  kind: string, make: () => T,
): T {
  const key = `${language()} ${kind}`;
  let format = formats.get(key);

  if (!format) {
    format = make();
    formats.set(key, format);
  }

  return format as T;
}

const number = (kind: string, o: Intl.NumberFormatOptions) =>
  cached(`n ${kind}`, () => new Intl.NumberFormat(language(), o));

const date = (kind: string, o: Intl.DateTimeFormatOptions) =>
  cached(`d ${kind} ${zone()}`, () => new Intl.DateTimeFormat(language(), zone() === 'utc' ? { ...o, timeZone: 'UTC' } : o));

export const count = (n: number) => number('plain', {}).format(n);

export const percent = (part: number) =>
  number('percent', { style: 'percent', maximumFractionDigits: 1 }).format(part);

const BYTES = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** A size in steps of 1,024. */
export function bytes(n: number): string {
  let step = 0;

  while (n >= 1024 && step < BYTES.length - 1) {
    n /= 1024;
    step++;
  }

  return number(`bytes ${step}`, {
    style: 'unit', unit: BYTES[step], unitDisplay: step === 0 ? 'narrow' : 'short',
    maximumFractionDigits: n < 10 && step > 0 ? 1 : 0,
  }).format(n);
}

const unit = (n: number, name: string, digits = 0) =>
  number(`${name} ${digits}`, {
    style: 'unit', unit: name, unitDisplay: 'narrow', maximumFractionDigits: digits,
  }).format(n);

/** Of a larger and a smaller unit; nothing of the smaller one is not said. */
const two = (a: number, larger: string, b: number, smaller: string) =>
  (b === 0 ? unit(a, larger) : `${unit(a, larger)} ${unit(b, smaller)}`);

/** How long something took: 12ms, 1.4s, 2m 5s, 1h 3m, 7d. */
export function duration(ms: number): string {
  if (ms < 999.5) {
    return unit(Math.round(ms), 'millisecond');
  }
  if (ms < 59_500) {
    return unit(ms / 1000, 'second', ms < 10_000 ? 1 : 0);
  }

  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);

  if (minutes < 60) {
    return two(minutes, 'minute', seconds % 60, 'second');
  }
  if (minutes < 48 * 60) {
    return two(Math.floor(minutes / 60), 'hour', minutes % 60, 'minute');
  }

  return two(Math.floor(minutes / 1440), 'day', Math.floor((minutes % 1440) / 60), 'hour');
}

/** Time of day with milliseconds. */
export const clock = (iso: string) => date('clock', {
  hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23',
}).format(new Date(iso));

export const clockShort = (iso: string | number) => date('short', {
  hour: '2-digit', minute: '2-digit', hourCycle: 'h23',
}).format(new Date(iso));

export const clockSeconds = (iso: string) => date('seconds', {
  hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
}).format(new Date(iso));

export const day = (iso: string) => date('day', {
  weekday: 'short', year: 'numeric', month: 'short', day: 'numeric',
}).format(new Date(iso));

/** Date and time, to the second. */
export const moment = (iso: string) => date('moment', {
  year: 'numeric', month: 'short', day: 'numeric',
  hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
}).format(new Date(iso));

const STEPS = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]] as const;

/** 3 minutes ago, in 2 hours. */
export function relative(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const [name, size] = STEPS.find(([, s]) => Math.abs(seconds) >= s) ?? STEPS[3];

  return cached('r', () => new Intl.RelativeTimeFormat(language(), { numeric: 'auto', style: 'short' }))
    .format(Math.trunc(seconds / size), name);
}

/** The formats, in a component that is drawn again when language or zone change. */
export function useFormat() {
  useTranslation();
  useZone();
  return { count, percent, bytes, duration, clock, clockShort, clockSeconds, day, moment, relative };
}

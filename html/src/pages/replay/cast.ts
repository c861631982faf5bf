// An asciicast (version 2), read as it comes: what to draw when, and where the
// commands are.

import { wholeOf } from '@/api/request';

export interface Frame {
  /** Seconds from the start. */
  at: number;
  kind: 'o' | 'r';
  data: string;
}

export interface Marker {
  at: number;
  label: string;
}

export interface Cast {
  cols: number;
  rows: number;
  frames: Frame[];
  markers: Marker[];
  /** It was longer than what a page holds. */
  cut: boolean;
}

const MOST = 32 * 1024 * 1024;
const WIDEST = 1_000;

/** Nothing happens longer than this when idle time is skipped. */
const IDLE = 1;

const size = (n: unknown, initial: number) => (typeof n === 'number' && n > 0 ? Math.min(Math.round(n), WIDEST) : initial);

export async function readCast(body: ReadableStream<Uint8Array>, signal?: AbortSignal): Promise<Cast> {
  const cast: Cast = { cols: 80, rows: 24, frames: [], markers: [], cut: false };
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  let read = 0;
  let head = true;

  const line = (text: string) => {
    if (text === '') {
      return;
    }

    const value = JSON.parse(text) as unknown;

    if (head) {
      const { width, height } = value as { width?: number; height?: number };

      head = false;
      cast.cols = size(width, 80);
      cast.rows = size(height, 24);
      return;
    }

    const [at, kind, data] = value as [number, string, string];

    if (kind === 'o' || kind === 'r') {
      cast.frames.push({ at, kind, data });
    } else if (kind === 'm') {
      cast.markers.push({ at, label: data });
    }
  };

  for (;;) {
    const { done, value } = await wholeOf(reader.read(), signal);

    if (done) {
      line(rest);
      return cast;
    }

    const parts = (rest + value).split('\n');

    read += value.length;
    rest = parts.pop()!;
    parts.forEach(line);

    if (read > MOST) {
      cast.cut = true;
      await reader.cancel();
      return cast;
    }
  }
}

/** When each frame is shown once time in which nothing happens is left out; and markers likewise. */
export function withoutIdle(cast: Cast): Cast {
  let lost = 0;
  let last = 0;
  const frames = cast.frames.map((f) => {
    if (f.at - last > IDLE) {
      lost += f.at - last - IDLE;
    }

    last = f.at;
    return { ...f, at: f.at - lost };
  });

  // as far in front of what follows as it was, but not before what was already there
  const markers = cast.markers.map((m) => {
    const i = cast.frames.findIndex((f) => f.at >= m.at);

    return { ...m, at: i < 0 ? frames.at(-1)?.at ?? 0 : Math.max(frames[i - 1]?.at ?? 0, frames[i]!.at - (cast.frames[i]!.at - m.at)) };
  });

  return { ...cast, frames, markers };
}

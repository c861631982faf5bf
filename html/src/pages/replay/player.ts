// Plays a recording into xterm.js.  What a program wrote then may draw in its box
// and nothing else: nothing is typed, answered, copied or opened.

import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { onTheme, terminalTheme } from '@/ui/terminal/theme';
import type { Cast } from './cast';

// titles, directories, links, notes, colours asked for, the clipboard
const IGNORED = [0, 1, 2, 7, 8, 9, 10, 11, 12, 50, 52, 99, 133, 633, 777, 1337];
const TOLD = 100;

export interface State {
  /** Seconds into it. */
  at: number;
  length: number;
  playing: boolean;
}

export class Player {
  private readonly terminal: Terminal;
  private readonly stopTheme: () => void;
  private cast: Cast;
  private next = 0;
  private at = 0;
  private speed = 1;
  private since: number | null = null;
  private frame = 0;
  private told = 0;

  constructor(host: HTMLElement, cast: Cast, private readonly tell: (s: State) => void) {
    const style = getComputedStyle(host);

    this.cast = cast;
    this.terminal = new Terminal({
      cols: cast.cols, rows: cast.rows, disableStdin: true, cursorBlink: false, cursorInactiveStyle: 'outline',
      fontFamily: style.fontFamily, fontSize: 13, lineHeight: 1.2, scrollback: 5_000, minimumContrastRatio: 4.5,
      theme: terminalTheme(), linkHandler: { activate: () => {} },
    });
    IGNORED.forEach((n) => this.terminal.parser.registerOscHandler(n, () => true));
    this.terminal.open(host);
    // it is read here, not worked in: its keys are the player's
    this.terminal.textarea?.setAttribute('tabindex', '-1');
    this.stopTheme = onTheme(() => { this.terminal.options.theme = terminalTheme(); });
    this.report(true);
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.stopTheme();
    this.terminal.dispose();
  }

  get length(): number {
    return this.cast.frames.at(-1)?.at ?? 0;
  }

  /** The text on the screen, for those who do not see it. */
  text(): string {
    const { active } = this.terminal.buffer;

    return Array.from({ length: this.terminal.rows },
      (_, i) => active.getLine(active.viewportY + i)?.translateToString(true) ?? '').join('\n').trimEnd();
  }

  private report(always = false) {
    const now = performance.now();

    if (always || now - this.told > TOLD) {
      this.told = now;
      this.tell({ at: this.at, length: this.length, playing: this.since !== null });
    }
  }

  /** The same recording with other times. */
  change(cast: Cast): void {
    const share = this.length > 0 ? this.at / this.length : 0;
    const n = this.next;

    this.cast = cast;
    this.at = n > 0 ? cast.frames[n - 1]!.at : share * this.length;
    this.since &&= performance.now();
    this.report(true);
  }

  setSpeed(speed: number): void {
    this.speed = speed;
  }

  play(): void {
    if (this.since !== null) {
      return;
    }

    if (this.next >= this.cast.frames.length) {
      this.seek(0);
    }

    this.since = performance.now();
    this.frame = requestAnimationFrame(this.tick);
    this.report(true);
  }

  pause(): void {
    cancelAnimationFrame(this.frame);
    this.since = null;
    this.report(true);
  }

  toggle(): void {
    if (this.since === null) {
      this.play();
    } else {
      this.pause();
    }
  }

  private readonly tick = (now: number) => {
    if (this.since === null) {
      return;
    }

    this.at = Math.min(this.at + ((now - this.since) / 1000) * this.speed, this.length);
    this.since = now;
    this.draw();

    if (this.next >= this.cast.frames.length) {
      this.pause();
    } else {
      this.report();
      this.frame = requestAnimationFrame(this.tick);
    }
  };

  /** Draws all up to the present. */
  private draw() {
    const { frames } = this.cast;
    let text = '';

    for (; this.next < frames.length && frames[this.next]!.at <= this.at; this.next++) {
      const f = frames[this.next]!;

      if (f.kind === 'o') {
        text += f.data;
        continue;
      }

      const [cols, rows] = f.data.split('x').map(Number);

      if (cols! > 0 && rows! > 0 && cols! <= 1_000 && rows! <= 1_000) {
        this.terminal.write(text);
        text = '';
        // in the order in which it was, not at once
        this.terminal.write('', () => this.terminal.resize(cols!, rows!));
      }
    }

    if (text !== '') {
      this.terminal.write(text);
    }
  }

  seek(to: number): void {
    const at = Math.min(Math.max(to, 0), this.length);

    if (at < this.at || at === 0) {
      this.terminal.reset();
      this.terminal.resize(this.cast.cols, this.cast.rows);
      this.next = 0;
    }

    this.at = at;
    this.draw();
    this.report(true);
  }

  /** One piece of output on or back. */
  step(by: 1 | -1): void {
    this.pause();

    const { frames } = this.cast;
    // pieces of the same moment are one step
    const now = frames[this.next - 1]?.at ?? 0;
    const f = by > 0 ? frames[this.next] : frames.findLast((one) => one.at < now);

    this.seek(f?.at ?? (by > 0 ? this.length : 0));
  }
}

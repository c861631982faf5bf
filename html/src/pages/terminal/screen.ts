// xterm.js as this console uses it.  What a program writes may draw in the box
// and nothing else: no title, no clipboard, no window, no link without asking.

import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { Unicode11Addon } from '@xterm/addon-unicode11';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { onTheme, terminalTheme } from '@/ui/terminal/theme';

export interface ScreenOptions {
  label: string;
  /** Said in place of what goes by too fast to be read out. */
  tooMuch: string;
  onInput(bytes: Uint8Array): void;
  onLink(url: string): void;
  onSelect(text: string): void;
  onFound(at: { index: number; count: number }): void;
  /** A key before the terminal has it; true when it is not for the terminal. */
  onKey(e: KeyboardEvent): boolean;
  onSize(): void;
}

const SCROLLBACK = 10_000;

// a page that is flooded shows the end of it: of what comes while so much waits to be
// drawn, the last is kept until little waits
const MOST_PENDING = 2 * 1024 * 1024;
const FEW_PENDING = 128 * 1024;
const KEPT = 64 * 1024;
const SETTLED = 120;

// titles, icons, directories, notes, the clipboard
const IGNORED = [0, 1, 2, 7, 9, 50, 52, 99, 133, 633, 777, 1337];

// what a terminal says by itself: device attributes, positions, modes, colours
const REPORT = /^(?:\x1b\[[?>=]?[\d;]*[cnRyt$]|\x1b\[[\d;?]*\$y|\x1bP[^\x1b]*\x1b\\|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[IO])+$/;

const SEARCH = {
  decorations: {
    matchBackground: '#f0b95b', matchOverviewRuler: '#f0b95b',
    activeMatchBackground: '#ff9d3c', activeMatchBorder: '#b45309', activeMatchColorOverviewRuler: '#ff9d3c',
  },
};

const utf8 = () => new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

export class Screen {
  readonly terminal: Terminal;
  private readonly fit = new FitAddon();
  private readonly search = new SearchAddon();
  private readonly done: (() => void)[] = [];
  private pending = 0;
  private skipped = 0;
  private kept: { bytes: Uint8Array; replay: boolean }[] = [];
  private keptBytes = 0;
  private replaying = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Were modes perhaps set before the first byte that was seen? */
  modesUnknown = false;

  // xterm.js loses a character whose bytes come in two writes
  private decoder = utf8();

  constructor(private readonly host: HTMLElement, private readonly o: ScreenOptions) {
    const style = getComputedStyle(host);

    Terminal.strings.promptLabel = o.label;
    Terminal.strings.tooMuchOutput = o.tooMuch;

    const terminal = new Terminal({
      allowProposedApi: true,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      fontFamily: style.fontFamily,
      fontSize: 13,
      lineHeight: 1.2,
      scrollback: SCROLLBACK,
      minimumContrastRatio: 4.5,
      macOptionIsMeta: true,
      theme: terminalTheme(),
      linkHandler: { activate: (_e, url) => o.onLink(url) },
    });

    this.terminal = terminal;
    terminal.loadAddon(this.fit);
    terminal.loadAddon(this.search);
    terminal.loadAddon(new Unicode11Addon());
    terminal.loadAddon(new WebLinksAddon((_e, url) => o.onLink(url)));
    terminal.unicode.activeVersion = '11';
    IGNORED.forEach((n) => terminal.parser.registerOscHandler(n, () => true));
    terminal.attachCustomKeyEventHandler((e) => !o.onKey(e));
    terminal.onData((data) => this.input(data, encoder.encode(data)));
    terminal.onBinary((data) => this.input(data, Uint8Array.from(data, (c) => c.charCodeAt(0))));
    this.search.onDidChangeResults((r) => o.onFound({ index: r.resultIndex, count: r.resultCount }));
    terminal.open(host);

    // the button may be let go outside of the box
    const onDown = () => document.addEventListener('mouseup', () => {
      if (terminal.hasSelection()) {
        o.onSelect(terminal.getSelection());
      }
    }, { once: true });
    const observer = new ResizeObserver(() => this.refit());

    host.addEventListener('mousedown', onDown);
    observer.observe(host);
    this.done.push(
      onTheme(() => { terminal.options.theme = terminalTheme(); }),
      () => host.removeEventListener('mousedown', onDown),
      () => observer.disconnect(),
    );
    this.fitNow();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.done.forEach((f) => f());
    this.terminal.dispose();
  }

  /** Columns and rows; null while it is not to be seen. */
  size(): { cols: number; rows: number } | null {
    const seen = this.host.clientWidth > 0 && this.host.clientHeight > 0;

    return seen ? { cols: this.terminal.cols, rows: this.terminal.rows } : null;
  }

  focus(): void {
    this.terminal.focus();
  }

  write(bytes: Uint8Array, replay: boolean): void {
    if (this.pending > MOST_PENDING || this.kept.length > 0) {
      this.keep(bytes, replay);
      return;
    }

    this.pending += bytes.length;
    this.replaying += replay ? 1 : 0;
    this.terminal.write(this.decoder.decode(bytes, { stream: true }), () => {
      this.pending -= bytes.length;
      this.replaying -= replay ? 1 : 0;

      if (this.kept.length > 0 && this.pending < FEW_PENDING) {
        this.goOn();
      }
    });
  }

  private keep(bytes: Uint8Array, replay: boolean) {
    this.kept.push({ bytes, replay });
    this.keptBytes += bytes.length;

    for (let first = this.kept[0]; first && this.keptBytes - first.bytes.length >= KEPT; first = this.kept[0]) {
      this.kept.shift();
      this.keptBytes -= first.bytes.length;
      this.skipped += first.bytes.length;
    }
  }

  /** Little waits: what was skipped is told, and what came last is drawn, from a line's beginning. */
  private goOn() {
    const { kept } = this;
    let { skipped } = this;

    this.kept = [];
    this.keptBytes = 0;
    this.skipped = 0;

    if (skipped > 0 && kept[0]) {
      const begin = kept[0].bytes.indexOf(10) + 1;

      kept[0].bytes = kept[0].bytes.subarray(begin);
      skipped += begin;
      this.decoder = utf8();
      this.onSkipped?.(skipped);
    }

    kept.forEach(({ bytes, replay }) => this.write(bytes, replay));
  }

  /** What it shows is read out, and its rows can be gone through. */
  setReadOut(on: boolean): void {
    this.terminal.options.screenReaderMode = on;
  }

  /** So many bytes came faster than they could be drawn, and were not. */
  onSkipped?: (bytes: number) => void;

  /** A line of the console's own, set apart from what programs write. */
  note(text: string): void {
    this.terminal.write(`\x1b[0m\r\n\x1b[2m── ${text} ──\x1b[0m\r\n`);
  }

  /** Pastes as a program expects it: with marks around if it has asked for them. */
  paste(text: string): void {
    this.terminal.paste(text);
  }

  find(text: string, back: boolean): void {
    if (text === '') {
      this.search.clearDecorations();
    } else if (back) {
      this.search.findPrevious(text, SEARCH);
    } else {
      this.search.findNext(text, SEARCH);
    }
  }

  endFind(): void {
    this.search.clearDecorations();
    this.terminal.clearSelection();
  }

  private input(data: string, bytes: Uint8Array) {
    // the answer to a question that was asked long ago would be typed now
    if (this.replaying === 0 || !REPORT.test(data)) {
      this.o.onInput(bytes);
    }
  }

  private refit() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fitNow(), SETTLED);
  }

  /** As large as its place is. */
  fitNow(): void {
    const size = this.fit.proposeDimensions();

    if (this.size() && size && size.cols >= 2 && size.rows >= 2) {
      this.fit.fit();
      this.o.onSize();
    }
  }
}

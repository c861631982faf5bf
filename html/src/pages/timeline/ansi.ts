// Colours of what a command wrote.  Of all that a terminal obeys only colours and
// weight are taken, and a line that was written over keeps its last state;
// anything else stays in the text, and is shown as a sign.

export interface Span {
  text: string;
  /** Classes of styles.css and Tailwind. */
  look: string;
  /** Colours that have no name. */
  style?: { color?: string; backgroundColor?: string };
}

const SGR = /\u001b\[([\d;:]*)m/g;
const ERASES = /\u001b\[[0-2]?K/g;
const MOST_SPANS = 20_000;

const WEIGHT: Record<number, string> = {
  1: 'font-bold', 2: 'opacity-75', 3: 'italic', 4: 'underline', 7: 'ansi-reverse', 9: 'line-through',
};
const ENDS: Record<number, number[]> = { 21: [1], 22: [1, 2], 23: [3], 24: [4], 27: [7], 29: [9] };

/** A line as it stands at the end, when a terminal has gone back to its start. */
function settledLine(line: string): string {
  const end = line.endsWith('\r') ? line.replace(/\r+$/, '') : line;

  return end.slice(end.lastIndexOf('\r') + 1);
}

const settled = (text: string): string => {
  const clean = text.includes('\u001b') ? text.replace(ERASES, '') : text;

  return clean.includes('\r') ? clean.split('\n').map(settledLine).join('\n') : clean;
};

/** Text without its colours. */
export const plain = (text: string): string => settled(text).replace(SGR, '');

function palette(n: number): string {
  const [r, g, b] = n < 232 ? [36, 6, 1].map((step) => [0, 95, 135, 175, 215, 255][Math.floor((n - 16) / step) % 6])
    : Array<number>(3).fill(8 + (n - 232) * 10);

  return `rgb(${r}, ${g}, ${b})`;
}

type Colour = { named: number } | { rgb: string } | null;

/** One stream: its colours last from piece to piece. */
export class Colours {
  private fore: Colour = null;
  private ground: Colour = null;
  private readonly weights = new Set<number>();

  copy(): Colours {
    const other = new Colours();

    other.fore = this.fore;
    other.ground = this.ground;
    this.weights.forEach((w) => other.weights.add(w));
    return other;
  }

  read(text: string): Span[] {
    const all = settled(text);
    const out: Span[] = [];
    let at = 0;

    for (const found of all.matchAll(SGR)) {
      if (out.length > MOST_SPANS) {
        break;
      }

      this.add(out, all.slice(at, found.index));
      at = found.index + found[0].length;
      this.obey(found[1]!);
    }

    this.add(out, all.slice(at));
    return out;
  }

  private add(out: Span[], text: string) {
    if (text === '') {
      return;
    }

    const { fore, ground } = this;
    const style: Span['style'] = {};
    const look = [...this.weights].map((n) => WEIGHT[n]!);

    if (fore && 'named' in fore) {
      look.push(`ansi-${fore.named}`);
    } else if (fore) {
      style.color = fore.rgb;
    }

    if (ground && 'named' in ground) {
      look.push(`ansi-on-${ground.named}`);
    } else if (ground) {
      style.backgroundColor = ground.rgb;
    }

    out.push({ text, look: look.join(' '), style });
  }

  private obey(codes: string) {
    const all = codes.split(/[;:]/).map(Number);

    for (let i = 0; i < all.length; i++) {
      const n = all[i]!;

      if (n === 0) {
        this.fore = this.ground = null;
        this.weights.clear();
      } else if (n in WEIGHT) {
        this.weights.add(n);
      } else if (n in ENDS) {
        ENDS[n]!.forEach((w) => this.weights.delete(w));
      } else if ((n >= 30 && n < 38) || (n >= 90 && n < 98)) {
        this.fore = { named: n >= 90 ? n - 82 : n - 30 };
      } else if ((n >= 40 && n < 48) || (n >= 100 && n < 108)) {
        this.ground = { named: n >= 100 ? n - 92 : n - 40 };
      } else if (n === 39) {
        this.fore = null;
      } else if (n === 49) {
        this.ground = null;
      } else if (n === 38 || n === 48) {
        const colour = this.extended(all, i + 1);

        i += all[i + 1] === 5 ? 2 : 4;
        if (n === 38) {
          this.fore = colour;
        } else {
          this.ground = colour;
        }
      }
    }
  }

  private extended(all: number[], at: number): Colour {
    const part = (i: number) => Math.min(255, all[at + i] || 0);

    if (all[at] === 5) {
      return part(1) < 16 ? { named: part(1) } : { rgb: palette(part(1)) };
    }

    return { rgb: `rgb(${part(1)}, ${part(2)}, ${part(3)})` };
  }
}

// Text that machines or strangers wrote.  React escapes HTML; what is left is
// what a text can do to the eye: turn the direction, hide, overprint, draw over
// its box.  Such characters are shown as signs, never as what they do.

import { type ReactNode, useMemo } from 'react';
import { cx } from '@/lib/cx';

// C0 and C1 but tab and line ends, DEL, marks of direction, zero widths,
// separators that break lines, tags, and halves of surrogate pairs
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const LONGEST = 1_000_000;

const C0 = ['NUL', 'SOH', 'STX', 'ETX', 'EOT', 'ENQ', 'ACK', 'BEL', 'BS', 'HT', 'LF', 'VT', 'FF', 'CR', 'SO', 'SI', 'DLE',
  'DC1', 'DC2', 'DC3', 'DC4', 'NAK', 'SYN', 'ETB', 'CAN', 'EM', 'SUB', 'ESC', 'FS', 'GS', 'RS', 'US'];

const sign = (c: string) => {
  const n = c.codePointAt(0)!;

  return C0[n] ?? `U+${n.toString(16).toUpperCase().padStart(4, '0')}`;
};

/** The same text with nothing in it that acts; for titles and other attributes too. */
export const harmless = (text: string): string =>
  text.toWellFormed().replace(UNSAFE, sign);

/** Can it be typed as it is? */
export const typeable = (text: string): boolean => harmless(text) === text && text === text.trim();

function parts(text: string): ReactNode[] {
  const out: ReactNode[] = [];
  let at = 0;

  for (const found of text.matchAll(UNSAFE)) {
    out.push(text.slice(at, found.index));
    out.push(<span key={found.index} className="rounded-sm bg-warn-tint text-warn">{sign(found[0])}</span>);
    at = found.index + found[0].length;
  }

  out.push(text.slice(at));
  return out;
}

/** One line of recorded text inside other text: cut with an ellipsis by its box. */
export function Recorded({ text, title, className }: { text: string; title?: string; className?: string }) {
  const line = text.slice(0, 400).replace(/\s*\n\s*/g, ' ⏎ ');
  const shown = useMemo(() => parts(line), [line]);

  return <bdi dir="ltr" title={title && harmless(title)} className={cx('recorded', className)}>{shown}</bdi>;
}

/** Recorded text inside of a block that has its box already. */
export function Marked({ text }: { text: string }) {
  return <>{parts(text)}</>;
}

interface Props {
  text: string;
  /** The same text as `Marked` in more than one look. */
  drawn?: ReactNode;
  wrap?: boolean;
  className?: string;
  /** Without room around it, and not a place to stop at for the keyboard. */
  bare?: boolean;
  /** What it is, for those who do not see it. */
  label?: string;
}

/** A block of recorded text, with its line ends. */
export function PlainText({ text, drawn, wrap = true, bare = false, className, label }: Props) {
  const shown = useMemo(() => drawn ?? parts(text.replace(/\r\n/g, '\n').slice(0, LONGEST)), [text, drawn]);

  return (
    <pre
      dir="ltr" tabIndex={bare ? undefined : 0} aria-label={label} role={label ? 'region' : undefined}
      className={cx(
        'recorded overflow-auto leading-5',
        !bare && 'px-3 py-2',
        wrap ? 'whitespace-pre-wrap [overflow-wrap:anywhere]' : 'whitespace-pre',
        className,
      )}
    >
      {shown}
    </pre>
  );
}

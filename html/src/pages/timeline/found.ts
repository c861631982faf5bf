// Finds a text in what is drawn, without changing it: the browser paints the
// places (CSS custom highlights).

import { type RefObject, useCallback, useEffect, useState } from 'react';

const MOST = 5_000;
// what stands over the text while it is scrolled
const HEAD = 48;

const paint = (name: string, ranges: Range[]) => {
  if ('highlights' in CSS) {
    if (ranges.length > 0) {
      CSS.highlights.set(name, new Highlight(...ranges));
    } else {
      CSS.highlights.delete(name);
    }
  }
};

function look(box: Node, text: string): Range[] {
  const wanted = text.toLowerCase();
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT, (n) =>
    (n.parentElement?.closest('pre') ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT));
  const out: Range[] = [];

  for (let node = walker.nextNode(); node && out.length < MOST; node = walker.nextNode()) {
    const all = (node as Text).data.toLowerCase();

    for (let at = all.indexOf(wanted); at >= 0 && out.length < MOST; at = all.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();

      range.setStart(node, at);
      range.setEnd(node, Math.min(at + wanted.length, (node as Text).length));
      out.push(range);
    }
  }

  return out;
}

/** What an element scrolls in. */
export function scrollerOf(e: Element | null): Element | null {
  for (let at = e?.parentElement ?? null; at; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY) && at.tagName !== 'PRE') {
      return at;
    }
  }

  return null;
}

/** A place in a text that may be much higher than what is seen of it, and not drawn yet. */
function bringIntoView(place: Range): number {
  const element = place.startContainer.parentElement;
  const scroller = scrollerOf(element);

  element?.scrollIntoView({ block: 'nearest' });
  return requestAnimationFrame(() => {
    const at = place.getBoundingClientRect();
    const box = scroller?.getBoundingClientRect();

    if (scroller && box && (at.top < box.top + HEAD || at.bottom > box.bottom)) {
      scroller.scrollTop += at.top - box.top - box.height / 2;
    }
  });
}

export function useFound(box: RefObject<HTMLElement | null>, text: string) {
  const [ranges, setRanges] = useState<Range[]>([]);
  const [at, setAt] = useState(0);

  useEffect(() => {
    if (text === '' || !box.current) {
      setRanges([]);
      return undefined;
    }

    let frame = 0;
    const again = () => setRanges(look(box.current!, text));
    // much comes at once: it is looked through once for all of it
    const observer = new MutationObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(again);
    });

    again();
    setAt(0);
    observer.observe(box.current, { childList: true, subtree: true, characterData: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
    };
  }, [box, text]);

  useEffect(() => {
    const here = ranges[at];

    paint('found', ranges);
    paint('found-here', here ? [here] : []);

    const frame = here ? bringIntoView(here) : 0;

    return () => {
      cancelAnimationFrame(frame);
      paint('found', []);
      paint('found-here', []);
    };
  }, [ranges, at]);

  return {
    count: ranges.length, at,
    /** There may be more than these. */
    most: ranges.length >= MOST,
    go: useCallback((by: number) => setAt((now) => (ranges.length > 0 ? (now + by + ranges.length) % ranges.length : 0)), [ranges.length]),
  };
}

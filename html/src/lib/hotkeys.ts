// Keys that work anywhere on a page, but never while something is typed or a
// dialog is open over it.

import { useEffect, useRef } from 'react';

const TYPING = 'input, textarea, select, [contenteditable="true"], [data-keys="own"]';

// what Enter does there is its own
const PRESSED = 'a[href], button, summary, [role="button"], [role="link"], [role="tab"]';

// who reads there scrolls it with the arrows
const SCROLLED = '[data-keys="arrows"]';

/** Handlers by key ('j', '?', 'Escape', 'mod+k'). */
export function useHotkeys(keys: Record<string, (e: KeyboardEvent) => void>, enabled = true): void {
  const current = useRef(keys);

  useEffect(() => { current.current = keys; });

  useEffect(() => {
    if (!enabled) {
      return undefined;
    }

    const onKey = (e: KeyboardEvent) => {
      const mod = e.ctrlKey || e.metaKey;
      const at = e.target as Element;

      if (e.defaultPrevented || e.altKey || e.isComposing
          || (!mod && at.closest?.(e.key === 'Enter' ? `${TYPING}, ${PRESSED}` : e.key.startsWith('Arrow') ? `${TYPING}, ${SCROLLED}` : TYPING))
          || document.querySelector('[role="dialog"][data-state="open"], [role="menu"][data-state="open"]'))
      {
        return;
      }

      const handler = current.current[mod ? `mod+${e.key.toLowerCase()}` : e.key];

      if (handler) {
        e.preventDefault();
        handler(e);
      }
    };

    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [enabled]);
}

// What a difference shows, as people read it.

import { becomes } from './browser.mjs';

/** The lines of its left and of its right side, as they are now. */
async function sides(page) {
  const side = (name) => page.locator(`.monaco-diff-editor .editor.${name} .view-line`).evaluateAll((all) => all
    .sort((a, b) => parseInt(a.style.top, 10) - parseInt(b.style.top, 10))
    .map((l) => l.textContent.replaceAll('\u00a0', ' ').trimEnd()).filter(Boolean));

  return [await side('original'), await side('modified')];
}

/** It shows these lines: at once, or when the one before it has gone and both sides are drawn. */
export const differs = (page, wanted, name) => becomes(() => sides(page), wanted, name);

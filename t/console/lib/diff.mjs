// What a difference shows, as people read it.

/** The lines of its left and of its right side, once they are there. */
export async function sides(page) {
  const side = (name) => page.locator(`.monaco-diff-editor .editor.${name} .view-line`).evaluateAll((all) => all
    .sort((a, b) => parseInt(a.style.top, 10) - parseInt(b.style.top, 10))
    .map((l) => l.textContent.replaceAll('\u00a0', ' ').trimEnd()).filter(Boolean));

  await page.locator('.monaco-diff-editor .view-line').first().waitFor({ state: 'attached' });
  return [await side('original'), await side('modified')];
}

// The words in which tests speak of a terminal in a page.

import { LONGEST, until, url } from './browser.mjs';

export const terminalUrl = (sandbox) => `${url}sandboxes/${sandbox}/terminal`;

/** The box of the terminal that is seen. */
export const box = (page) => page.locator('[role="tabpanel"]:not([hidden]) [data-keys="own"]');

/** What it shows, line by line. */
export const screen = (page) => box(page).locator('.xterm-rows > div').allInnerTexts()
  .then((rows) => rows.map((r) => r.replaceAll('\u00a0', ' ').trimEnd()));

/** Waits until a line of the screen matches. */
export async function shows(page, regex, timeout = LONGEST) {
  const end = Date.now() + timeout;

  for (;;) {
    const rows = await screen(page);

    if (rows.some((r) => regex.test(r))) {
      return rows;
    }
    if (Date.now() > end) {
      throw new Error(`${regex} is not in:\n${rows.filter(Boolean).join('\n')}`);
    }
    await page.waitForTimeout(50);
  }
}

/** Waits for the shell to be ready to be typed into. */
export async function ready(page) {
  await page.locator('[role="tabpanel"]:not([hidden]) [data-state="open"][data-keys="own"]').waitFor();
  await shows(page, /[#$] ?$/);
}

/** Opens another terminal beside those that are there. */
export async function another(page) {
  const tabs = page.getByRole('tablist', { name: /^(Terminals|终端)$/ }).getByRole('tab');
  const before = await tabs.count();

  await page.getByRole('button', { name: /^(New terminal|新建终端)$/ }).click();
  await until(async () => await tabs.count() > before && await tabs.last().getAttribute('aria-selected') === 'true', 'another terminal');
  await ready(page);
}

/** The terminal that is seen has the keyboard: a dialog, or another terminal, has given it back. */
const keys = (page) => page.waitForFunction(() => document.activeElement?.closest('[role="tabpanel"]:not([hidden]) [data-keys="own"]'));

/** Types a command and Enter. */
export async function type(page, text) {
  await keys(page);
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

/** Puts a text on the clipboard's way into whatever has the keyboard. */
export async function paste(page, text) {
  await keys(page);
  await page.evaluate((data) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', data);
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

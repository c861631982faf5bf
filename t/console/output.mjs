// What commands wrote, when it is much: the end of it, while it runs and after;
// and what is sought in it.

import { becomes, facts, is, ok, open, run, sees, serious, shot, until, url } from './lib/browser.mjs';
import { breaksOff, command } from './lib/gateway.mjs';

const history = (query = '') => `${url}sandboxes/${facts.wrote}/history${query}`;
const rows = (page) => page.getByRole('option');
const record = (page) => page.getByRole('region', { name: 'Record' });
const panel = (page) => record(page).getByRole('tabpanel');
const tool = (page, name) => record(page).getByRole('button', { name, exact: true });

/** The last line that is seen of what was written. */
const seen = (page) => panel(page).evaluate((p) => {
  const pre = [...p.querySelectorAll('pre')].at(-1);
  const { bottom } = pre?.getBoundingClientRect() ?? { bottom: 1e9 };

  return bottom <= p.getBoundingClientRect().bottom + 2 ? pre.textContent.trimEnd().split('\n').at(-1) : null;
});

const follows = (page) => tool(page, 'Follow').getAttribute('aria-pressed');

/** A page with the record open whose title has this. */
const shows = async (browser, title) => {
  const page = await open(browser);

  await page.goto(history());
  await rows(page).filter({ hasText: title }).first().click();
  await record(page).getByRole('tab', { name: 'Output' }).waitFor();
  return page;
};

await run({
  'a failure is at its end': async (browser) => {
    const page = await open(browser);

    await page.goto(history());
    await sees(rows(page).filter({ hasText: 'error: the last word of many' }), 'a failure that wrote much says its last line in the list');
    await rows(page).filter({ hasText: 'the last word of many' }).first().click();
    await record(page).getByRole('tab', { name: 'Output' }).waitFor();
    await becomes(() => seen(page), 'error: the last word of many', 'and is open where it failed');
    await shot(page, 'output-failed');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'what is sought stands far behind': async (browser) => {
    const page = await shows(browser, 'echo the-needle');

    await tool(page, 'Show more output').waitFor();
    is(await panel(page).evaluate((p) => p.scrollTop), 0, 'what went well begins at its beginning');
    await record(page).getByRole('textbox', { name: 'Find in the output' }).fill('the-needle');
    await record(page).getByText('1/1', { exact: true }).waitFor();
    ok(true, 'a word is found in what was not shown yet');
    await becomes(() => seen(page), 'the-needle', 'and is seen');
    await record(page).getByRole('textbox', { name: 'Find in the output' }).fill('35000');
    await record(page).getByText('1/1', { exact: true }).waitFor();
    await becomes(() => panel(page).evaluate((p) => {
      const [found] = CSS.highlights.get('found-here') ?? [];
      const { top, bottom } = found?.getBoundingClientRect() ?? {};
      const box = p.getBoundingClientRect();

      return top > box.top && bottom < box.bottom;
    }), true, 'so is one in the middle of all');
    await record(page).getByRole('textbox', { name: 'Find in the output' }).fill('not there');
    await record(page).getByRole('status').filter({ hasText: /^0$/ }).waitFor();
    ok(true, 'one that is nowhere is said to be nowhere');
    await page.context().close();

    const other = await shows(browser, 'echo the-needle');
    await tool(other, 'Show more output').waitFor();
    await tool(other, 'To the end').click();
    await becomes(() => seen(other), 'the-needle', 'the end is a click away, however much there is');
    await other.context().close();
  },

  'as one likes it': async (browser) => {
    const page = await shows(browser, 'echo the-needle');

    await record(page).getByLabel('Stream').selectOption('apart');
    await rows(page).filter({ hasText: 'the last word of many' }).first().click();
    await page.getByRole('region', { name: 'stderr' }).waitFor();
    is(await record(page).getByLabel('Stream').inputValue(), 'apart', 'how streams are shown is chosen once');
    await record(page).getByLabel('Stream').selectOption('both');

    const runs = command(facts.wrote, 'for i in $(seq 1 1200); do [ -e /tmp/seen ] && break; sleep 0.1; done');
    await rows(page).filter({ hasText: '/tmp/seen' }).first().click();
    await tool(page, 'Follow').click();
    await page.reload();
    await tool(page, 'Follow').waitFor();
    is(await follows(page), 'false', 'and so is whether they are followed');
    await command(facts.wrote, 'touch /tmp/seen');
    await runs;
    await page.context().close();
  },

  'read by keyboard': async (browser) => {
    const page = await shows(browser, 'echo the-needle');
    const link = page.url();

    await tool(page, 'Show more output').waitFor();
    await panel(page).focus();
    await page.keyboard.press('ArrowDown');
    await until(() => panel(page).evaluate((p) => p.scrollTop > 0), 'scrolling');
    is(page.url(), link, 'arrows scroll what is read');
    await page.keyboard.press('j');
    await page.waitForURL((u) => u.href !== link);
    ok(true, 'j goes to the next record');

    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keyboard' });
    for (const what of ['Play or pause', 'Rename', 'Leave the terminal by keyboard']) {
      await sees(help.getByText(what, { exact: true }), `${what}: people are told of it`);
    }
    is(await serious(page), [], 'the keys: axe finds nothing serious');
    await shot(page, 'keys');
    await page.context().close();
  },

  'which page it is': async (browser) => {
    const page = await open(browser);

    await page.goto(history());
    for (const tab of ['History', 'Files', 'Commands', 'Terminal', 'Locks', 'Overview']) {
      await page.getByRole('navigation', { name: 'Pages of this sandbox' }).getByRole('link', { name: tab, exact: true }).click();
      await becomes(() => page.title(), `long-builds · ${tab} · sandbox-gateway`, `${tab}: the browser's tab says it`);
    }
    await page.context().close();
  },

  'an input method': async (browser) => {
    const page = await open(browser, { language: 'zh-CN' });
    const field = page.getByRole('search').getByRole('textbox');
    const asked = [];

    page.on('request', (r) => {
      const q = new URL(r.url()).searchParams.get('q');

      if (q && r.url().includes('/operations')) {
        asked.push(q);
      }
    });
    await page.goto(history());
    await field.focus();

    const keys = await page.context().newCDPSession(page);
    for (const text of ['d', 'di', 'ding', 'ding dan']) {
      await keys.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length });
    }
    await field.evaluate((e) => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, isComposing: true })));
    is(await field.inputValue(), 'ding dan', 'Esc of an input method is its own');
    await keys.send('Input.insertText', { text: '订单' });
    await page.waitForURL((u) => u.searchParams.get('q') === '订单');
    await until(() => asked.includes('订单'), 'the search');
    is([...new Set(asked)], ['订单'], 'what is half typed is not sought');
    await page.context().close();
  },

  'a download that breaks off': async (browser) => {
    const page = await shows(browser, 'echo the-needle');
    const cut = await breaksOff();

    await page.route('**/output?*raw*', (route) => route.continue({ url: cut.url }));
    await tool(page, 'Download the exact bytes').click();
    await sees(page.getByText('The gateway cannot be reached'), 'half a download is none: what is wrong is said, and it is the line');
    cut.close();
    await page.context().close();
  },

  'it is followed while it runs': async (browser) => {
    const runs = command(facts.wrote, 'seq 1 90000; i=0; until [ -e /tmp/enough ] || [ $i -ge 600 ]; do i=$((i+1)); echo tick $i; sleep 0.2; done');
    const page = await open(browser);
    const asked = [];

    page.on('request', (r) => {
      const u = new URL(r.url());

      if (u.pathname.endsWith('/output') && u.searchParams.get('stream') === 'both') {
        asked.push(u.searchParams.get('after'));
      }
    });
    await page.goto(history());
    await rows(page).filter({ hasText: 'until [ -e /tmp/enough' }).first().click();
    await until(async () => /^tick/.test(await seen(page)), 'the end of what is written');

    const first = await seen(page);
    await until(async () => (await seen(page)) !== first, 'what comes then');
    is(await follows(page), 'true', 'a command that wrote much is followed to where it is now');

    await panel(page).hover();
    await page.mouse.wheel(0, -600);
    await becomes(() => follows(page), 'false', 'who scrolls up is left alone');

    const { top, count } = await panel(page).evaluate((p) => ({ top: p.scrollTop, count: p.textContent.length }));
    await until(() => panel(page).evaluate((p, n) => p.textContent.length > n, count), 'more output');
    is(await panel(page).evaluate((p) => p.scrollTop), top, 'and stays there when more comes');
    await panel(page).evaluate((p) => { p.scrollTop = p.scrollHeight; });
    await becomes(() => follows(page), 'true', 'until the end is in view again');

    await command(facts.wrote, 'touch /tmp/enough');
    await runs;
    await record(page).getByText('OK', { exact: true }).waitFor();
    await until(async () => /^tick/.test(await seen(page)), 'the end');
    is(asked.filter((a) => a === null).length, 1, 'what is there is not asked for again');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },
});

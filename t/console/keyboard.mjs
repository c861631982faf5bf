// Without a mouse: all that can be pressed, typed into or chosen on any page is
// come to with Tab, or with the arrows of the widget that it belongs to; nothing
// holds the keyboard; and where it is can be seen.

import { facts, is, ok, open, run, settled, still, until, url } from './lib/browser.mjs';
import { helpers, round } from './lib/keyboard.mjs';
import { ready } from './lib/terminal.mjs';

const box = `sandboxes/${facts.sandbox}`;

const PAGES = {
  'overview': '',
  'sandboxes': 'sandboxes',
  'history': 'history',
  'runs': 'runs',
  'run': 'runs/nightly-31',
  'policy': 'policy?operation=file.write&path=%2Fetc%2Fpasswd',
  'tokens': 'tokens',
  'not-found': 'no/such/page',
  'sandbox-history': `${box}/history`,
  'sandbox-files': `${box}/files`,
  'sandbox-file': `${box}/files?path=%2Ftmp%2Fdb%2Fschema.sql`,
  'sandbox-versions': `${box}/files?path=%2Ftmp%2Fdb%2Fschema.sql&view=versions`,
  'sandbox-commands': `${box}/commands`,
  'sandbox-terminal': `${box}/terminal`,
  'sandbox-locks': `${box}/locks`,
  'sandbox-overview': `${box}/overview`,
};

/** Where a widget points, once what a key has set going is done: focus may move in a task of its own, as radix lets it. */
const pointed = (page, i) => page.evaluate((one) => new Promise((done) => {
  setTimeout(() => requestAnimationFrame(() => setTimeout(() => done(keyboard.at(one)))));
}), i);

/** What is asked for again is as it was: others are at work, and what goes away takes the keyboard with it. */
async function frozen(page) {
  const kept = new Map();

  await page.route(/\/console\/api\/v1\/(?!.*\blive\b)/, async (route) => {
    const to = new URL(route.request().url());

    if (route.request().method() !== 'GET') {
      await route.continue();
      return;
    }

    to.searchParams.delete('from');
    to.searchParams.delete('to');

    if (!kept.has(to.href)) {
      kept.set(to.href, route.fetch().then(async (r) => ({ response: r, body: await r.body() })));
    }
    await route.fulfill(await kept.get(to.href)).catch(() => {});
  });
}

const part = (where) => async (browser) => {
  const page = await open(browser);
  const name = Object.keys(PAGES).find((n) => PAGES[n] === where);

  await page.addInitScript(helpers);
  await frozen(page);
  await page.goto(url + where);
  await (name === 'sandbox-terminal' ? ready(page) : settled(page));
  // the header tells of the recorder when it has heard of it, a sandbox of what can be
  // done with it, and a run opens what went wrong in it: what comes later is not gone round
  await page.locator('header').getByRole('link', { name: /gaps?$/ }).waitFor();
  if (name.startsWith('sandbox-')) {
    await page.getByRole('button', { name: 'More actions' }).waitFor();
  }
  if (name === 'run') {
    await page.getByRole('region', { name: 'Record' }).waitFor();
    await settled(page);
  }

  const { stops, dark } = await round(page);

  ok(stops > 5 && stops < 400, `${name}: Tab goes round, and nothing keeps it`, stops);
  is(dark, [], `${name}: where the keyboard is can be seen`);
  is(await page.evaluate(() => keyboard.missed()), [], `${name}: all that can be pressed is come to`);

  // what one of them opens may take the place of another
  const widgets = () => page.evaluate(() => keyboard.widgets());

  for (const { i } of await widgets()) {
    await settled(page);
    const w = await page.evaluate((i) => {
      const one = keyboard.widgets().find((w) => w.i === i && w.n > 1);

      if (one) {
        keyboard.focus(i);
      }
      return one ?? null;
    }, i);

    if (!w) {
      continue;
    }

    const before = await pointed(page, w.i);
    let moved = false;

    for (const key of w.role === 'tablist' ? ['ArrowRight', 'ArrowLeft'] : ['ArrowDown', 'ArrowUp', 'ArrowUp']) {
      await page.keyboard.press(key);
      moved = await pointed(page, w.i) !== before || moved;
    }

    ok(moved, `${name}: arrows move in ${w.role} ${w.name.slice(0, 60)}`, before);
  }

  // the arrows may have opened another record
  await settled(page);
  await still(page);

  for (const m of await page.evaluate(() => keyboard.menus())) {
    await page.evaluate(() => keyboard.menus());        // what was drawn anew has no mark
    const trigger = page.locator(`[data-menu="${m.i}"]`);

    await trigger.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menu').waitFor();
    await page.keyboard.press('ArrowDown');
    const inside = await until(() => page.evaluate(() => !!document.activeElement.closest('[role="menu"]')), 'the keyboard in a menu').catch(() => false);
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    const back = await until(() => trigger.evaluate((e) => e === document.activeElement), 'focus').catch(() => false);
    ok(inside && back, `${name}: the menu ${m.name} opens, and gives the keyboard back`, inside, await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
  }

  await page.context().close();
};

const parts = Object.entries(PAGES).map(([name, where]) => [name, part(where)]);
const half = parts.length / 2;

await run(Object.fromEntries(parts.slice(0, half)), Object.fromEntries(parts.slice(half)));

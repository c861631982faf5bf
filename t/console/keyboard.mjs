// Without a mouse: all that can be pressed, typed into or chosen on any page is
// come to with Tab, or with the arrows of the widget that it belongs to; nothing
// holds the keyboard; and where it is can be seen.

import { facts, is, ok, open, run, settled, until, url } from './lib/browser.mjs';
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

/** In the page: what it has to offer, and where the keyboard is. */
const helpers = () => {
  const OWN = 'a[href], button, input, select, textarea, summary, [contenteditable="true"], [role="button"], [role="link"], '
    + '[role="tab"], [role="option"], [role="treeitem"], [role="menuitem"], [role="checkbox"], [role="switch"]';
  // what has one place for Tab, and arrows inside
  const WIDGETS = '[role="listbox"], [role="tree"], [role="tablist"], [role="radiogroup"], [role="menu"], [role="grid"]';
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('[inert], [aria-hidden="true"]')
    && !e.matches(':disabled, [aria-disabled="true"]') && e.getClientRects().length > 0;
  const reacts = (e) => {
    const key = Object.keys(e).find((k) => k.startsWith('__reactProps'));
    return !!key && typeof e[key].onClick === 'function';
  };
  const name = (e) => `${e.tagName.toLowerCase()}${e.getAttribute('role') ? `[${e.getAttribute('role')}]` : ''} `
    + `"${(e.getAttribute('aria-label') ?? e.textContent ?? '').trim().slice(0, 40)}"`;
  let reached = new Set();

  globalThis.keyboard = {
    begin() {
      const first = document.querySelector('button');

      reached = new Set([first]);
      first.focus();
    },
    /** Notes where the keyboard is; false once it has been there before. */
    step() {
      const e = document.activeElement;

      if (!e || e === document.body || e === document.documentElement) {
        return { end: true };
      }

      const again = reached.has(e);
      const style = getComputedStyle(e);
      const ring = [e, e.parentElement, e.closest('[data-keys="own"]')].filter(Boolean).some((one) => {
        const s = getComputedStyle(one);
        return (s.outlineStyle !== 'none' && s.outlineWidth !== '0px') || s.boxShadow !== 'none';
      });

      reached.add(e);
      return {
        end: again, name: name(e), own: !!e.closest('.xterm, .xterm-screen') ? 'terminal' : e.closest('.monaco-editor') ? 'editor' : '',
        visible: ring || style.caretColor !== 'transparent' && e.matches('input, textarea, select'),
      };
    },
    /** What was not come to. */
    missed() {
      const all = [...document.querySelectorAll('body *')].filter((e) => (e.matches(OWN) || reacts(e)) && seen(e));
      const within = (e) => [...reached].some((r) => r === e || r.contains(e) && r.matches(WIDGETS) || e.contains(r));

      return all.filter((e) => !within(e)
        // one of a widget that was come to: its arrows are tried below
        && !(e.closest(WIDGETS) && [...reached].some((r) => e.closest(WIDGETS).contains(r) || r === e.closest(WIDGETS)))
        // the editor's and the terminal's own parts
        && !e.closest('.monaco-editor, .monaco-diff-editor, .xterm')
        && !e.matches('[tabindex="-1"][aria-hidden]')).map(name);
    },
    widgets() {
      return [...document.querySelectorAll(WIDGETS)].filter((e) => seen(e) && !e.closest('.monaco-editor, .monaco-diff-editor, .xterm')).map((e, i) => {
        e.dataset.widget = String(i);
        return { i, role: e.getAttribute('role'), name: name(e),
          n: e.querySelectorAll('[role="option"], [role="treeitem"], [role="tab"], [role="radio"]').length };
      });
    },
    /** What a widget points at; nothing, when another has taken its place. */
    at(i) {
      const e = document.querySelector(`[data-widget="${i}"]`);

      if (!e) {
        return '';
      }
      const holder = e.matches('[aria-activedescendant]') ? e : e.querySelector('[aria-activedescendant]');

      return holder?.getAttribute('aria-activedescendant')
        || (e.contains(document.activeElement) && document.activeElement !== e ? name(document.activeElement) : '')
        || [...e.querySelectorAll('[aria-selected="true"]')].map(name).join() || '-';
    },
    focus(i) {
      const e = document.querySelector(`[data-widget="${i}"]`);
      const inside = e.matches('[tabindex="0"]') ? e : e.querySelector('[tabindex="0"], [aria-selected="true"]') ?? e;
      inside.focus();
    },
    menus() {
      return [...document.querySelectorAll('main [aria-haspopup="menu"], header [aria-haspopup="menu"]')].filter(seen).map((e, i) => {
        e.dataset.menu = String(i);
        return { i, name: name(e) };
      });
    },
  };
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
  const dark = [];

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
  await page.evaluate(() => keyboard.begin());

  let stops = 0;
  for (let out = ''; stops < 400; stops++) {
    await page.keyboard.press(out || 'Tab');
    const at = await page.evaluate(() => keyboard.step());

    if (at.end && !out) {
      break;
    }
    if (!at.end && !at.visible && !at.own) {
      dark.push(at.name);
    }
    // both keep Tab for themselves, and have a key to get out
    if (at.own === 'editor' && !out) {
      await page.keyboard.press('Control+m');
    }
    out = at.own === 'terminal' && !out ? 'Control+Shift+ArrowUp' : '';
  }

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

  for (const m of await page.evaluate(() => keyboard.menus())) {
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

async function dialogs(browser) {
  const page = await open(browser);

  await page.goto(`${url}sandboxes`);
  await settled(page);

  const opener = page.getByRole('button', { name: 'New sandbox' });

  await opener.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await until(() => page.evaluate(() => !!document.activeElement.closest('[role="dialog"]')), 'the keyboard in the dialog');
  ok(true, 'a dialog has the keyboard');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await until(() => opener.evaluate((e) => e === document.activeElement), 'the keyboard at the button');
  ok(true, 'and gives it back to what opened it');
  await page.context().close();
}

const parts = Object.entries(PAGES).map(([name, where]) => [name, part(where)]);
const half = parts.length / 2;

await run({ dialogs, ...Object.fromEntries(parts.slice(0, half)) }, Object.fromEntries(parts.slice(half)));

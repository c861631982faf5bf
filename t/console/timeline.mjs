import { request } from 'node:http';
import {
  becomes, facts, is, live, looks, ok, open, overflow, run, sees, serious, settled, shot, still, token, until, url,
} from './lib/browser.mjs';
import { differs } from './lib/diff.mjs';
import { command } from './lib/gateway.mjs';

const history = (id, query = '') => `${url}sandboxes/${id}/history${query}`;
const rows = (page) => page.getByRole('option');
const list = (page) => page.getByRole('listbox', { name: 'Records, oldest first' });
const record = (page) => page.getByRole('region', { name: 'Record' });

const atEnd = (page) => list(page).evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 9);

/** A timeline of any length, as the API would page it; records may be made others, answers may lack something. */
async function pretend(page, length, made = (o) => o, complete = () => true) {
  const asked = [];
  const counts = new Map();

  for (let n = 1; n <= length; n++) {
    const { type } = made({ cursor: n, type: 'command.execute' });
    counts.set(type, (counts.get(type) ?? 0) + 1);
  }

  await page.route('**/api/v1/operations?*', (route) => {
    const q = new URL(route.request().url()).searchParams;
    const limit = Number(q.get('limit') ?? 100);
    const asc = q.get('order') === 'asc';
    const [lo, hi] = [Number(q.get('after') ?? 0) + 1, Math.min(length, Number(q.get('before') ?? length + 1) - 1)];
    const first = asc ? lo : Math.max(lo, hi - limit + 1);
    const last = asc ? Math.min(hi, lo + limit - 1) : hi;
    const items = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => made({
      seq: null, cursor: first + i, id: `id-${first + i}`, sandbox_id: 's', source: 'sdk', type: 'command.execute',
      status: 'succeeded', started_at: new Date(1.7e12 + (first + i) * 1000).toISOString(), completed_at: null, duration_ms: 1,
      actor: { type: 'agent', id: 'a', thread: null, run: null, correlation: null, parent: null, identity: null },
      summary: `command number ${first + i}`, summary_bytes: 10, exit_code: 0, output: null, file: null, verdict: null,
      lock: null, chain: null, error_code: null, reason: null, folded: null,
    }));

    const values = [...counts].filter(([type]) => !q.has('type') || q.getAll('type').includes(type)).map(([value, count]) => ({ value, count }));
    const none = { values: [], other: 0 };

    asked.push([...q.keys()]);
    return route.fulfill({ json: {
      ...(q.has('facets') ? { facets: { total: values.reduce((sum, v) => sum + v.count, 0), failed: 0, exact: true,
        type: { values, other: 0 }, status: none, actor: none, sandbox: none, source: none } } : {}),
      items: asc ? items : items.reverse(), gaps: [], complete: complete(q),
      next: (asc ? last < hi : first > lo) ? (asc ? last : first) : null, previous: null,
    } });
  });

  return asked;
}

await run({
  'what failed, and why': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox));
    await page.getByText('error: relation orders already exists', { exact: true }).first().waitFor();
    ok(true, 'a failure shows its last line of stderr without a click');

    await page.getByRole('button', { name: 'Status' }).click();
    await page.getByRole('menuitemcheckbox', { name: /^Failed/ }).click();
    await page.keyboard.press('Escape');
    await page.waitForURL(/status=failed/);
    await page.waitForFunction(() => document.querySelectorAll('[role="option"]').length === 1);
    ok(true, 'a filter is in the address and in the list');

    await rows(page).first().click();
    await page.getByRole('region', { name: 'stderr' }).waitFor();
    is(await page.getByRole('region', { name: 'stdout' }).innerText().then((s) => s.trim()), 'applying 014_orders.sql', 'its output is beside it');
    ok(/op=/.test(page.url()), 'a record has an address');

    const link = page.url();
    await page.goto(url);
    await page.goto(link);
    await page.getByRole('region', { name: 'stderr' }).waitFor();
    is(await rows(page).first().getAttribute('aria-selected'), 'true', 'which leads back to it, and shows where it is');
    await page.context().close();
  },

  'order, and the live tail': async (browser) => {
    const page = await open(browser);

    await page.setViewportSize({ width: 1440, height: 420 });
    await page.goto(history(facts.other));
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();

    const times = await rows(page).locator('time').evaluateAll((all) => all.map((t) => t.dateTime));
    is(times, [...times].sort(), 'the oldest stands first');
    await becomes(() => atEnd(page), true, 'and the newest is in view');

    for (let i = 0; i < 14; i++) {
      await command(facts.other, `echo live-${i}`);
    }
    await rows(page).filter({ hasText: 'echo live-13' }).getByText('OK').waitFor();
    await becomes(() => atEnd(page), true, 'what happens appears by itself, with its end, and the list follows');

    await list(page).hover();
    await page.mouse.wheel(0, -200);
    await until(async () => !await atEnd(page), 'a scroll');
    const before = await list(page).evaluate((e) => e.scrollTop);
    await command(facts.other, 'echo unseen-1');
    await command(facts.other, 'echo unseen-2');
    await page.getByRole('button', { name: '2 new' }).waitFor();
    is(await list(page).evaluate((e) => e.scrollTop), before, 'whoever scrolls up stays there, and is told what came');
    await page.getByRole('button', { name: '2 new' }).click();
    await rows(page).filter({ hasText: 'echo unseen-2' }).waitFor();
    await becomes(() => atEnd(page), true, 'and comes back with a click');

    await page.getByRole('textbox', { name: /Search commands/ }).fill('sought-word');
    await page.getByText('No record matches').waitFor();
    await command(facts.other, 'echo sought-word');
    await rows(page).filter({ hasText: 'sought-word' }).waitFor();
    ok(true, 'a search goes on by itself too');
    await page.context().close();
  },

  'texts that come late': async (browser) => {
    const page = await open(browser);
    const held = [];
    let answer;
    const answered = new Promise((done) => { answer = done; });
    let holds = false;

    // what the sandbox is comes late, and with it the actions; no text may be asked for then
    await page.route(new RegExp(`/api/v1/sandboxes(?:/${facts.sandbox})?(?:\\?.*)?$`), async (route) => {
      await answered;
      await route.continue();
    });
    await page.route('**/assets/*.js', (route) => (holds ? void held.push(route) : route.continue()));
    await page.goto(history(facts.sandbox));
    await rows(page).first().waitFor();

    const field = page.getByRole('textbox', { name: /Search commands/ });

    await field.focus();
    await page.keyboard.type('orders');
    holds = true;
    answer();
    await until(async () => held.length > 0 || await page.getByRole('button', { name: 'More actions' }).count() > 0, 'what a sandbox is');
    ok(await field.evaluate((e) => e.checkVisibility() && e === document.activeElement), 'a page keeps the keyboard when another part of it comes');
    await page.keyboard.type(' already');
    await page.keyboard.press('Enter');
    is(await field.inputValue(), 'orders already', 'and what is typed meanwhile');
    is(held.map((r) => r.request().url()), [], 'nothing that it shows has yet to be loaded');
    await Promise.all(held.map((route) => route.continue()));
    await page.context().close();
  },

  'a million records': async (browser) => {
    const page = await open(browser);
    const asked = await pretend(page, 1_000_000);

    await page.goto(`${url}history`);
    await rows(page).filter({ hasText: 'command number 1000000' }).waitFor();

    // each time to the end of what is held, until more is
    const scrolled = (to) => list(page).evaluate((e, y) => { e.scrollTop = y < 0 ? e.scrollHeight : y; }, to);
    const numbers = () => rows(page).evaluateAll((all) => all.map((e) => Number(/number (\d+)/.exec(e.textContent)[1])));
    const beyond = async (n, way) => {
      for (let [at] = await numbers(); way < 0 ? at > n : at < n; [at] = await numbers()) {
        await scrolled(way < 0 ? 0 : -1);
        await until(async () => (way < 0 ? (await numbers())[0] < at : (await numbers())[0] > at), `more than ${at}`);
      }
    };

    await beyond(997_000, -1);

    const height = await list(page).evaluate((e) => e.scrollHeight);
    ok(height < 60_000, 'what is far away is let go of', height);
    ok(await rows(page).count() < 120, 'and only what is seen is drawn');
    ok(asked.every((keys) => !keys.includes('offset') && !keys.includes('page')), 'pages are asked for by cursor');

    const seen = await numbers();
    is(seen, seen.map((_, i) => seen[0] + i), 'no record is missing between two pages, none is there twice');
    ok(seen[0] <= 997_000, 'older ones were loaded', seen[0]);

    await beyond(seen[0] + 2_000, 1);
    const down = await numbers();
    ok(down[0] > seen[0], 'and newer ones at the other end');
    is(down, down.map((_, i) => down[0] + i), 'as seamless');
    await page.getByRole('button', { name: 'To the newest' }).click();
    await rows(page).filter({ hasText: 'command number 1000000' }).waitFor();
    await becomes(() => atEnd(page), true, 'one click leads to the newest');
    await page.context().close();
  },

  'a long run, step by step': async (browser) => {
    const page = await open(browser);
    const wrong = 2_500;
    const made = (o) => ({ ...o, status: o.cursor === wrong ? 'failed' : 'succeeded' });

    await pretend(page, 3_000, made);
    await page.route('**/api/v1/operations/id-*', (route) => {
      const [, n] = /id-(\d+)/.exec(route.request().url());

      return route.fulfill({ json: { seq: null, cursor: Number(n), id: `id-${n}`, sandbox_id: 's', source: 'sdk', type: 'command.execute',
        status: 'succeeded', started_at: new Date(1.7e12 + n * 1000).toISOString(), duration_ms: 1, summary: `command number ${n}`,
        actor: { type: 'agent', id: 'a', run: 'long' }, output: null, file: null, verdict: null, lock: null, chain: null,
        request: {}, result: {}, command: null, wire: null, files: [], links: null } });
    });
    await page.goto(`${url}runs/long`);
    await rows(page).filter({ hasText: 'command number 3000' }).waitFor();
    await page.getByRole('button', { name: 'Step through' }).click();

    const steps = page.getByRole('group', { name: 'Step through' });
    const step = async (n) => {
      await steps.getByText(`Step ${n} of 3000`, { exact: true }).waitFor();
      await record(page).getByRole('heading', { name: `command number ${n}`, exact: true }).waitFor();
      await page.locator('[role="option"][aria-selected="true"]').filter({ hasText: `command number ${n}` }).waitFor();
      return true;
    };
    const press = (name) => steps.getByRole('button', { name, exact: true }).click();

    ok(await step(1), 'a run begins with its first record, however many there are');
    await press('Next step');
    await press('Next step');
    ok(await step(3), 'and goes on from there');
    await press('Next failure');
    ok(await step(wrong), 'to what went wrong, pages further on, which keeps its number');
    await press('Previous step');
    ok(await step(wrong - 1), 'and back');
    await press('Last step');
    ok(await step(3_000), 'to the end');
    await press('Previous step');
    ok(await step(2_999), 'which is counted from the end');
    await press('First step');
    ok(await step(1), 'and to the beginning again');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'C137 eight tabs': async (browser) => {
    const first = await open(browser);
    const tabs = [first];
    const hide = (page, hidden) => page.evaluate((is) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => is });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);

    // a browser has six connections to a host, of all its tabs together
    for (let n = 0; n < 8; n++) {
      const page = n === 0 ? first : await first.context().newPage();
      let streams = 0;
      let over = 0;

      page.on('request', (r) => { streams += /\/live\b/.test(r.url()) ? 1 : 0; });
      for (const end of ['requestfailed', 'requestfinished']) {
        page.on(end, (r) => { over += /\/live\b/.test(r.url()) ? 1 : 0; });
      }
      page.streams = () => streams - over;
      tabs[n] = page;
      await page.goto(history(facts.sandbox));
      await rows(page).first().waitFor();
      await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
      is(page.streams(), 1, `C137 tab ${n + 1} loads, and has one stream`);
      if (n < 7) {
        await hide(page, true);
        await until(() => page.streams() === 0, 'the end of a stream');
      }
    }

    is(tabs.map((page) => page.streams()), [0, 0, 0, 0, 0, 0, 0, 1], 'C137 a tab that nobody looks at has none');
    await command(facts.sandbox, 'echo while-hidden');
    await hide(tabs[7], true);
    await hide(first, false);
    await rows(first).filter({ hasText: 'echo while-hidden' }).waitFor();
    is(first.streams(), 1, 'C137 one that is looked at again has it again, with what came meanwhile');
    await first.context().close();
  },

  'include, exclude, group, around': async (browser) => {
    const page = await open(browser);
    const count = () => page.getByText(/^\d+ operations?$|^\d+ operations? ·/).first().innerText();

    await page.goto(history(facts.sandbox));
    await rows(page).first().waitFor();
    await page.getByRole('button', { name: 'Type' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Leave out command.execute' }).click();
    await page.keyboard.press('Escape');
    await page.waitForURL(/not=type%3Acommand.execute/);
    await rows(page).filter({ hasText: '/tmp/db/schema.sql' }).first().waitFor();
    await rows(page).filter({ hasText: 'printf' }).waitFor({ state: 'detached' });
    ok(true, 'a value is left out from its count');
    await page.getByRole('button', { name: /^Remove not Type/ }).click();
    await rows(page).filter({ hasText: 'printf' }).waitFor();

    await rows(page).filter({ hasText: '/tmp/db/old.sql' }).first().click();
    await record(page).getByRole('button', { name: 'nightly-32' }).click();
    await page.getByRole('menuitem', { name: 'Only this' }).click();
    await page.waitForURL(/run=nightly-32/);
    await page.waitForFunction(() => document.querySelectorAll('[role="option"]').length === 2);
    ok(true, 'a value in a record is a filter too');

    await record(page).getByRole('button', { name: 'Around this' }).click();
    await page.getByText('Everything around this record').waitFor();
    await rows(page).filter({ hasText: '014_orders' }).waitFor();
    ok(/run=nightly-32/.test(page.url()), 'what happened around it is shown, and the filters are kept');
    await page.getByRole('button', { name: 'Back to the filters' }).click();
    await page.waitForFunction(() => document.querySelectorAll('[role="option"]').length === 2);
    ok(true, 'for the way back');
    await page.keyboard.press('Escape');

    await page.goto(history(facts.sandbox, '?group=run'));
    await page.getByRole('link', { name: 'nightly-32' }).waitFor();
    ok(await page.getByRole('link', { name: 'nightly-31' }).count() > 0, 'grouped by run');
    await shot(page, 'grouped');

    ok(/operation/.test(await count()), 'how many there are is said');
    await page.context().close();
  },

  'what is left out, over many pages': async (browser) => {
    const page = await open(browser);
    const total = 30_000;
    const few = [3, 17, 29_000];      // all that is left
    const type = (n) => (few.includes(n) ? 'file.write' : 'command.execute');
    const asked = await pretend(page, total, (o) => ({ ...o, type: type(o.cursor) }));
    const said = (text) => page.getByText(text, { exact: true });

    await page.goto(`${url}history?not=type:command.execute`);
    await rows(page).filter({ hasText: 'command number 29000' }).waitFor();
    await sees(said('3 operations'), 'what is left is counted, over all pages');

    // there are others, further back than what is read by itself
    const further = page.getByRole('button', { name: 'Look further back' });

    for (let n = 1; n < few.length;) {
      await further.or(rows(page).nth(n)).first().waitFor();
      if (await further.isVisible()) {
        ok(await page.getByText(/older records are left out/).isVisible(), 'how far it was looked is said');
        await further.click();
        await until(async () => !await further.isVisible() || await rows(page).count() > n, 'a further look');
      }
      n = await rows(page).count();
    }

    is(await rows(page).evaluateAll((all) => all.map((e) => Number(/number (\d+)/.exec(e.textContent)[1]))), few, 'all of them are found');
    await further.waitFor({ state: 'detached' });
    ok(asked.every((keys) => !keys.includes('not')), 'the contract knows of no such filter');

    await page.goto(`${url}history?not=type:command.execute&not=type:file.write`);
    for (let ended = false; !ended;) {
      await further.or(page.getByText('No record matches')).first().waitFor();
      ended = !await further.isVisible();
      if (!ended) {
        is(await page.getByText('No record matches').count(), 0, 'nothing is said to match only when all was looked at');
        await further.click();
        await until(async () => !await further.isVisible(), 'a further look');
        await further.or(page.getByText('No record matches')).first().waitFor();
      }
    }
    await sees(said('0 operations'), 'and then the count says so too');
    await page.context().close();
  },

  'rows say what was done, where, and by whom': async (browser) => {
    const page = await open(browser, { width: 1024 });
    const file = { path: '/w/a.txt', old_path: null, change: 'write', before_hash: null, after_hash: null, before_size: 10, after_size: 10, has_diff: false };
    const kinds = [
      { type: 'sandbox.pause', summary: 'POST /sandboxes/5f3c/pause' },
      { type: 'file.read', summary: '/w/read.txt', file: { ...file, change: 'read' } },
      { type: 'file.delete', summary: '/w/gone.txt', file: { ...file, change: 'delete', after_size: null } },
      { type: 'file.write', summary: '/w/.env', file, status: 'failed', verdict: { decision: 'deny', rule: 'secrets' }, error_code: 'GATEWAY_POLICY_DENIED' },
      { type: 'dir.list', summary: '/', source: 'gateway', actor: { type: 'console', id: 'admin' } },
    ];
    const row = (n) => rows(page).nth(n);

    await pretend(page, kinds.length, (o) => ({ ...o, ...kinds[o.cursor - 1], actor: { ...o.actor, ...kinds[o.cursor - 1].actor }, sandbox_id: facts.other }));
    await page.goto(`${url}history`);
    await row(4).waitFor();
    is([await row(0).getByText('sandbox.pause').count(), await row(0).getByText('POST').count()], [1, 0], 'an operation is called by its name, not by its request line');
    ok(/\b10\s?(B|byte)\b/.test(await row(1).innerText()) && !/[+−]/.test(await row(1).innerText()), 'reading a file does not change its size', await row(1).innerText());
    await sees(row(3).getByText('Denied', { exact: true }), 'what a rule refused has not failed, it was denied');
    await sees(row(3).getByText('denied, rule secrets'), 'by which rule is said');
    await sees(row(4).getByText('Console'), 'what people did on these pages is said to be theirs');
    await page.setViewportSize({ width: 1440, height: 900 });
    await sees(row(0).getByText('report-builder'), 'sandboxes are called by their names');
    await page.setViewportSize({ width: 390, height: 844 });
    await sees(row(2).getByText('delete', { exact: true }), 'what was done to a file is said on a phone too');
    await page.unroute('**/api/v1/operations?*');

    await page.setViewportSize({ width: 1024, height: 768 });
    await page.goto(`${url}history?type=file.write`);
    await rows(page).filter({ hasText: '/tmp/db/old.sql' }).click();
    await sees(record(page).getByRole('button', { name: 'data-cleaning-7' }), 'so is the one of a record');
    const close = await record(page).getByRole('button', { name: 'Close' }).boundingBox();
    ok(close.x + close.width <= 1024, 'and what closes it is in view', JSON.stringify(close));
    await record(page).getByRole('tab', { name: 'Request' }).click();
    await sees(record(page).getByRole('region', { name: '1 file' }).getByText('/tmp/db/old.sql'), 'an upload says which files were asked for');
    await page.context().close();
  },

  'rows as one likes them': async (browser) => {
    const page = await open(browser);
    const height = () => rows(page).first().evaluate((e) => e.getBoundingClientRect().height);
    const choose = async (role, name) => {
      await page.getByRole('button', { name: 'View' }).click();
      await page.getByRole(role, { name, exact: true }).click();
      await page.keyboard.press('Escape');
      await page.getByRole('menu').waitFor({ state: 'detached' });
    };

    await page.goto(history(facts.sandbox, '?type=file.*'));
    await rows(page).first().waitFor();
    const normal = await height();
    ok(normal === 28 || normal === 48, 'a row has one line, or two', normal);
    await choose('menuitemradio', 'Dense');
    await until(async () => await height() < normal, 'denser rows');
    is([22, 38].includes(await height()), true, 'rows stand closer');
    is(await rows(page).evaluateAll((all) => all.every((e) => e.scrollHeight <= e.clientHeight + 1)), true, 'and all of each fits in');

    const first = rows(page).first();
    is([await first.locator('time').count(), await first.getByText('file.write').count()], [1, 1], 'a row has a time, and says which operation it was');
    await choose('menuitemcheckbox', 'Time');
    await choose('menuitemcheckbox', 'Operation');
    await first.locator('time').waitFor({ state: 'detached' });
    is([await first.locator('time').count(), await first.getByText('file.write').count()], [0, 0], 'unless that is not wanted');
    await sees(first.getByText('OK'), 'how it ended is always said');
    await looks(page, 'dense');

    await page.reload();
    await rows(page).first().waitFor();
    is([[22, 38].includes(await height()), await rows(page).first().locator('time').count()], [true, 0], 'which is remembered');
    is(await page.evaluate(() => location.search), '?type=file.*', 'by the browser, not in the address');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'what a file operation changed': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox, '?type=file.*'));
    await rows(page).filter({ hasText: '/tmp/db/schema.sql' }).last().click();
    await record(page).locator('.line-insert').first().waitFor();
    await differs(page, [['create table orders (id int);'], ['create table orders (id int, total int);']], 'before and after stand side by side');
    await record(page).locator('.monaco-diff-editor.side-by-side').waitFor();
    await record(page).getByRole('button', { name: 'In one column' }).click();
    await record(page).locator('.monaco-diff-editor:not(.side-by-side)').waitFor();
    await record(page).getByRole('button', { name: 'Side by side' }).click();
    await record(page).locator('.monaco-diff-editor.side-by-side').waitFor();
    ok(true, 'or in one column');

    await rows(page).filter({ hasText: '/tmp/db/old.sql' }).last().click();
    await record(page).locator('.line-delete').first().waitFor();
    await differs(page, [['drop table orders;'], []], 'a file that went has nothing behind');

    // under load the store says for some time that it runs still: what it changed comes with its end
    const stale = rows(page).filter({ hasText: '/tmp/db/old.sql' }).last();
    const id = new URL(page.url()).searchParams.get('op');
    let asked = 0;

    await page.route(`**/operations/${id}`, async (route) => {
      const answer = await (await route.fetch()).json();

      await route.fulfill({ json: ++asked > 3 ? answer : { ...answer, status: 'started', completed_at: null, duration_ms: null,
        file: { ...answer.file, has_diff: false, before_size: null } } });
    });
    await page.goto(history(facts.sandbox, '?type=file.*'));
    await stale.click();
    await record(page).locator('.line-delete').first().waitFor();
    ok(asked > 3, 'a record that the store has late is asked for until it is whole', asked);
    await page.unroute(`**/operations/${id}`);

    // what is not kept whole has the difference that the gateway tells
    await page.route('**/content?*', (route) => route.fulfill({ status: 404, json: { code: 'GATEWAY_NOT_FOUND', message: 'not kept', details: {} } }));
    await page.reload();
    await record(page).getByRole('region', { name: 'Diff' }).getByText('drop table orders;').waitFor();
    is(await record(page).locator('.monaco-diff-editor').count(), 0, 'what is not kept whole is a difference in lines');
    is(page.seen.errors.filter((e) => !/404.*content/.test(e)), [], 'no error in the browser, none of CSP');
    await page.context().close();
  },

  'C136 a large upload': async (browser) => {
    const page = await open(browser);
    const row = rows(page).filter({ hasText: '/tmp/db/large.bin' });
    const b = 'b0undary';
    const part = (name, type, body) => `--${b}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n${body}`;
    const piece = Buffer.alloc(1024 * 1024, 'x');

    await page.goto(history(facts.other));
    await live(page);

    const upload = request(new URL(`../v1/sandboxes/${facts.other}/proxy/44772/files/upload`, url), {
      method: 'POST', agent: false,
      headers: { 'OPEN-SANDBOX-API-KEY': token, 'Content-Type': `multipart/form-data; boundary=${b}` },
    });
    const answer = new Promise((done, fail) => upload.on('response', done).on('error', fail));

    upload.write(`${part('metadata', 'application/json', '{"path":"/tmp/db/large.bin"}')}\r\n${part('file', 'application/octet-stream', '')}`);
    upload.write(piece);
    await row.getByText('Running').waitFor();
    ok(true, 'C136 an upload is seen while it runs, with where it goes to');
    await shot(page, 'uploading');
    upload.write(piece);
    upload.end(`\r\n--${b}--\r\n`);
    is((await answer).statusCode, 200, 'C136 it goes through');
    await row.getByText('OK').waitFor();
    is([await row.count(), await rows(page).getByText('Running').count()], [1, 0], 'C136 and its one row says how it has ended');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'histogram and ranges': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox, '?from=1h'));
    const bars = page.getByRole('img', { name: /operations between/ });
    await bars.waitFor();
    const box = await bars.boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 1, box.y + 12, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=\d{4}-.*to=\d{4}-/);
    ok(true, 'a stretch that is drawn is the range');
    await page.getByRole('img', { name: /operations? between/ }).dblclick();
    await page.waitForURL(/from=1h/);
    ok(!/to=/.test(page.url()), 'a double click goes back');

    await page.getByRole('button', { name: 'Last hour' }).click();
    await page.getByLabel('Times in').selectOption('utc');
    await page.getByLabel('From', { exact: true }).fill('2020-01-01T00:00:00');
    await page.getByLabel('To', { exact: true }).fill('2020-01-02T00:00:00');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/from=2020-01-01T00%3A00%3A00.000Z/);
    await page.getByText('No record matches').waitFor();
    ok(true, 'from and to, in a zone of choice');
    await page.context().close();
  },

  'a narrow list': async (browser) => {
    const page = await open(browser, { width: 390 });
    const row = rows(page).filter({ hasText: '014_orders' });

    await page.goto(history(facts.sandbox));
    await row.waitFor();
    ok(/\b\d\d:\d\d:\d\d\b/.test(await row.innerText()), 'a row says when, on a phone too');
    const word = row.getByText(/^Failed/);
    ok(await word.evaluate((e) => parseFloat(getComputedStyle(e).fontSize)) > 9, 'and that it failed, in a word');
    is(await overflow(page), 0, 'as wide as the phone');
    await shot(page, 'rows-390');

    await page.setViewportSize({ width: 1024, height: 768 });
    await row.click();
    await record(page).waitFor();
    ok(/\b\d\d:\d\d:\d\d\b/.test(await row.innerText()) && await word.evaluate((e) => parseFloat(getComputedStyle(e).fontSize)) > 9,
      'beside an open record too');
    await page.setViewportSize({ width: 1440, height: 900 });
    await sees(page.getByRole('button', { name: 'Export' }).getByText('Export'), 'where there is room, no sign stands alone');
    await page.context().close();
  },

  'what a command said': async (browser) => {
    const page = await open(browser);
    const row = (text) => rows(page).filter({ hasText: text });

    await page.goto(history(facts.sandbox, '?type=command.execute'));
    await sees(row('seq 1 400').getByText('400 lines', { exact: true }), 'how long its output is, without a click');
    is(await row('seq 1 400').locator('span').getByText('1', { exact: true }).count(), 1, 'and how it begins');
    await sees(row('32mgreen').getByText('green red plain'), 'without its colours');
    is(await row('014_orders').getByText(/\d+ lines/).count(), 0, 'of one that failed its last words');
    await row('seq 1 400').getByText('400 lines').click();
    await sees(record(page).getByRole('region', { name: 'stdout' }).first(), 'all of it is one click away');

    await page.getByRole('button', { name: 'View' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'First line of output' }).click();
    await page.keyboard.press('Escape');
    await row('seq 1 400').getByText('400 lines').waitFor({ state: 'detached' });
    ok(true, 'who wants less has less');
    await page.context().close();
  },

  'filters that are typed': async (browser) => {
    const page = await open(browser);
    const more = async (name, value) => {
      await page.getByRole('button', { name: /^More filters/ }).click();
      await page.getByRole('dialog', { name: 'More filters' }).getByLabel(name).fill(value);
      await page.getByRole('button', { name: 'Apply' }).click();
    };
    const titles = async () => [...new Set(await rows(page).evaluateAll((all) => all.map((r) => /\/tmp\S+?\.sql/.exec(r.textContent)?.[0] ?? '-')))].sort();

    await page.goto(history(facts.sandbox));
    await rows(page).first().waitFor();
    await more('Path', '/tmp/db/s*.sql');
    await page.waitForURL(/path=%2Ftmp%2Fdb%2Fs\*\.sql|path=%2Ftmp%2Fdb%2Fs%2A\.sql/);
    await sees(page.getByText('Path: /tmp/db/s*.sql'), 'what was done below a path is asked for');
    await becomes(titles, ['/tmp/db/schema.sql'], 'and is all there is');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await more('Exit code', '3');
    await page.waitForURL(/exit_code=3/);
    await becomes(() => rows(page).count(), 1, 'commands by how they ended');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await more('At least (ms)', '2000');
    await page.waitForURL(/min_duration_ms=2000/);
    await rows(page).filter({ hasText: 'sleep 2.4' }).waitFor();
    await becomes(() => rows(page).filter({ hasText: 'seq 1 400' }).count(), 0, 'what took long');

    await page.goto(history(facts.sandbox));
    await rows(page).filter({ hasText: 'schema.sql' }).first().click();
    await record(page).getByRole('button', { name: '/tmp/db/schema.sql' }).click();
    await page.getByRole('menuitem', { name: 'Not this' }).click();
    await becomes(async () => (await titles()).includes('/tmp/db/schema.sql'), false, 'a path is left out where it is shown');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await record(page).getByRole('button', { name: '/tmp/db/schema.sql' }).click();
    await page.getByRole('menuitem', { name: 'Only this' }).click();
    await becomes(titles, ['/tmp/db/schema.sql'], 'or is all there is');

    await page.goto(`${url}history?status=failed`);
    await rows(page).filter({ hasText: '014_orders' }).click();
    await record(page).getByRole('button', { name: 'data-cleaning-7' }).click();
    await page.getByRole('menuitem', { name: 'Only this' }).click();
    await page.waitForURL((u) => u.pathname.endsWith(`/sandboxes/${facts.sandbox}/history`) && u.searchParams.get('status') === 'failed');
    ok(true, 'one sandbox only, and the other filters stay');

    await page.goto(`${url}history`);
    await page.getByRole('button', { name: /^More filters/ }).click();
    await page.getByLabel('What people did here').check();
    await page.keyboard.press('Escape');
    await rows(page).filter({ hasText: 'console.' }).first().waitFor();
    await page.getByRole('button', { name: /^Type/ }).click();
    await sees(page.getByRole('menuitemcheckbox', { name: /^console\.sign_in/ }), 'who signed in is found');
    await page.keyboard.press('Escape');
    is(await serious(page), [], 'axe finds nothing serious');
    await page.getByRole('button', { name: /^More filters/ }).click();
    await shot(page, 'more');
    await page.getByLabel('What people did here').uncheck();
    await becomes(() => new URL(page.url()).searchParams.has('type'), false, 'and is left out again');
    await page.context().close();
  },

  'another zone is the same time': async (browser) => {
    const page = await open(browser, { timezoneId: 'Asia/Shanghai' });
    const range = () => new URL(page.url()).searchParams;
    const fields = async () => [await page.getByLabel('From', { exact: true }).inputValue(), await page.getByLabel('To', { exact: true }).inputValue()];

    await page.goto(history(facts.sandbox, '?from=2026-01-01T00:00:05.250Z&to=2026-01-02T00:00:05.750Z'));
    await page.getByRole('button', { name: / – / }).click();
    is(await fields(), ['2026-01-01T08:00:05', '2026-01-02T08:00:05'], 'a range, as Shanghai has it');
    await page.getByLabel('Times in').selectOption('utc');
    await becomes(fields, ['2026-01-01T00:00:05', '2026-01-02T00:00:05'], 'the same moments, as UTC has them');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByLabel('Times in').waitFor({ state: 'hidden' });
    is([range().get('from'), range().get('to')], ['2026-01-01T00:00:05.250Z', '2026-01-02T00:00:05.750Z'], 'and nothing has moved, not by a millisecond');

    await page.goto(history(facts.sandbox, '?from=30d'));
    await page.getByRole('button', { name: 'Last 30 days' }).click();
    await page.getByLabel('To', { exact: true }).fill('2040-01-01T00:00:00');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/to=2040-/);
    is(range().get('from'), '30d', 'an end is chosen: the beginning stays where it was');
    await page.context().close();
  },

  'output': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox));
    await rows(page).filter({ hasText: '32mgreen' }).click();
    const out = page.getByRole('region', { name: 'stdout' }).first();
    await out.waitFor();
    is(await out.getByText('green', { exact: true }).getAttribute('class'), 'ansi-2', 'colours are colours');
    await record(page).getByRole('button', { name: 'Colours' }).click();
    await becomes(async () => (await out.innerText()).includes('ESC[32m'), true, 'or as they came');
    await record(page).getByRole('button', { name: 'Colours' }).click();

    await record(page).getByRole('textbox', { name: 'Find in the output' }).fill('later');
    await record(page).getByText('1/1').waitFor();
    await becomes(() => page.evaluate(() => CSS.highlights.has('found-here')), true, 'what is sought is found, and painted');
    await record(page).getByRole('textbox', { name: 'Find in the output' }).fill('');

    await record(page).getByLabel('Stream').selectOption('apart');
    await page.getByRole('region', { name: 'stderr' }).waitFor();
    const [left, right] = await Promise.all(['stdout', 'stderr'].map((n) => page.getByRole('region', { name: n }).first().boundingBox()));
    ok(right.x > left.x + 50, 'the streams stand side by side');

    const [file] = await Promise.all([page.waitForEvent('download'), record(page).getByRole('button', { name: 'Download the exact bytes' }).click()]);
    const bytes = await (await file.createReadStream()).toArray().then((c) => Buffer.concat(c));
    ok(bytes.includes('\x1b[32mgreen'), 'the exact bytes can be had');
    await shot(page, 'output');

    // as execd of others sends it
    await page.route('**/output?*', (route) => route.fulfill({ json: { status: 'succeeded', state: 'complete', complete: true, last: 1, next: null,
      items: [{ n: 0, stream: 'stdout', at: '', bytes: 9, text: '10%\r50%\r\u001b[K100%\r\nnext\u001b[38;5;196m red\u001b[38;2;1;2;3m dark' }] } }));
    await page.reload();
    await out.waitFor();
    is(await out.innerText(), '100%\nnext red dark', 'a line that was written over stands as it ended');
    is(await out.getByText('red').evaluate((e) => e.style.color), 'rgb(255, 0, 0)', 'with any colour there is');
    await page.context().close();
  },

  'copy, verify, run again': async (browser) => {
    const page = await open(browser, { permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = async (name) => {
      await page.evaluate(() => navigator.clipboard.writeText(''));
      await record(page).getByRole('button', { name: 'Copy as' }).click();
      await page.getByRole('menuitem', { name }).click();
      return until(() => page.evaluate(() => navigator.clipboard.readText()), `a copy: ${name}`);
    };

    await page.goto(history(facts.other));
    await rows(page).first().waitFor();
    await list(page).evaluate((e) => e.scrollTo(0, 0));
    await rows(page).filter({ hasText: 'echo from-report-bot' }).click();
    const curl = await copied('curl');
    ok(/^curl -X POST 'http[^']+\/command'/.test(curl) && curl.includes(`-d '{"command":"echo from-report-bot"}'`), 'as curl', curl);
    ok(!curl.includes(token), 'without the token');
    ok(/sandbox\.commands\.run\("echo from-report-bot"\)/.test(await copied('SDK call (Python)')), 'as a call of the SDK');
    is(JSON.parse(await copied('JSON')).summary, 'echo from-report-bot', 'as JSON');
    ok(/history\?op=/.test(await copied('Link to this record')), 'as a link');

    await record(page).getByRole('button', { name: /^Verify/ }).click();
    await record(page).getByRole('button', { name: /^Verified · seq/ }).waitFor();
    ok(true, 'the chain says that it was not changed');

    await record(page).getByRole('button', { name: 'Run again' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
    await page.getByRole('button', { name: '1 new' }).click();
    await rows(page).filter({ hasText: 'echo from-report-bot' }).getByText('OK').last().waitFor();
    await page.waitForFunction(() => document.querySelector('[role="listbox"] > div').lastElementChild.textContent.includes('echo from-report-bot'));
    ok(true, 'a command runs again, and is on record');
    await record(page).getByRole('tab', { name: 'Linked' }).click();
    await page.reload();
    await record(page).getByRole('tab', { name: 'Linked' }).click();
    await record(page).getByRole('region', { name: 'Run again as' }).waitFor();
    ok(true, 'linked with the first');
    await page.context().close();
  },

  'what could not be read yet': async (browser) => {
    const page = await open(browser);
    const search = page.getByRole('textbox', { name: /^Search commands/ });
    let lacking = 2;

    // under load the lists are behind for some time: nothing else happens that would make a page ask again
    await page.route(/\/operations\?.*\bq=014_orders/, async (route) => {
      const answer = await (await route.fetch()).json();
      // what counts is asked at the same time: it is lists that lack something
      const counts = /[?&](?:facets=|buckets=|limit=1&)/.test(`${route.request().url()}&`);

      await route.fulfill({ json: !counts && lacking-- > 0 ? { ...answer, items: [], next: null, complete: false } : answer });
    });
    await page.goto(history(facts.sandbox, '?q=014_orders'));
    await page.getByText(/this list lacks something/).waitFor();
    await rows(page).filter({ hasText: '014_orders' }).waitFor();
    ok(true, 'a search that lacks something is asked again, by itself');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    ok(true, 'and says no longer that it does');

    lacking = 2;
    await page.goto(`${url}sandboxes/${facts.sandbox}/commands`);
    await search.fill('014_orders');
    await page.getByText('No command matches').waitFor();
    await page.getByRole('region', { name: 'Commands' }).getByRole('listitem').filter({ hasText: '014_orders' }).waitFor();
    ok(true, 'so is one among commands');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'what could not be read yet, nor the next time': async (browser) => {
    const page = await open(browser);
    const counts = (q) => ['order', 'before', 'facets', 'buckets'].some((name) => q.has(name));
    let lacking = 1;
    let asked = 0;

    // what the stream tells makes a page ask, too
    await page.route('**/api/v1/live*', (route) => route.abort());
    await pretend(page, 300, undefined, (q) => counts(q) || lacking-- <= 0);
    await page.route('**/api/v1/operations?*', (route) => {
      const away = !counts(new URL(route.request().url()).searchParams) && ++asked === 2;

      return away ? route.fulfill({ status: 503, json: { code: 'GATEWAY_OVERLOADED', message: 'not now', details: {} } }) : route.fallback();
    });
    await page.goto(`${url}runs/steady`);
    await until(() => asked > 2, 'a question after the one that failed');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    ok(true, 'a question that nobody asked is no error of the page, and is asked again');
    await page.context().close();
  },

  'a part that cannot be had': async (browser) => {
    const page = await open(browser);
    const parts = /\/assets\/detail-[^/]*\.js/;
    const failed = page.getByText('This part could not be shown');

    // this tab was loaded anew for it already: that is done once
    await page.addInitScript(() => sessionStorage.setItem('sandbox-gateway.reloaded', '1e15'));
    await page.route(parts, (route) => route.abort());

    await page.goto(history(facts.sandbox, '?type=command.execute'));
    await rows(page).filter({ hasText: '014_orders' }).click();
    await failed.waitFor();
    ok(await rows(page).count() > 0, 'a record whose part cannot be loaded leaves the list as it is');

    const { searchParams } = new URL(page.url());

    await page.goto(`${url}sandboxes/${facts.sandbox}/commands?op=${searchParams.get('op')}`);
    await failed.waitFor();
    await sees(page.getByRole('textbox', { name: 'Command', exact: true }), 'a command too');

    await page.unroute(parts);
    await page.getByRole('button', { name: 'Reload', exact: true }).click();
    await page.getByRole('region', { name: 'One command' }).getByText('Failed · 3').waitFor();
    ok(true, 'and comes when the page is loaded again');
    await page.context().close();
  },

  'gaps': async (browser) => {
    const page = await open(browser);

    await page.route('**/api/v1/sandboxes/*/operations?*', async (route) => {
      const answer = await (await route.fetch()).json();
      const [newest] = answer.items;

      answer.gaps = newest && [{ ...newest, id: 'gap-1', cursor: newest.cursor - 0.5, type: 'gateway.gap', status: 'succeeded',
        summary: '17 operations not recorded, 1.2M bytes of output not recorded: history_full', reason: null, output: null, file: null }];
      await route.fulfill({ json: answer });
    });
    await page.goto(history(facts.sandbox, '?type=command.execute'));
    const gap = rows(page).filter({ hasText: 'Not on record' });
    await gap.waitFor();
    ok(/17 operations · 1\.2 MB of output · the history was full/.test(await gap.innerText()), 'what is missing is said, with its cause, whatever the filters');
    ok(await gap.evaluate((e) => getComputedStyle(e).backgroundImage.includes('repeating')), 'and hatched');
    await shot(page, 'gap');
    await page.evaluate(() => localStorage.setItem('sandbox-gateway.lang', 'zh-CN'));
    await page.reload();
    await sees(rows(page).filter({ hasText: '17 个操作 · 1.2 MB 输出 · 历史已满' }), 'in Chinese too');
    await page.evaluate(() => localStorage.setItem('sandbox-gateway.lang', 'en'));

    // on every page, on a phone too
    const banner = page.getByText('Not everything is on record: history has 2 gaps.');
    is(await banner.count(), 0, 'where nothing is missing nothing is said');
    await page.route('**/api/v1/overview*', async (route) => {
      const answer = await (await route.fetch()).json();

      await route.fulfill({ json: { ...answer, gaps: { ...answer.gaps, count: 2 } } });
    });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${url}sandboxes`);
    await sees(banner, 'a banner says that history has gaps');
    await settled(page);
    is([await overflow(page), await serious(page)], [0, []], 'as wide as a phone, and axe finds nothing serious');
    await shot(page, 'gap-banner');
    await page.getByRole('link', { name: 'Show', exact: true }).click();
    await page.waitForURL(/history\?type=gateway\.gap/);
    ok(true, 'and leads to them');
    await page.context().close();
  },

  'by keyboard': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox));
    await rows(page).first().waitFor();
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press('k');
    is(await rows(page).last().getAttribute('aria-selected'), 'true', 'k begins at the newest');
    await page.keyboard.press('k');
    is(await rows(page).nth(await rows(page).count() - 2).getAttribute('aria-selected'), 'true', 'and moves up');
    await page.keyboard.press('Enter');
    await record(page).waitFor();
    ok(true, 'Enter opens');
    await page.keyboard.press('Escape');
    await record(page).waitFor({ state: 'detached' });
    ok(true, 'Esc closes');
    await page.keyboard.press('/');
    await page.keyboard.type('orders');
    await page.waitForURL(/q=orders/);
    ok(true, '/ searches');
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await shot(page, 'keys');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('report');
    await page.getByRole('option', { name: /report-builder/ }).waitFor();
    await shot(page, 'palette');
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(facts.other));
    ok(true, 'Ctrl K jumps');
    await page.context().close();
  },

  'export': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox, '?type=file.*'));
    await page.getByRole('button', { name: 'Export' }).click();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'JSON Lines' }).click()]);
    const lines = Buffer.concat(await (await file.createReadStream()).toArray()).toString().trim().split('\n').map((l) => JSON.parse(l));
    is(lines.at(-1).export.complete, true, 'whole');
    ok(lines.slice(0, -1).length === 4 && lines.slice(0, -1).every((l) => l.type.startsWith('file.')), 'exactly what is filtered');
    await page.getByText(/^Done: 4 records, /).waitFor();
    await page.context().close();
  },

  'export without what is left out': async (browser) => {
    const page = await open(browser, { width: 1440 });
    const saved = async (format) => {
      await page.getByRole('button', { name: 'Export' }).click();
      const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: format }).click()]);
      const text = Buffer.concat(await (await file.createReadStream()).toArray()).toString();

      await page.getByText(/^Done: /).waitFor();
      await page.getByRole('button', { name: 'Close' }).last().click();
      return text;
    };

    await page.goto(history(facts.sandbox, '?not=type:command.execute&not=path:/tmp/db/old.sql'));
    await rows(page).first().waitFor();
    const shown = await rows(page).count();

    const lines = (await saved('JSON Lines')).trim().split('\n').map((l) => JSON.parse(l));
    is([lines.length - 1, lines.at(-1).export.records, lines.at(-1).export.complete], [shown, shown, true], 'as many records as the list shows, and it says so');
    is(lines.filter((l) => l.type === 'command.execute' || l.file?.path === '/tmp/db/old.sql').length, 0, 'none of what is left out');

    const table = (await saved('CSV')).trim().split('\r\n');
    is([table.length - 2, table.at(-1).split(',').slice(0, 2)], [shown, ['#end', String(shown)]], 'a table too');
    is(table.filter((row) => /command\.execute|old\.sql/.test(row)).length, 0, 'without what is left out');

    await page.getByRole('button', { name: 'Export' }).click();
    is(await page.getByRole('menuitem', { name: /HTML/ }).getAttribute('aria-disabled'), 'true', 'a page has all, and is not offered');
    await page.keyboard.press('Escape');

    // an answer that breaks off is no file, and can be asked for again
    await page.route('**/api/v1/export?*', (route) => route.fulfill({ contentType: 'application/x-ndjson', body: '{"type":"file.read","actor":{}}\n' }));
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('menuitem', { name: 'JSON Lines' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.unroute('**/api/v1/export?*');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('dialog').getByRole('button', { name: 'Try again' }).click()]);
    ok(/"records":\d+/.test(Buffer.concat(await (await file.createReadStream()).toArray()).toString()), 'one that broke off is tried again');
    await page.context().close();
  },

  'C129 C130 hostile text': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.other));
    await settled(page);
    await sees(page.getByText("<script>document.title=1</script>", { exact: false }).first(), 'markup is text');
    await sees(page.getByText('<b>bold</b>').first(), 'in an actor too');

    const said = async (name) => {
      await page.goto(`${url}runs/h-${name}`);
      await rows(page).first().click();
      await page.getByRole('region', { name: 'stdout' }).first().waitFor();
      await still(page);
      await shot(page, `hostile-${name}`);
      return page.getByRole('region', { name: 'stdout' }).first().innerText();
    };

    ok((await said('html')).includes('<img src=x onerror=alert(1)><script>'), 'markup in an output is text');
    ok(((s) => s.includes('ESC]52') && s.includes('ESC]8') && s.includes('BEL'))(await said('osc')), 'orders to a terminal are signs');
    ok(((s) => s.includes('ESC[2J') && s.includes('hidden'))(await said('moves')), 'nothing moves, clears or hides');
    ok(((s) => s.includes('U+202E') && s.includes('U+2066') && s.includes('U+200B'))(await said('bidi')), 'directions and zero widths are signs');
    is((await said('long')).trim().length, 20_000, 'a line of any length is all there');
    ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'in its box');
    ok(((s) => s.includes('aNULb') && s.includes('c'))(await said('nul')), 'NUL and bytes that are no text are signs');

    await page.goto(`${url}runs/h-osc`);
    await rows(page).first().click();
    await record(page).getByRole('tab', { name: 'Replay' }).click();
    await record(page).getByRole('button', { name: 'Play' }).waitFor();
    // the tabs, which have the keyboard, have a use for this key too
    await record(page).getByRole('group', { name: 'Replay' }).focus();
    await page.keyboard.press('End');
    await until(async () => ((a, b) => a === b)(...(await page.getByRole('timer').innerText()).split(' / ')), 'the end of the replay');
    await still(page);
    ok(!/^title/.test(await page.title()), 'a replay changes no title');
    is(await page.evaluate(() => document.querySelectorAll('img:not([src="icon.svg"]), a[href*="evil"]').length), 0, 'and makes nothing');
    is(page.seen.errors.filter((e) => /Content.Security/i.test(e)), [], 'CSP has nothing to say');
    is(page.seen.errors, [], 'nor has the browser');
    await page.context().close();
  },
});

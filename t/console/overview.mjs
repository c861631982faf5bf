// The first page: what it counts leads to what was counted, and what is wrong
// with the recorder, or missing, is said.

import { becomes, facts, is, ok, open, run, sees, settled, until, url } from './lib/browser.mjs';

const rows = (page) => page.getByRole('option');
const number = (page, name) => page.locator('dl > div').filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).getByRole('link');
/** One of the cards: the same words may stand in others too. */
const card = (page, title) => page.locator('main section').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
const COUNTED = /^(\d+) operations?( ·.*)?$/;

/** Goes from a number to what it counts, until nobody has added to it meanwhile. */
const leads = (page, from, what) => until(async () => {
  const n = await from();
  const said = page.getByText(COUNTED).first();

  await said.waitFor();
  return n > 0 && Number((await said.innerText()).match(COUNTED)[1]) === n && await rows(page).count() === n;
}, what);

/** The overview, with something in it changed. */
const changed = (page, change) => page.route('**/api/v1/overview*', async (route) => {
  const answer = await (await route.fetch()).json();

  change(answer);
  await route.fulfill({ json: answer });
});

await run({
  'each number leads to what it counts': async (browser) => {
    const page = await open(browser);
    const home = () => page.goto(`${url}?range=24h`);

    await leads(page, async () => {
      await home();
      const n = Number(await number(page, 'Failures').innerText());

      await number(page, 'Failures').click();
      await page.waitForURL(/history\?from=24h&status=failed&status=timeout/);
      return n;
    }, 'the failures that are counted');
    ok(true, 'failures are counted, and are the ones that the number leads to');

    await home();
    await card(page, 'By actor').getByRole('link', { name: 'agent:report-bot', exact: true }).click();
    await rows(page).first().waitFor();
    await sees(page.getByText(/^Actor: report-bot$/), 'an actor leads to what it did');

    await leads(page, async () => {
      await home();
      const type = card(page, 'By type').getByRole('listitem').filter({ has: page.getByRole('link', { name: 'file.write', exact: true }) });
      const n = Number((await type.innerText()).match(/(\d+)\s*$/)[1]);

      await type.getByRole('link').click();
      return n;
    }, 'the operations of a type');
    ok(true, 'a type to its operations, as many as were counted');

    await home();
    await card(page, 'Recently active sandboxes').getByRole('link', { name: 'data-cleaning-7', exact: true }).click();
    await page.waitForURL(new RegExp(`sandboxes/${facts.sandbox}/history`));
    ok(true, 'a sandbox, by its name, to its history');

    await home();
    await card(page, 'Recently active sandboxes').getByRole('listitem').filter({ hasText: 'data-cleaning-7' }).getByRole('link', { name: /^\d+ failed/ }).click();
    await page.waitForURL(new RegExp(`sandboxes/${facts.sandbox}/history\\?status=failed&status=timeout`));
    ok(true, 'its failures to them');

    await home();
    await card(page, 'Recorder').getByRole('listitem').or(card(page, 'Recorder').locator('dl > div')).filter({ hasText: 'Lost records' }).getByRole('link').click();
    await page.waitForURL(/history\?type=gateway\.gap/);
    ok(true, 'what is lost to where it is missing');

    await home();
    await card(page, 'Operations over time').getByRole('link', { name: /: [1-9]\d* operations?, / }).last().click();
    await rows(page).first().waitFor();
    ok(/from=.*&to=/.test(page.url()), 'a bar to what happened then');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'an old sandbox that works': async (browser) => {
    const page = await open(browser);
    const box = (name, last) => ({ id: name, name, state: 'Running', image: null, created_at: '2026-01-01T00:00:00Z', expires_at: null,
      last_activity_at: last, operations: 1, failures: 0, running: 0, gaps: 0, history_bytes: 1, history: 'ok', upstream: true });

    // more than one list has; the old one is not among the newest
    await page.route('**/api/v1/sandboxes?*', (route) => route.fulfill({ json: { next: 'x', total: 900, upstream: 'ok', complete: true,
      items: new URL(route.request().url()).searchParams.get('state') === 'Running'
        ? [box('old-and-busy', '2026-06-02T00:00:00Z')] : [box('new-and-idle', '2026-06-01T00:00:00Z')] } }));
    await page.goto(url);
    const links = card(page, 'Recently active sandboxes').getByRole('listitem').getByRole('link');
    await becomes(() => links.allInnerTexts(), ['old-and-busy', 'new-and-idle'], 'is among those that were active, before those that are only new');
    await page.context().close();
  },

  'what cannot be told of the recorder': async (browser) => {
    const page = await open(browser);
    const chip = (name) => page.getByRole('banner').getByRole('link', { name, exact: true });
    const banner = page.getByRole('alert').filter({ hasText: 'The recorder is not available' });
    let answer = { status: 503, json: { code: 'GATEWAY_OVERLOADED', message: 'Too many questions.', details: {} } };

    // the page itself shows what it can: the chip is what this is about
    await page.route('**/api/v1/overview', (route) => route.fulfill(answer));
    await page.goto(`${url}history`);
    await chip('cannot tell').waitFor();
    is(await banner.count(), 0, 'a gateway with too many questions has a recorder that is as well as it was');

    answer = { status: 503, json: { code: 'GATEWAY_RECORDER_UNAVAILABLE', message: 'Away.', details: {} } };
    await page.reload();
    await chip('not recording').waitFor();
    ok(await banner.count() === 1, 'one that is away is called so');

    await page.unroute('**/api/v1/overview');
    await page.route('**/api/v1/overview', (route) => route.abort());
    await page.reload();
    await chip('no connection').waitFor();
    ok(await banner.count() === 0 && await page.getByText(/gateway cannot be reached/).count() > 0, 'a line that is cut is called a line that is cut');
    await page.context().close();
  },

  'what comes late': async (browser) => {
    const page = await open(browser);
    const bars = card(page, 'Operations over time');
    let give;
    const wanted = new Promise((done) => { give = done; });

    await page.route(/\/api\/v1\/operations\?.*\bbuckets=/, (route) => wanted.then(() => route.continue()));
    await page.goto(url);
    await card(page, 'By type').getByRole('link', { name: 'file.write', exact: true }).waitFor();
    await sees(bars.locator('.shimmer').first(), 'bars that are on their way are seen to be');
    give();
    await bars.getByRole('link').first().waitFor();
    is(await bars.locator('.shimmer').count(), 0, 'and then they are there');
    await page.context().close();
  },

  'nothing yet': async (browser) => {
    const page = await open(browser);

    await changed(page, (o) => {
      o.counts.total = 0;
      o.running = { items: [], count: 0, exact: true };
    });
    await page.goto(url);
    await page.getByText('Nothing has been recorded in this time').waitFor();
    const { host } = new URL(url);
    await sees(page.getByText(`domain="${host}"`).first(), 'an empty page has the lines that bring something, with the address of this gateway');
    await page.getByRole('tab', { name: 'curl' }).click();
    await sees(page.getByText(`http://${host}/v1/sandboxes`).first(), 'in the way that one likes');
    ok(!(await page.locator('main').innerText()).includes('sbx_'), 'and no token in it');
    await page.context().close();
  },

  'a list that lacks something': async (browser) => {
    const page = await open(browser);
    let asked = 0;

    await page.route('**/api/v1/sandboxes?*', async (route) => {
      asked++;
      await route.fulfill({ json: { items: [], next: null, total: 0, upstream: 'partial', complete: false } });
    });
    await page.goto(`${url}sandboxes/${facts.sandbox}/commands`);
    await page.getByRole('textbox', { name: 'Command', exact: true }).fill('echo typed');
    await until(() => asked > 2, 'a list that was asked for again');
    is(await page.getByRole('textbox', { name: 'Command', exact: true }).inputValue(), 'echo typed', 'a page stays, with what was typed, when a list lacks its sandbox for a moment');
    await page.context().close();
  },

  'a recorder that is behind, a history with gaps': async (browser) => {
    const page = await open(browser);

    await changed(page, (o) => { o.recorder.status = 'degraded'; });
    await page.goto(`${url}sandboxes`);
    await sees(page.getByRole('alert').getByText(/The recorder is behind/), 'every page says that the recorder is behind');
    await page.unrouteAll();

    let newest = 'gap-1';
    const banner = page.getByText('Not everything is on record', { exact: false });

    await changed(page, (o) => { o.gaps = { ...o.gaps, count: 3, items: [{ ...o.running.items[0], id: newest, type: 'gateway.gap' }] }; });
    await page.goto(`${url}sandboxes`);
    await banner.waitFor();
    await page.getByRole('status').filter({ has: banner }).getByRole('button', { name: 'Close' }).click();
    await page.reload();
    await settled(page);
    is(await banner.count(), 0, 'who has seen that there are gaps is not told again');
    newest = 'gap-2';
    await page.reload();
    await sees(banner, 'until there is another one');
    await page.getByRole('link', { name: 'Show', exact: true }).click();
    await page.waitForURL(/gateway\.gap/);
    await banner.waitFor({ state: 'detached' });
    ok(true, 'looking at them is seeing them');
    await page.unrouteAll();

    await page.route('**/api/v1/sandboxes?*', async (route) => {
      const answer = await (await route.fetch()).json();

      answer.items.forEach((s) => { s.gaps = 2; });
      await route.fulfill({ json: answer });
    });
    await page.goto(`${url}sandboxes/${facts.sandbox}/commands`);
    await sees(page.getByRole('alert').getByText(/This history has 2 gaps/), 'a sandbox says that its history has gaps');
    await page.getByRole('link', { name: 'Show them' }).click();
    await page.waitForURL(/history\?type=gateway\.gap/);
    ok(true, 'and leads to them');
    await page.context().close();
  },
});

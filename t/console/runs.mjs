import { becomes, facts, is, ok, open, run, sees, shot, url } from './lib/browser.mjs';

const rows = (page) => page.getByRole('row').filter({ has: page.getByRole('cell') });

/** One answer after the other, as the API would page them. */
async function pretend(page, pages) {
  await page.route('**/api/v1/operations?*', (route) => {
    const before = Number(new URL(route.request().url()).searchParams.get('before') ?? 0);
    const n = before === 0 ? 0 : pages.findIndex((p) => p.at(-1).cursor === before) + 1;

    return route.fulfill({ json: { items: pages[n], gaps: [], complete: true, previous: null,
      next: n + 1 < pages.length ? pages[n].at(-1).cursor : null } });
  });
}

const operation = (cursor, run, more = {}) => ({
  seq: cursor, cursor, id: `id-${cursor}`, sandbox_id: 's1', source: 'sdk', type: 'command.execute', status: 'succeeded',
  started_at: new Date(1.7e12 + cursor * 1000).toISOString(), completed_at: null, duration_ms: 1, summary: 'x',
  actor: { type: 'agent', id: 'bot', thread: null, run, correlation: null, parent: null, identity: null }, ...more,
});

await run({
  'runs': async (browser) => {
    const page = await open(browser);

    await page.goto(url);
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('link', { name: 'nightly-31', exact: true }).waitFor();
    is(await page.getByRole('link', { name: 'Runs', exact: true }).getAttribute('aria-current'), 'page', 'runs have a place in the navigation');

    const told = await (await fetch(new URL('api/v1/operations?run=nightly-32&limit=500', url), {
      headers: { Authorization: `Bearer ${process.env.CONSOLE_TOKEN}` } })).json();
    const one = rows(page).filter({ hasText: 'nightly-32' });
    is(await one.getByRole('cell').nth(5).innerText(), String(told.items.length), 'each says how much was done in it');
    await sees(one.getByText('cleaner'), 'and by whom');

    await page.keyboard.press('/');
    await page.keyboard.type('WEEKLY');
    await page.waitForURL(/q=WEEKLY/);
    await becomes(() => rows(page).count(), 1, 'a run is searched for');
    await page.getByLabel('Search runs').fill('no-such-run');
    await page.getByText('No run matches').waitFor();
    await page.getByRole('button', { name: 'Clear the search' }).click();
    await page.getByRole('link', { name: /failure of nightly-31/ }).click();
    await page.waitForURL(/runs\/nightly-31\?status=failed/);
    await page.getByRole('option').filter({ hasText: '014_orders' }).waitFor();
    ok(true, 'its failures are a link to them');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'further back': async (browser) => {
    const page = await open(browser);

    await pretend(page, [
      [operation(9, 'b', { status: 'failed' }), operation(8, null), operation(7, 'a', { status: 'started' })],
      [operation(6, 'b'), operation(5, 'c', { sandbox_id: 's2' })],
    ]);
    await page.goto(`${url}runs`);
    await rows(page).first().waitFor();
    is(await rows(page).evaluateAll((all) => all.map((r) => r.cells[0].innerText.split('\n')[0])), ['b', 'a'], 'the one that did something last is the first');
    await sees(rows(page).nth(1).getByText('running'), 'one that runs says so');
    is(await rows(page).first().getByRole('cell').nth(5).innerText(), '1+', 'what may be more says so');
    await page.getByRole('button', { name: 'Look further back' }).click();
    await page.getByRole('link', { name: 'c', exact: true }).waitFor();
    is(await rows(page).first().getByRole('cell').nth(5).innerText(), '2', 'and is counted when it was looked at');
    is(await page.getByRole('button', { name: 'Look further back' }).count(), 0, 'to the end');
    await page.context().close();
  },

  'behind many others': async (browser) => {
    const page = await open(browser);
    const pages = Array.from({ length: 14 }, (_, i) => [operation(14 - i, i === 13 ? 'last-night' : null)]);

    await pretend(page, pages);
    await page.goto(`${url}runs`);
    await page.getByText('No run among the newest 10 records').waitFor();
    is(await page.getByText('No run is on record yet').count(), 0, 'that there is none is not said before all was looked at');
    await page.getByRole('button', { name: 'Look further back' }).click();
    await sees(page.getByRole('link', { name: 'last-night', exact: true }), 'one press further back is more than a page');

    await page.goto(`${url}runs?q=of-last-year`);
    await page.getByText('No run matches among the newest 10 records').waitFor();
    await page.getByRole('link', { name: 'Open run “of-last-year”' }).click();
    await page.waitForURL(/\/runs\/of-last-year$/);
    ok(true, 'a run whose name is known can be opened at once');
    await page.context().close();
  },

  'none': async (browser) => {
    const page = await open(browser);

    await pretend(page, [[operation(1, null)]]);
    await page.goto(`${url}runs`);
    await page.getByText('No run is on record yet').waitFor();
    await sees(page.getByText('X-Run-Id: '), 'an empty page says what brings a run');
    await shot(page, 'none');
    is(facts.sandbox.length > 0, true, 'although there are operations');
    await page.context().close();
  },
});

import { facts, is, live, looks, ok, open, run, sees, shot, token, until, url } from './lib/browser.mjs';

const leases = `${facts.origin}/console/api/v1/sandboxes/${facts.sandbox}/leases`;
const headers = { 'OPEN-SANDBOX-API-KEY': token, 'Content-Type': 'application/json' };

const lease = async (owner, path, more = {}) => {
  const r = await fetch(leases, { method: 'POST', headers,
    body: JSON.stringify({ keys: [{ path, mode: 'write' }], ttl_ms: 3_600_000, owner, ...more }) });
  return { status: r.status, ...await r.json() };
};

const give = (id) => fetch(`${leases}/${id}`, { method: 'DELETE', headers });
const lists = (page) => page.seen.calls.filter((c) => /^GET .*\/locks$/.test(c) && c.includes('/api/')).length;
const held = (page) => page.locator('[data-lock="held"]');
const waits = (page) => page.locator('[data-lock="waiting"], [data-lock="queued"]');

await run({
  'who holds and who waits': async (browser) => {
    const page = await open(browser);

    await page.clock.install();
    await page.goto(`${url}sandboxes/${facts.sandbox}/locks`);
    await page.getByText('Nobody holds anything').waitFor();
    ok(true, 'nothing held is said');

    // told by the stream, not asked for again and again
    await live(page);
    await until(() => lists(page) > 1, 'the list as it was when the stream had begun');
    const before = lists(page);
    await page.clock.runFor(20_000);
    is(lists(page), before, 'while nothing happens nothing is asked for');

    const first = await lease('build 7', '/workspace/app');
    is(first.status, 201, 'a lease is taken');
    await held(page).getByText('/workspace/app').waitFor();
    await sees(held(page).getByText(/^Lease \d+/), 'it appears by itself, as what it is');
    await sees(held(page).getByText('write', { exact: true }), 'with its path and mode');

    // who has waited for too long waits again, however long the pictures take
    const second = (async () => {
      for (;;) {
        const answer = await lease('build 8', '/workspace/app/src', { timeout_ms: 30_000 });
        if (answer.status !== 423) {
          return answer;
        }
      }
    })();
    await waits(page).getByText('/workspace/app/src').waitFor();
    ok(true, 'who waits for it appears too');

    await looks(page, 'locks');

    await held(page).getByRole('button', { name: 'Break' }).click();
    const dialog = page.getByRole('dialog');
    await sees(dialog.getByText(/requests with its token are refused/), 'breaking asks, and says what it means');
    await shot(page, 'ask');
    await dialog.getByRole('button', { name: 'Break' }).click();
    await page.getByText('It is taken away.').waitFor();

    const taken = await second;
    is(taken.status, 201, 'who waited has it then');
    await held(page).getByText('/workspace/app/src').waitFor();
    is(await held(page).count(), 1, 'and the other one has not');
    await give(taken.id);
    await page.getByText('Nobody holds anything').waitFor();

    // the line is cut: what changed meanwhile is had with one question
    await page.context().setOffline(true);
    const third = await lease('build 9', '/workspace/lib');
    const cut = lists(page);
    await page.context().setOffline(false);
    await page.clock.runFor(5_000);
    await held(page).getByText('/workspace/lib').waitFor();
    ok(lists(page) > cut, 'a page that was cut off asks once it is back');
    await give(third.id);
    await page.getByText('Nobody holds anything').waitFor();
    is(page.seen.errors.filter((e) => !/ERR_INTERNET_DISCONNECTED/.test(e)), [], 'no error in the browser');
    await page.context().close();
  },
});

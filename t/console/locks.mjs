import { facts, is, looks, ok, open, run, sees, shot, token, url } from './lib/browser.mjs';

const leases = `${facts.origin}/console/api/v1/sandboxes/${facts.sandbox}/leases`;
const headers = { 'OPEN-SANDBOX-API-KEY': token, 'Content-Type': 'application/json' };

const lease = async (owner, path, more = {}) => {
  const r = await fetch(leases, { method: 'POST', headers,
    body: JSON.stringify({ keys: [{ path, mode: 'write' }], ttl_ms: 120_000, owner, ...more }) });
  return { status: r.status, ...await r.json() };
};

const give = (id) => fetch(`${leases}/${id}`, { method: 'DELETE', headers });
const held = (page) => page.locator('[data-lock="held"]');
const waits = (page) => page.locator('[data-lock="waiting"], [data-lock="queued"]');

await run({
  'who holds and who waits': async (browser) => {
    const page = await open(browser);

    await page.goto(`${url}sandboxes/${facts.sandbox}/locks`);
    await page.getByText('Nobody holds anything').waitFor();
    ok(true, 'nothing held is said');

    const first = await lease('build 7', '/workspace/app');
    is(first.status, 201, 'a lease is taken');
    await held(page).getByText('/workspace/app').waitFor();
    await sees(held(page).getByText(/^Lease \d+/), 'it appears by itself, as what it is');
    await sees(held(page).getByText('write', { exact: true }), 'with its path and mode');

    const second = lease('build 8', '/workspace/app/src', { timeout_ms: 30_000 });
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
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },
});

import { becomes, facts, is, looks, ok, open, run, sees, settled, shot, token, url, WIDTHS } from './lib/browser.mjs';

const tokens = `${facts.origin}/console/api/v1/tokens`;
const row = (page, id) => page.locator(`[data-token="${id}"]`);
const panel = (page) => page.getByRole('region', { name: 'The token is made.' });
const secret = (page) => page.getByRole('region', { name: 'The new token' });

const status = async (by, method = 'GET', at = tokens) => (await fetch(at, {
  method, headers: { 'OPEN-SANDBOX-API-KEY': by } })).status;

await run({
  'made, used, revoked': async (browser) => {
    const page = await open(browser);

    await page.goto(url);
    await page.getByRole('link', { name: 'Tokens', exact: true }).click();
    await page.locator('[data-token]').first().waitFor();
    is(await page.locator('[data-token]').count(), 1, 'the token of the start is listed');
    await sees(page.locator('[data-token]').getByText('this one'), 'as the one that asks');

    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Actor\'s type').fill('agent');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await sees(dialog.getByText('A name without spaces; a type needs one.'), 'a type alone is no actor');
    await dialog.getByLabel('Actor', { exact: true }).fill('ci-bot');
    await dialog.getByLabel('Expires').selectOption('other');
    await dialog.getByLabel('Days').fill('0');
    await sees(dialog.getByText('A whole number from 1 to 3,650.'), 'no days are no time');
    await dialog.getByLabel('Days').fill('14');
    await dialog.getByLabel('Sandboxes').fill('no/such');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await dialog.getByText(/The sandboxes are a list of ids/).waitFor();
    ok(true, 'what the gateway does not take, it says why');
    await looks(page, 'make');

    await dialog.getByLabel('Sandboxes').fill('build-*\ns1');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await panel(page).waitFor();
    const made = (await secret(page).innerText()).trim();
    const id = made.split('_')[1];
    ok(/^sbx_[a-z0-9]+_[\w-]{43}$/.test(made), 'the token is shown');
    await sees(panel(page).getByText(/shown this once/), 'with a warning');
    await row(page, id).waitFor();
    await sees(row(page, id).getByText('agent/ci-bot').last(), 'it is listed, with its actor');
    await sees(row(page, id).getByText('build-*, s1').last(), 'and its sandboxes');
    const ends = await row(page, id).locator('td:nth-child(6) time').getAttribute('datetime');
    ok(Math.abs(Date.parse(ends) - Date.now() - 14 * 86_400_000) < 300_000, 'and when it expires', ends);
    is(await status(made), 403, 'the gateway knows it, as no admin');
    await looks(page, 'made');

    await page.setViewportSize({ width: 390, height: WIDTHS[390] });
    const copy = panel(page).getByRole('button', { name: 'Copy', exact: true });
    const { x, width } = await copy.boundingBox();
    ok(x + width <= 390, 'on a phone the button that copies is in sight', x, width);
    await page.setViewportSize({ width: 1440, height: WIDTHS[1440] });

    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await copy.click();
    await panel(page).getByText('Copied', { exact: true }).waitFor({ state: 'attached' });
    is(await page.evaluate(() => navigator.clipboard.readText()), made, 'it can be copied');
    await panel(page).getByRole('button', { name: 'I have copied it' }).click();
    ok(!(await page.content()).includes(made), 'then it is gone from the page');

    await row(page, id).getByRole('button', { name: `Revoke ${id}` }).click();
    await sees(dialog.getByText(/cannot be undone/), 'revoking asks');
    await shot(page, 'ask');
    is(await status(made), 403, 'and does nothing before');
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
    await row(page, id).waitFor({ state: 'detached' });
    is(await status(made), 401, 'a revoked one is none');
    is(page.seen.errors.filter((e) => !/\b400\b.*\/tokens$/.test(e)), [], 'no error in the browser');
    await page.context().close();
  },

  'search': async (browser) => {
    const page = await open(browser);
    const make = (o) => fetch(tokens, { method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': token, 'Content-Type': 'application/json' },
      body: JSON.stringify(o) }).then((r) => r.json());
    const viewer = await make({ role: 'viewer', actor: { type: 'human', id: 'auditor' }, sandboxes: ['build-*'] });
    const other = await make({ role: 'operator', actor: { id: 'nightly' } });
    const field = page.getByLabel('Search ids, roles, actors and sandboxes');
    const shown = () => page.locator('[data-token]').evaluateAll((all) => all.map((e) => e.dataset.token));
    const finds = async (q, wanted, name) => {
      await field.fill(q);
      await page.waitForURL((u) => (u.searchParams.get('q') ?? '') === q);
      await becomes(shown, [wanted], name);
    };

    await page.goto(`${url}tokens`);
    await row(page, other.id).waitFor();
    await page.keyboard.press('/');
    ok(await field.evaluate((e) => e === document.activeElement), '/ leads to the field');
    await finds('AUDIT', viewer.id, 'a token is found by its actor');
    await finds('operator', other.id, 'by its role');
    await finds('build-', viewer.id, 'by its sandboxes');
    await finds(other.id, other.id, 'and by its id');
    await page.reload();
    await row(page, other.id).waitFor();
    is(await shown(), [other.id], 'what is sought stands in the address');
    await field.fill('nobody-has-this');
    await page.getByText('No token matches').waitFor();
    await page.getByRole('button', { name: 'Clear the search' }).click();
    await row(page, viewer.id).waitFor();
    ok(true, 'nothing found is said, with the way back');

    for (const one of [viewer, other]) {
      await fetch(`${tokens}/${one.id}`, { method: 'DELETE', headers: { 'OPEN-SANDBOX-API-KEY': token } });
    }
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'the last admin': async (browser) => {
    const page = await open(browser);

    await page.goto(`${url}tokens`);
    await page.locator('[data-token]').getByRole('button').click();
    const dialog = page.getByRole('dialog');
    await sees(dialog.getByText(/You are signed in with this token/), 'one\'s own token is named as such');
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
    await dialog.getByText(/Nobody would be left/).waitFor();
    ok(true, 'the last admin\'s stays, and why is said');
    await shot(page, 'last-admin');
    await page.context().close();
  },

  'where tokens are not written': async (browser) => {
    const page = await open(browser, { language: 'zh-CN' });
    const why = 'Use sandbox-gateway token add.';

    await page.route(tokens, (route) => (route.request().method() === 'GET' ? route.continue()
      : route.fulfill({ status: 501, json: { code: 'GATEWAY_UNSUPPORTED', message: why } })));
    await page.goto(`${url}tokens`);
    await settled(page);
    await page.getByRole('button', { name: '新建令牌' }).click();
    await page.getByRole('button', { name: '创建', exact: true }).click();
    await page.getByRole('alert').getByText(why).waitFor();
    ok(true, 'what the gateway says is shown');
    await shot(page, 'unsupported-zh-CN');
    await page.context().close();
  },
});

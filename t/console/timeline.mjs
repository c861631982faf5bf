import { facts, is, ok, open, run, settled, shot, signIn, url, token } from './lib/browser.mjs';

const history = (id) => `${url}sandboxes/${id}/history`;
const rows = (page) => page.getByRole('option');

/** A command of an agent's, while the page is open. */
const command = async (id, text) => (await fetch(new URL(`../v1/sandboxes/${id}/proxy/44772/command`, url), {
  method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': token, 'X-Actor-Id': 'live-bot' },
  body: JSON.stringify({ command: text }),
})).text();

await run({
  'what failed, and why': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox));
    await signIn(page);
    await page.getByText('error: relation "orders" already exists', { exact: true }).first().waitFor();
    ok(true, 'a failure shows its last line of stderr without a click');

    await page.getByRole('button', { name: 'Status' }).click();
    await page.getByRole('menuitemcheckbox', { name: /Failed/ }).click();
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
    ok(true, 'which leads back to it');
    await page.context().close();
  },

  'live': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.other));
    await signIn(page);
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
    await command(facts.other, 'echo first-live');
    await rows(page).filter({ hasText: 'echo first-live' }).getByText('OK').waitFor();
    ok(true, 'what happens appears by itself, with its end');

    await page.context().setOffline(true);
    await page.getByRole('button', { name: /Reconnecting|Connecting/ }).waitFor();
    await command(facts.other, 'echo while-away');
    await page.context().setOffline(false);
    await rows(page).filter({ hasText: 'echo while-away' }).waitFor();
    is(await rows(page).filter({ hasText: 'echo while-away' }).count(), 1, 'a line that was cut misses nothing, and has nothing twice');

    process.kill(facts.gateway, 'SIGHUP');
    await page.waitForTimeout(1_000);
    await command(facts.other, 'echo after-reload');
    await rows(page).filter({ hasText: 'echo after-reload' }).getByText('OK').waitFor();
    is(await rows(page).filter({ hasText: 'echo after-reload' }).count(), 1, 'a reload of nginx neither');
    await page.context().close();
  },

  'by keyboard': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.sandbox));
    await signIn(page);
    await rows(page).first().waitFor();
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    is(await rows(page).nth(1).getAttribute('aria-selected'), 'true', 'j moves');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Record' }).waitFor();
    ok(true, 'Enter opens');
    await page.keyboard.press('Escape');
    await page.getByRole('region', { name: 'Record' }).waitFor({ state: 'detached' });
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

  'C129 C130 hostile text': async (browser) => {
    const page = await open(browser);

    await page.goto(history(facts.other));
    await signIn(page);
    await settled(page);
    ok(await page.getByText("<script>document.title=1</script>", { exact: false }).first().isVisible(), 'markup is text');
    ok(await page.getByText('<b>bold</b>').first().isVisible(), 'in an actor too');
    await rows(page).filter({ hasText: 'printf %s' }).click();
    await page.getByText('onerror=alert(1)', { exact: false }).last().waitFor();
    const said = await page.getByRole('region', { name: 'stdout' }).innerText();
    ok(said.includes('U+202E') && said.includes('ESC]52'), 'what would act is a sign', said);
    await shot(page, 'hostile');
    is(await page.evaluate(() => document.querySelectorAll('img:not([src="icon.svg"])').length), 0, 'and makes nothing');
    is(page.seen.errors.filter((e) => /Content.Security/i.test(e)), [], 'CSP has nothing to say');
    await page.context().close();
  },
});

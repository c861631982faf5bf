import { is, inAll, looks, ok, open, run, sees, settled, shot, url } from './lib/browser.mjs';

const verdict = (page) => page.getByRole('region', { name: 'Would this be allowed?' }).getByRole('status');

await run({
  'rules with their lines': async (browser) => {
    const page = await open(browser);

    await page.goto(url);
    await page.getByRole('link', { name: 'Policy', exact: true }).click();
    await page.locator('[data-rule="secrets"]').first().waitFor();

    const rule = page.locator('[data-rule="secrets"]').first();
    await sees(rule.getByText('Deny', { exact: true }), 'a rule says what it does');
    ok(/^line \d+$/.test(await rule.getByText(/^line \d+$/).innerText()), 'and in which line it stands');
    ok((await rule.locator('pre').last().innerText()).includes('id_ed25519'), 'with its text');
    await sees(page.locator('[data-rule="default"]').first(), 'the default is the last one');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'would this be allowed': async (browser) => {
    const page = await open(browser);

    await page.goto(`${url}policy`);
    await page.getByLabel('Operation').fill('file.write');
    await page.getByLabel('Paths').fill('/workspace/a.txt\n/workspace/.env');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await verdict(page).getByText('Denied', { exact: true }).first().waitFor();
    await sees(verdict(page).getByText('/workspace/.env').first(), 'a path that is denied is named');
    await sees(page.locator('[data-rule="secrets"]').first().getByText('Decides'), 'the rule that decides is marked');
    await shot(page, 'denied');

    await verdict(page).getByRole('button', { name: /secrets/ }).first().click();
    ok(await page.evaluate(() => document.activeElement.dataset.rule === 'secrets'), 'and the answer leads to it');

    await page.reload();
    await page.getByLabel('Operation').waitFor();
    is(await page.getByLabel('Operation').inputValue(), 'file.write', 'the question stands in the address');
    await page.getByLabel('Paths').fill('/workspace/a.txt');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await verdict(page).getByText('Allowed', { exact: true }).first().waitFor();
    ok(true, 'another path is allowed');

    await page.getByRole('button', { name: 'More to say of it' }).click();
    await page.getByLabel('Mode').fill('9');
    await sees(page.getByText('Up to four octal digits.'), 'what is no mode is said');
    await page.getByLabel('Mode').fill('4755');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await verdict(page).getByRole('button', { name: /set-id/ }).first().waitFor();
    ok(true, 'a mode counts');

    await page.getByLabel('Mode').fill('');
    await page.getByLabel('Found in the archive').fill('links, escapes');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await verdict(page).getByRole('button', { name: /unsafe-archive/ }).first().waitFor();
    ok(true, 'what is in an archive counts');
    await page.reload();
    await page.getByLabel('Found in the archive').waitFor();
    is(await page.getByLabel('Found in the archive').inputValue(), 'links, escapes', 'and stands in the address');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },
}, inAll(async (page) => {
  await page.goto(`${url}policy?operation=file.write&path=%2Fetc%2Fpasswd`);
  await settled(page);
  await page.getByRole('button', { name: /^(Ask|查询)$/ }).click();
  await page.getByText(/^(Decides|由此决定)$/).first().waitFor();
  await looks(page, 'answer');
}));

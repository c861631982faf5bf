import { facts, is, inAll, looks, ok, open, run, sees, settled, shot, until, url } from './lib/browser.mjs';

const dialog = (page) => page.getByRole('dialog');
const said = (page, text) => page.getByRole('status').getByText(text).first().waitFor();

async function at(browser, where, options) {
  const page = await open(browser, options);

  await page.goto(url + where);
  await settled(page);
  return page;
}

const more = async (page, item) => {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: item }).click();
};

const names = (page) => page.locator('tbody tr td:first-child a').allInnerTexts();
const search = (page) => page.getByLabel('Search by name, id or image', { exact: true });

await run({
  'found': async (browser) => {
    const page = await at(browser, 'sandboxes');
    const only = (...wanted) => until(async () => JSON.stringify((await names(page)).sort()) === JSON.stringify(wanted.sort()), `only ${wanted}`)
      .then(() => true, () => false);

    await page.keyboard.press('/');
    await page.keyboard.type('REPORT');
    ok(await only('report-builder'), 'a sandbox is found by a part of its name');
    ok(page.url().endsWith('q=REPORT'), 'which stands in the address');
    await search(page).fill('node:22');
    ok(await only('old-experiment'), 'by its image');
    await search(page).fill(facts.sandbox.slice(0, 18));
    ok(await only('data-cleaning-7'), 'by its id');
    await search(page).fill('no-such-sandbox');
    await page.getByText('No sandbox matches').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    ok(await only('data-cleaning-7', 'old-experiment', 'report-builder'), 'deleted ones are in the list too');

    await page.getByLabel('State', { exact: true }).selectOption('Deleted');
    ok(await only('old-experiment'), 'a state is a filter');
    ok(page.url().endsWith('state=Deleted'), 'in the address');
    await page.getByRole('link', { name: 'old-experiment' }).click();
    await page.getByRole('option').filter({ hasText: 'echo before-it-went' }).waitFor();
    await page.getByRole('option').filter({ hasText: 'sandbox.delete' }).waitFor();
    ok(true, 'and one that is deleted has its history');
    await page.goBack();
    await page.getByLabel('State', { exact: true }).selectOption('Running');
    ok(await only('data-cleaning-7', 'report-builder'), 'those that run');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'created': async (browser) => {
    const page = await at(browser, 'sandboxes');

    await page.getByRole('button', { name: 'New sandbox' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).waitFor();
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await dialog(page).getByText('Name an image, such as python:3.11.').waitFor();
    ok(true, 'what lacks is said');

    await dialog(page).getByLabel('Name', { exact: true }).fill('made by hand');
    await dialog(page).getByText(/Up to 63 letters/).waitFor();
    ok(true, 'so is a name that is none');
    await dialog(page).getByLabel('Name', { exact: true }).fill('made-by-hand');
    await dialog(page).getByLabel('Image', { exact: true }).fill('python:3.11');
    await dialog(page).getByLabel('Environment').fill('GREETING=hello there');
    await dialog(page).getByLabel('Metadata').fill('team=data\nstage=try');
    await dialog(page).getByLabel('Lives for, minutes').fill('30');

    let sent = null;
    page.on('request', (r) => {
      if (r.method() === 'POST' && r.url().endsWith('/v1/sandboxes')) sent = r.postDataJSON();
    });
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await page.waitForURL(/\/sandboxes\/[0-9a-f-]{36}\/history/);
    is(sent, {
      image: { uri: 'python:3.11' }, entrypoint: ['tail', '-f', '/dev/null'], env: { GREETING: 'hello there' },
      resourceLimits: { cpu: '500m', memory: '512Mi' }, timeout: 1800,
      metadata: { team: 'data', stage: 'try', 'agent_sandbox.name': 'made-by-hand' },
    }, 'it is asked for as the fields say');
    await page.getByRole('heading', { name: 'made-by-hand' }).waitFor();
    ok(true, 'and is there, by its name');

    await page.goto(`${url}sandboxes`);
    await page.getByLabel('Filter by metadata').fill('team=data stage=try');
    await page.getByLabel('Filter by metadata').press('Enter');
    await page.getByText('1 sandbox', { exact: true }).waitFor();
    is(await page.getByRole('row').filter({ hasText: 'made-by-hand' }).count(), 1, 'metadata find it');
    is(await page.getByRole('row').filter({ hasText: 'report-builder' }).count(), 0, 'and no other');
    ok(page.url().includes('metadata=team'), 'which stands in the address');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'network': async (browser) => {
    const page = await at(browser, 'sandboxes');
    let sent = null;

    await page.route('**/v1/sandboxes', (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      sent = route.request().postDataJSON();
      return route.fulfill({ status: 400, json: { code: 'SANDBOX::INVALID_PARAMETER', message: 'not here' } });
    });
    await page.getByRole('button', { name: 'New sandbox' }).click();
    await dialog(page).getByLabel('Image', { exact: true }).fill('python:3.11');
    await dialog(page).getByLabel('Network').selectOption('deny');
    await dialog(page).getByLabel('Allowed', { exact: true }).fill('pypi.org\n*.example.com');
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await dialog(page).getByText(/not here/).waitFor();
    is(sent.networkPolicy, { defaultAction: 'deny', egress: [
      { action: 'allow', target: 'pypi.org' }, { action: 'allow', target: '*.example.com' }] }, 'a network policy goes along');
    await sees(dialog(page).getByLabel('Image', { exact: true }), 'a refusal is told, and nothing typed is lost');
    await page.context().close();
  },

  'paused, resumed, renewed': async (browser) => {
    const page = await at(browser, `sandboxes/${facts.other}/overview`);

    await page.getByRole('button', { name: 'Pause' }).click();
    await said(page, 'The sandbox is paused.');
    await page.getByText('Paused', { exact: true }).first().waitFor();
    ok(true, 'paused, and seen to be');
    await page.getByRole('button', { name: 'Resume' }).click();
    await said(page, 'The sandbox runs again.');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    ok(true, 'resumed');

    await page.getByRole('button', { name: 'Renew' }).click();
    is(await page.getByRole('menuitem').allInnerTexts(), ['1h', '8h', '24h', '7d'], 'for a time without what is nothing of it');
    await page.getByRole('menuitem').nth(1).click();
    await said(page, /The sandbox lives until/);
    await page.getByText(/in (?:7|8) hr\./).first().waitFor();
    ok(true, 'renewed, and the page says until when');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'snapshot and back': async (browser) => {
    const page = await at(browser, `sandboxes/${facts.sandbox}/overview`);

    await more(page, 'Snapshots');
    await dialog(page).getByText('There are no snapshots of this sandbox yet.').waitFor();
    await dialog(page).getByLabel('Name of the snapshot (optional)').fill('before the change');
    await dialog(page).getByRole('button', { name: 'Take' }).click();
    await dialog(page).getByText('Ready', { exact: true }).waitFor();
    await sees(dialog(page).getByText('before the change'), 'a snapshot is made, and seen to be ready');
    await shot(page, 'snapshots');

    await dialog(page).getByRole('button', { name: 'Roll back' }).click();
    await dialog(page).getByText(/data-cleaning-7 is paused once it runs/).waitFor();
    is(await dialog(page).getByLabel('Name', { exact: true }).inputValue(), 'data-cleaning-7', 'going back keeps the name');
    await shot(page, 'back');
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await page.waitForURL((u) => /\/sandboxes\/[0-9a-f-]{36}\/history/.test(u.href) && !u.href.includes(facts.sandbox));
    ok(true, 'and leads to the new sandbox');

    await page.goto(`${url}sandboxes/${facts.sandbox}/overview`);
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    ok(true, 'the old one is paused');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'back, and the old one does not pause': async (browser) => {
    const page = await at(browser, `sandboxes/${facts.other}/overview`);
    let made = 0;

    await page.route('**/v1/sandboxes', (route) => {
      made += route.request().method() === 'POST' ? 1 : 0;
      return route.continue();
    });
    await page.route('**/pause', (route) => route.fulfill({ status: 503, json: { code: 'GATEWAY_OVERLOADED', message: '', details: {} } }));
    await more(page, 'Snapshots');
    await dialog(page).getByRole('button', { name: 'Take' }).click();
    await dialog(page).getByText('Ready', { exact: true }).waitFor();
    await dialog(page).getByRole('button', { name: 'Roll back' }).click();
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await page.waitForURL((u) => /\/sandboxes\/[0-9a-f-]{36}\/history/.test(u.href) && !u.href.includes(facts.other));
    await sees(page.getByRole('alert').or(page.getByRole('status')).filter({ hasText: /busy|overloaded|too much/i }).first(), 'that the old one was not paused is said');
    is(made, 1, 'and the new one is made once');
    await page.context().close();
  },

  'a name that cannot be typed': async (browser) => {
    const page = await open(browser);

    await page.route('**/api/v1/sandboxes?*', async (route) => {
      const answer = await (await route.fetch()).json();

      answer.items.forEach((s) => { s.name = '\u202egnp.exe'; });
      await route.fulfill({ json: answer });
    });
    await page.goto(`${url}sandboxes/${facts.other}/overview`);
    await more(page, 'Delete');
    ok(!(await page.getByRole('dialog').innerText()).includes('\u202e') && !(await page.title()).includes('\u202e'), 'nothing of it turns the direction');
    await dialog(page).getByRole('textbox').fill(facts.other);
    ok(await dialog(page).getByRole('button', { name: 'Delete' }).isEnabled(), 'its id is typed in its place');
    await page.context().close();
  },

  'a short id among many': async (browser) => {
    const page = await open(browser);

    await page.route('**/api/v1/sandboxes?*', async (route) => {
      const to = new URL(route.request().url());
      const later = to.searchParams.has('after');

      to.searchParams.delete('after');

      const answer = await (await route.fetch({ url: to.href })).json();

      await route.fulfill({ json: later ? answer : { ...answer, items: [], next: 'others' } });
    });
    await page.goto(`${url}sandboxes/${facts.other}/overview`);
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: facts.other }).waitFor();
    is(await page.getByText('There is no such sandbox').count(), 0, 'it is found behind the others');
    await page.context().close();
  },

  'a port': async (browser) => {
    const page = await at(browser, `sandboxes/${facts.other}/overview`);

    await more(page, 'Open a port');
    await dialog(page).getByLabel('Port').fill('70000');
    await dialog(page).getByText('A number from 1 to 65535.').waitFor();
    await dialog(page).getByLabel('Port').fill('8123');

    const [request] = await Promise.all([
      page.context().waitForEvent('request', (r) => r.isNavigationRequest() && !r.url().startsWith(url)),
      dialog(page).getByRole('button', { name: 'Open', exact: true }).click(),
    ]);
    ok(new URL(request.url()).origin !== new URL(url).origin, 'a port opens in a tab, at an origin of its own', request.url());
    await dialog(page).waitFor({ state: 'hidden' });
    is(page.url().includes(facts.other), true, 'the page stays');

    await more(page, 'Open a port');
    await dialog(page).getByLabel('Port').fill('44772');
    await dialog(page).getByRole('button', { name: 'Open', exact: true }).click();
    await dialog(page).getByRole('alert').waitFor();
    ok(true, 'execd is no such port, which is told');
    await page.context().close();
  },

  'deleted, by name': async (browser) => {
    const page = await at(browser, `sandboxes/${facts.other}/overview`);

    await more(page, 'Delete');
    ok(await dialog(page).getByRole('button', { name: 'Delete' }).isDisabled(), 'deleting asks for the name');
    await dialog(page).getByLabel(/report-builder/).fill('report-builder');
    await shot(page, 'delete');
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await said(page, 'The sandbox is deleted; its history stays.');
    await page.getByText('Deleted', { exact: true }).first().waitFor();
    is(await page.getByRole('button', { name: 'More actions' }).count(), 0, 'then there is nothing to do with it');
    await page.getByRole('link', { name: 'History', exact: true }).last().click();
    await page.getByText('sandbox.delete').first().waitFor();
    ok(true, 'but to read its history');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },
}, inAll(async (page) => {
  await page.goto(`${url}sandboxes`);
  await page.getByRole('button', { name: /^(New sandbox|新建沙箱)$/ }).click();
  await dialog(page).waitFor();
  await settled(page);
  await looks(page, 'create');
}));

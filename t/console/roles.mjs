// What people with a lower role are offered, with real tokens of these roles:
// nothing that the gateway would refuse them, and all that it would not.

import { facts, is, ok, open, run, sees, settled, shot, url } from './lib/browser.mjs';
import { agent } from './lib/gateway.mjs';

const ROLES = ['viewer', 'operator', 'admin'];
const at = (tab) => `sandboxes/${facts.other}/${tab}`;
const button = (name) => (page) => page.getByRole('button', { name, exact: typeof name === 'string' });
const json = { 'Content-Type': 'application/json' };

/** Asks as that role: the status. */
const ask = async (role, method, route, body) => (await fetch(new URL(route, url), {
  method, headers: { 'OPEN-SANDBOX-API-KEY': facts.tokens[role], ...(body ? json : {}) }, ...(body ? { body: JSON.stringify(body) } : {}),
})).status;

const api = (method, route, body) => (role) => ask(role, method, `api/v1/${route}`, body);
const upstream = (method, route, body) => (role) => ask(role, method, `../v1/${route}`, body);
const execd = (method, route, body) => upstream(method, `sandboxes/${facts.other}/proxy/44772/${route}`, body);

/** A page, what is offered on it, the least role that may, and what taking the offer asks for. */
const OFFERS = [
  ['sandboxes', button('New sandbox'), 'operator', upstream('POST', 'sandboxes', {})],
  [at('overview'), button('Pause'), 'operator', upstream('POST', `sandboxes/${facts.other}/pause`)],
  [at('overview'), button('Renew'), 'operator', upstream('POST', `sandboxes/${facts.other}/renew-expiration`, {})],
  [at('overview'), button('More actions'), 'operator', upstream('DELETE', `sandboxes/${facts.other}`)],
  [at('history?q=green'), button('Run again'), 'operator', execd('POST', 'command', { command: 'true' })],
  [at('files'), button('New file'), 'operator', execd('POST', 'files/upload', {})],
  [at('files'), button('New folder'), 'operator', execd('POST', 'directories', { '/tmp/x': {} })],
  [at('commands'), (page) => page.getByRole('textbox', { name: 'Command', exact: true }), 'operator', execd('POST', 'command', { command: 'true' })],
  [at('commands'), button(/^Run again/), 'operator', execd('POST', 'command', { command: 'true' })],
  [at('terminal'), button('New terminal'), 'operator', execd('POST', 'pty', {})],
  [at('locks'), button('Break'), 'admin', api('DELETE', `sandboxes/${facts.other}/locks/1`)],
  ['', (page) => page.getByRole('link', { name: 'Tokens', exact: true }), 'admin', api('GET', 'tokens')],
  ['', (page) => page.getByRole('link', { name: 'Policy', exact: true }), 'admin', api('GET', 'policy')],
];

const part = (role) => async (browser) => {
  const page = await open(browser, { as: facts.tokens[role] });
  let now = null;

  for (const [where, offer, least, taken] of OFFERS) {
    const may = ROLES.indexOf(role) >= ROLES.indexOf(least);
    const name = `${role}, ${where || 'everywhere'}: ${offer(page).toString().replace(/^.*?name[=:] ?|Locator@/g, '')}`;

    if (where !== now) {
      await page.goto(url + where);
      await settled(page);
      now = where;

      if (where.includes('history')) {
        await page.getByRole('option').first().click();
        await page.getByRole('region', { name: 'Record' }).getByRole('button', { name: 'Copy as' }).waitFor();
      }
      if (where.endsWith('locks')) {
        await page.locator('[data-lock="held"]').filter({ hasText: '/workspace/held' }).waitFor();
      }
      if (where.endsWith('commands')) {
        await page.getByRole('region', { name: 'Commands' }).getByRole('listitem').first().waitFor();
      }
    }

    if (may) {
      await sees(offer(page).first(), `${name}: is offered`);
    } else {
      is(await offer(page).count(), 0, `${name}: is not offered`);
      is(await taken(role), 403, '... and would be refused');
    }
  }

  await page.getByRole('button', { name: 'Account' }).click();
  await sees(page.getByText(new RegExp(`· ${role}$`, 'i')).first(), `${role}: it is said as what one is signed in`);
  await shot(page, role);
  is(page.seen.errors, [], `${role}: no page asks for what is refused`);
  is(page.seen.calls.filter((c) => /^(?:POST|PUT|PATCH|DELETE) /.test(c) && role === 'viewer'), [], `${role}: looking changes nothing`);
  await page.context().close();
};

// something is held, so that there is something to break
const lease = await fetch(new URL(`api/v1/sandboxes/${facts.other}/leases`, url), {
  method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': facts.tokens.admin, ...json },
  body: JSON.stringify({ keys: [{ path: '/workspace/held', mode: 'write' }], ttl_ms: 600_000, owner: 'build 7' }),
});

await run({
  'all of them work': async () => {
    is(lease.status, 201, 'something is held');
    for (const role of ROLES) {
      is(await api('GET', 'operations')(role), 200, `a ${role} reads`);
    }
    const { status } = await agent(facts.other, 'command', { method: 'POST', body: '{"command":"true"}',
      headers: { 'OPEN-SANDBOX-API-KEY': facts.tokens.operator } });
    is(status, 200, 'an operator runs commands');
    ok(await api('GET', 'tokens')('admin') === 200, 'an admin sees tokens');
  },
  ...Object.fromEntries(ROLES.map((role) => [role, part(role)])),

  'a token for certain sandboxes': async (browser) => {
    const page = await open(browser, { as: facts.tokens.limited });

    await page.goto(url);
    await page.getByRole('heading', { name: 'Your sandboxes' }).waitFor();
    is(await page.getByText(/not recording|cannot tell|role does not allow|recorder is not available/i).count(), 0,
      'nothing is called dead, and no role too low');
    is(await page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link').allInnerTexts(), ['Overview'],
      'what shows all sandboxes is not offered');
    await page.getByRole('textbox', { name: 'Id of a sandbox' }).fill(facts.sandbox);
    await sees(page.getByText('Your token is not for this one.'), 'another sandbox is not opened');
    await page.getByRole('textbox', { name: 'Id of a sandbox' }).fill('');
    await shot(page, 'limited');

    await page.getByRole('main').getByRole('link', { name: facts.other }).click();
    await page.getByRole('heading', { name: 'report-builder' }).waitFor();
    await sees(page.getByRole('option').first(), 'its history is there');
    await sees(page.getByText('Running', { exact: true }).first(), 'and what it does');
    await sees(page.getByRole('button', { name: 'Pause' }), 'and what can be done with it');

    for (const [tab, shows] of [['Files', page.getByRole('button', { name: 'New file' })], ['Commands', page.getByRole('textbox', { name: 'Command', exact: true })],
      ['Terminal', page.getByRole('button', { name: 'New terminal' }).first()], ['Locks', page.getByText('/workspace/held').first()],
      ['Overview', page.getByText('node:22-slim').nth(1)]]) {
      await page.getByRole('navigation', { name: 'Pages of this sandbox' }).getByRole('link', { name: tab }).click();
      await sees(shows, `${tab} is there`);
    }

    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search or jump' }).fill(facts.other);
    await sees(page.getByRole('option', { name: `Open sandbox ${facts.other}` }), 'and from anywhere one gets to it by its id');
    is(page.seen.errors, [], 'nothing that is refused is asked for');

    await page.goto(`${url}history`);
    await sees(page.getByText(/Your token is for certain sandboxes only/), 'an address of all sandboxes says why it shows none');
    await page.context().close();
  },
});

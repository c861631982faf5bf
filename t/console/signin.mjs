import { execFileSync } from 'node:child_process';
import { facts, is, ok, open, run, sees, settled, shot, signIn, token, url } from './lib/browser.mjs';

const field = (page) => page.getByLabel('Token', { exact: true });
const inside = (page) => page.getByRole('navigation', { name: 'Main navigation' });

await run({
  'by token': async (browser) => {
    const page = await open(browser, { as: null });
    const address = `${url}sandboxes/${facts.sandbox}/history?status=failed`;

    await page.goto(address);
    await field(page).waitFor();
    ok(await field(page).evaluate((e) => e === document.activeElement), 'the field has the keyboard');

    await page.keyboard.press('Enter');
    await sees(page.getByText('Enter the token.'), 'an empty token is no question to the gateway');

    await field(page).fill('sbx_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await sees(page.getByText(/not accepted/), 'a wrong token is refused, with what to do');
    await shot(page, 'refused');

    await signIn(page);
    is(page.url(), address, 'signing in leads to what was asked for');
    ok(!(await page.content()).includes(token), 'the token is nowhere in the page');
    ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes('sbx_'), 'nor kept beyond the tab');

    await page.reload();
    await inside(page).waitFor();
    ok(true, 'a reload does not sign out');

    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await field(page).waitFor();
    ok(true, 'signing out does');
    await page.reload();
    await field(page).waitFor();
    ok(true, 'for good');
    // signing out ends the live stream as well, and refuses what is still under way
    is(page.seen.errors.filter((e) => !/status of 401 |INCOMPLETE_CHUNKED_ENCODING .*\/live\b/.test(e)), [],
      'no error in the browser but of what is refused');
    await page.context().close();
  },

  'a session that ends': async (browser) => {
    const page = await open(browser, { as: null });

    await page.goto(url);
    await signIn(page);
    await settled(page);
    await page.route('**/api/v1/**', (route) => (route.request().url().endsWith('/session')
      ? route.fulfill({ json: { actor: null } })
      : route.fulfill({ status: 401, json: { code: 'GATEWAY_UNAUTHENTICATED', message: 'no', details: {} } })));
    await page.getByRole('link', { name: 'Sandboxes', exact: true }).click();
    await page.getByText('Your session is over.', { exact: false }).waitFor();
    ok(page.url().endsWith('/sandboxes'), 'a session that is over leads to the way in, at the same address');
    await page.unrouteAll();
    await signIn(page);
    await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
    ok(true, 'and on from there');
    await page.context().close();
  },

  // to the contract of the console API
  'by one-time link': async (browser) => {
    const page = await open(browser, { as: null });
    const sent = [];
    let who = { actor: null };

    await page.route('**/api/v1/session', async (route) => {
      if (route.request().method() === 'POST') {
        sent.push(route.request().postDataJSON());
        who = { actor: { type: 'console', id: 'alice' }, role: 'viewer',
          expires_at: new Date(Date.now() + 3_000_000).toISOString() };
      }
      if (route.request().method() === 'DELETE') {
        who = { actor: null };
      }
      await route.fulfill({ json: who });
    });
    await page.route('**/api/v1/{overview,sandboxes,operations,health}*', (route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${token}` } }));

    await page.goto(`${url}#code=abc-123`);
    await inside(page).waitFor();
    is(sent, [{ code: 'abc-123' }], 'a one-time link signs in, once');
    ok(!page.url().includes('code'), 'and leaves the address');

    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByText('alice · Viewer').waitFor();
    await sees(page.getByText(/Session ends/), 'who it is, in which role, until when');
    await shot(page, 'account');
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await field(page).waitFor();
    ok(true, 'and out');
    await page.context().close();
  },

  // as people get it: printed by the program, for once
  'by a link of the program': async (browser) => {
    const [program, ...args] = facts.link;
    const [link] = /http\S+/.exec(execFileSync(program, args, { encoding: 'utf8' }));
    const page = await open(browser, { as: null });

    is(new URL(link).origin, new URL(url).origin, 'it is an address of this console');
    await page.goto(link);
    await inside(page).waitFor();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    ok(!page.url().includes('code'), 'a link that `sandbox-gateway link` prints signs in, and leaves the address');
    await page.reload();
    await inside(page).waitFor();
    await page.goto(`${url}tokens`);
    await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor();
    ok(true, 'to all there is');
    await page.context().close();

    const again = await open(browser, { as: null });
    await again.goto(link);
    await again.getByText(/was used already/).waitFor();
    ok(await field(again).isVisible(), 'and to nothing when it is used again');
    await again.context().close();
  },

  'a link used before': async (browser) => {
    const page = await open(browser, { as: null });

    await page.route('**/api/v1/session', (route) => (route.request().method() === 'POST'
      ? route.fulfill({ status: 401, json: { code: 'GATEWAY_UNAUTHENTICATED', message: 'no', details: {} } })
      : route.fulfill({ json: { actor: null } })));
    await page.goto(`${url}#code=used`);
    await page.getByText(/was used already/).waitFor();
    await sees(field(page), 'a link that was used says so, beside the field');
    await page.context().close();
  },
});

// The network is cut and comes back, the helper dies and is started again, nginx
// is reloaded: pages that are open recover by themselves and miss nothing.

import { facts, is, live, ok, open, run, until, url } from './lib/browser.mjs';
import { agent, command, reload, restartHelper } from './lib/gateway.mjs';
import { ready, shows, type } from './lib/terminal.mjs';

const at = (tab) => `${url}sandboxes/${facts.sandbox}/${tab}`;
const api = async (route) => (await fetch(new URL(`api/v1/${route}`, url), {
  headers: { Authorization: `Bearer ${process.env.CONSOLE_TOKEN}` } })).json();

/** Pages, and how each shows that it has heard of something. */
const PAGES = {
  timeline: { at: at('history'), shows: (page, name) => page.getByRole('option').filter({ hasText: `echo ${name};` }).getByText(/^Failed/) },
  run: { at: `${url}runs/steady`, shows: (page, name) => page.getByRole('option').filter({ hasText: `echo ${name};` }).getByText(/^Failed/) },
  overview: { at: url, shows: (page, name) => page.getByRole('link', { name: new RegExp(`echo ${name};`) }) },
  files: { at: at('files'), shows: (page, name) => page.getByRole('treeitem', { name: `${name}.txt` }) },
  commands: { at: at('commands'), shows: (page, name) => page.getByRole('listitem').filter({ hasText: `echo ${name};` }) },
  sandboxes: { at: `${url}sandboxes`, shows: (page, name) => page.getByRole('link', { name: `made-${name}`, exact: true }) },
  tokens: { at: `${url}tokens`, shows: (page, name) => page.getByText(`bot-${name}`) },
  policy: { at: `${url}policy`, shows: (page) => page.locator('main:not(:has([role="alert"])) [data-rule="default"]') },
  locks: { at: at('locks'), shows: (page, name) => page.getByText(`/workspace/held/${name}`) },
};

/** An agent goes on; what it is told may be "not now", and then it asks again. */
async function work(name) {
  const again = (f) => until(async () => {
    const status = await f().then((r) => r.status, () => 0);
    return status > 0 && status < 500 && status;
  }, `work of an agent: ${name}`);

  await again(() => agent(facts.sandbox, 'command', { method: 'POST', headers: { 'X-Run-Id': 'steady' },
    body: JSON.stringify({ command: `echo ${name}; echo x > /workspace/${name}.txt; exit 4` }) }));
  await again(() => fetch(new URL(`api/v1/sandboxes/${facts.sandbox}/leases`, url), {
    method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': process.env.CONSOLE_TOKEN, 'Content-Type': 'application/json', Connection: 'close' },
    body: JSON.stringify({ keys: [{ path: `/workspace/held/${name}`, mode: 'write' }], ttl_ms: 900_000, owner: 'build' }),
  }));
  const made = (route, json) => again(() => fetch(new URL(route, url), {
    method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': process.env.CONSOLE_TOKEN, 'Content-Type': 'application/json', Connection: 'close' },
    body: JSON.stringify(json),
  }));
  await made('../v1/sandboxes', { image: { uri: 'python:3.11' }, entrypoint: ['sleep', '3600'], timeout: 3600,
    resourceLimits: { cpu: '100m', memory: '64Mi' }, metadata: { sandbox_name: `made-${name}` } });
  await made('api/v1/tokens', { role: 'viewer', actor: { id: `bot-${name}` } });
}

/** The next questions for the records of the sandbox are answered with an error; gives back what ends that. */
async function refuse(page, status = 503, code = 'GATEWAY_RECORDER_UNAVAILABLE') {
  const which = `**/api/v1/sandboxes/${facts.sandbox}/operations?*`;

  await page.route(which, (route) => route.fulfill({ status, json: { code, message: 'Not now.', details: {} } }));
  return () => page.unroute(which);
}

await run({
  'a timeline that could not be had at first': async (browser) => {
    const page = await open(browser);
    const note = page.getByRole('main').getByRole('alert');
    const rows = page.getByRole('option');

    await command(facts.sandbox, 'echo something');
    let allow = await refuse(page);
    await page.goto(at('history'));
    await note.first().waitFor();
    await allow();
    await rows.first().waitFor();
    await note.first().waitFor({ state: 'hidden' });
    ok(true, 'a helper that was away as it opened: it comes by itself');

    // the network goes, and then somebody goes from page to page
    await page.getByRole('link', { name: 'Locks', exact: true }).click();
    await page.getByText('Nobody holds anything').first().waitFor();
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'History', exact: true }).last().click();
    await note.first().waitFor();
    await page.context().setOffline(false);
    await rows.first().waitFor();
    await note.first().waitFor({ state: 'hidden' });
    is(await page.getByRole('button', { name: /\d new$/ }).allInnerTexts(), [], 'a network that was away as one came to it: it comes by itself, and nothing is called new');

    // a search is asked again for what happens
    await page.getByRole('textbox', { name: 'Search commands, paths and output' }).fill('something');
    await page.waitForURL(/q=something/);
    await rows.first().waitFor();
    await live(page);
    allow = await refuse(page);
    await command(facts.sandbox, 'echo something else');
    await note.first().waitFor();
    await allow();
    await rows.filter({ hasText: 'echo something else' }).waitFor();
    await note.first().waitFor({ state: 'hidden' });
    ok(true, 'a search that could not be asked again: it is, as soon as it can');

    // what would fail a moment later as well stays where it is
    allow = await refuse(page, 400, 'GATEWAY_INVALID_PARAMETER');
    await page.reload();
    await note.first().waitFor();
    await allow();
    await page.getByRole('button', { name: 'Try again' }).click();
    await rows.first().waitFor();
    ok(true, 'what does not pass by itself waits for who reads');
    await page.context().close();
  },

  'a page loaded while the gateway is away': async (browser) => {
    const page = await open(browser);

    await page.route('**/api/v1/session', (route) => route.fulfill({ status: 502, body: 'Bad gateway' }));
    await page.goto(at('history'));
    await page.getByRole('alert').waitFor();
    await page.unroute('**/api/v1/session');
    await page.getByRole('option').first().waitFor();
    ok(true, 'it is there as soon as the gateway is');
    await page.context().close();
  },

  'all pages': async (browser) => {
    const pages = {};

    for (const [name, page] of Object.entries(PAGES)) {
      pages[name] = await open(browser);
      await pages[name].goto(page.at);
    }

    const terminal = await open(browser);
    await terminal.goto(at('terminal'));
    await ready(terminal);
    await type(terminal, 'N=7');

    for (const name of ['timeline', 'run', 'files', 'commands']) {
      await live(pages[name]);
    }

    const all = [...Object.values(pages), terminal];
    const heard = async (name, when) => {
      for (const [which, page] of Object.entries(PAGES)) {
        const found = await until(async () => await page.shows(pages[which], name).count() > 0, `${name} in ${which}`).catch((e) => e.message);
        ok(found === true, `${when}: ${which} shows what happened, by itself`, found);
      }

      // what is typed as the line is cut is lost, as a person would see
      await until(async () => {
        await ready(terminal);
        await terminal.keyboard.press('Control+u');
        await type(terminal, `echo ${name}-$((N*6))`);
        return shows(terminal, new RegExp(`^${name}-42$`), 10_000).catch(() => false);
      }, `${name} in the terminal`);
      ok(true, `${when}: a terminal goes on with its shell`);
    };

    await work('before');
    await heard('before', 'at first');

    await Promise.all(all.map((page) => page.context().setOffline(true)));
    await pages.timeline.getByRole('button', { name: /Reconnecting|Connecting/ }).waitFor();
    await terminal.getByText(/The line is cut/).waitFor();
    await work('while-cut');
    await Promise.all(all.map((page) => page.context().setOffline(false)));
    await heard('while-cut', 'the network was cut');

    await reload();
    await work('reloaded');
    await heard('reloaded', 'nginx was reloaded');

    await restartHelper();
    await work('restarted');
    await heard('restarted', 'the helper was restarted');

    // nothing is missing in the list that was open all the time, nothing is there twice
    let [shown, wanted] = [[], []];
    // only rows that are in view are drawn
    await pages.timeline.setViewportSize({ width: 1440, height: 8_000 });
    await until(async () => {
      shown = (await pages.timeline.getByRole('option').evaluateAll((rows) => rows.map((r) => r.id.replace('option-', '')))).sort();
      wanted = (await api(`sandboxes/${facts.sandbox}/operations?limit=500`)).items.map((o) => o.id).sort();
      return wanted.length > 0 && JSON.stringify(shown) === JSON.stringify(wanted);
    }, 'all records').catch(() => null);
    is(shown, wanted, 'the timeline has each record, once');

    // a network that is cut and a helper that is away are no errors of a page
    for (const [name, page] of Object.entries({ ...pages, terminal })) {
      is(page.seen.errors.filter((e) => !/^Failed to load resource: |WebSocket connection to .* failed/.test(e)), [], `${name}: no error of its own`);
      await page.context().close();
    }

    is((await command(facts.sandbox, 'echo still-here')).includes('still-here'), true, 'and the agent works on');
  },
});

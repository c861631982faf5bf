// What is copied from a record is done again as it was, and so is a command; and
// what a run did to files is shown as it stood.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { becomes, facts, is, ok, open, run, token, until, url } from './lib/browser.mjs';

const { sandbox } = facts;
const record = (page) => page.getByRole('region', { name: 'Record' });
const api = async (route) => (await fetch(new URL(`api/v1/${route}`, url), { headers: { Authorization: `Bearer ${token}` } })).json();

/** Asks as an agent does. */
const ask = async (method, route, { json, form, run: by } = {}) => {
  const r = await fetch(new URL(`../v1/${route}`, url), {
    method, body: json === undefined ? form : JSON.stringify(json),
    headers: { 'OPEN-SANDBOX-API-KEY': token, 'X-Actor-Id': 'etl-bot', ...(by ? { 'X-Run-Id': by } : {}), ...(json === undefined ? {} : { 'Content-Type': 'application/json' }) },
  });

  return { status: r.status, id: r.headers.get('X-Operation-Id'), text: await r.text() };
};
const execd = (method, route, o) => ask(method, `sandboxes/${sandbox}/proxy/44772/${route}`, o);
const command = (text, more = {}) => execd('POST', 'command', { json: { command: text, ...more } });
/** What a command wrote. */
const says = async (text) => (await command(text)).text.split('\n').map((l) => l.replace(/^data:/, '')).filter((l) => l.startsWith('{'))
  .map((l) => JSON.parse(l)).filter((e) => e.type === 'stdout').map((e) => e.text).join('\n');

const upload = (files, more = {}) => {
  const form = new FormData();

  for (const { content, ...meta } of files) {
    form.append('metadata', new Blob([JSON.stringify(meta)], { type: 'application/json' }), 'metadata');
    form.append('file', new Blob([content]), 'file');
  }
  return execd('POST', 'files/upload', { form, ...more });
};

/** A record whole, once it has ended. */
const ended = (id) => until(async () => {
  const o = await api(`operations/${id}`);
  return o.status !== undefined && o.status !== 'started' && o;
}, `the end of ${id}`);

/** The newest of a type: an answer that is not complete may lack it. */
const newest = (type) => until(async () => {
  const { items, complete } = await api(`operations?type=${type}&limit=1`);
  return complete && { id: items[0]?.id };
}, `a whole list of ${type}`).then((o) => o.id);
const asked = ({ type, status, request, files, wire }) => ({
  type, status, request, files: files.map(({ path, old_path, mode, sha256 }) => ({ path, old_path, mode, sha256 })), method: wire.method, path: wire.path,
});

/** Each: what was done, what puts it back, and what it has done. */
const CASES = {
  'file.move': [() => execd('POST', 'files/mv', { json: [{ src: '/tmp/w/a', dest: '/tmp/w/A' }, { src: "/tmp/w/it's", dest: '/tmp/w/b [1]{2}' }] }),
    () => command("mv /tmp/w/A /tmp/w/a; mv '/tmp/w/b [1]{2}' \"/tmp/w/it's\""), () => says('ls /tmp/w')],
  'file.chmod': [() => execd('POST', 'files/permissions', { json: { '/tmp/w/x.c': { mode: 600 }, '/tmp/w/c d': { mode: 755 } } }),
    () => command("chmod 644 /tmp/w/x.c '/tmp/w/c d'"), () => says("stat -c %a /tmp/w/x.c '/tmp/w/c d'")],
  'dir.create': [() => execd('POST', 'directories', { json: { '/tmp/w/d1/d2': { mode: 700 }, '/tmp/w/d3': {} } }),
    () => command('rm -r /tmp/w/d1 /tmp/w/d3'), () => says('stat -c "%n %a" /tmp/w/d1/d2 /tmp/w/d3')],
  'dir.list': [() => execd('GET', 'directories/list?path=/tmp/w&depth=2')],
  'dir.delete': [() => execd('DELETE', 'directories?path=/tmp/w/gone1&path=/tmp/w/gone2'),
    () => command('mkdir -p /tmp/w/gone1/x /tmp/w/gone2'), () => says('ls /tmp/w')],
  'file.write': [() => upload([{ path: '/tmp/w/up;1', mode: 600, content: 'FILE\n' }, { path: '/tmp/w/up "2"', mode: 644, content: 'FILE_2\n' }]),
    () => command('rm /tmp/w/up*'), () => says("stat -c '%n %a' /tmp/w/up*; cat /tmp/w/up*")],
  'file.read': [() => execd('GET', 'files/download?path=/tmp/w/x.c')],
  'file.stat': [() => execd('GET', 'files/info?path=/tmp/w/x.c&path=/tmp/w/c%20d')],
  'file.search': [() => execd('GET', 'files/search?path=/tmp/w&pattern=*.c')],
  'file.delete': [() => execd('DELETE', 'files?path=/tmp/w/x1&path=/tmp/w/x%262'), () => command("touch /tmp/w/x1 '/tmp/w/x&2'"), () => says('ls /tmp/w')],
  'command.execute': [() => command('pwd; id -u; id -g; echo "$A|$B" >> /tmp/w/said', { cwd: '/tmp', timeout: 20_000, uid: 1000, gid: 1000, envs: { A: 'one two', B: '$HOME' } }),
    () => command('> /tmp/w/said; chmod 666 /tmp/w/said'), () => says('cat /tmp/w/said')],
  'command.interrupt': [() => execd('DELETE', 'command?id=none')],
  'code.execute': [() => execd('POST', 'code', { json: { code: "open('/tmp/w/py', 'w').write('it\\'s')", context: { language: 'python' } } }),
    () => command('rm /tmp/w/py'), () => says('cat /tmp/w/py')],
  'session.create': [() => execd('POST', 'session', { json: { cwd: '/tmp' } })],
  'sandbox.metadata.patch': [() => ask('PATCH', `sandboxes/${sandbox}/metadata`, { json: { team: 'a-b', gone: null } }),
    () => ask('PATCH', `sandboxes/${sandbox}/metadata`, { json: { team: 'other' } }), async () => JSON.parse((await ask('GET', `sandboxes/${sandbox}`)).text).metadata.team],
  'sandbox.create': [() => ask('POST', 'sandboxes', { json: {
    image: { uri: 'python:3.11' }, entrypoint: ['sh', '-c', "echo 'it is'; sleep 3600"], timeout: 600, resourceLimits: { cpu: '100m', memory: '64Mi' },
    metadata: { sandbox_name: 'made-again' }, env: { A: 'one two', B: '$HOME' },
  } })],
  'sandbox.list': [() => ask('GET', 'sandboxes?state=Running&state=Paused&pageSize=5')],
};

await run({
  'copied as curl': async (browser) => {
    const page = await open(browser, { permissions: ['clipboard-read', 'clipboard-write'] });
    const here = mkdtempSync(join(tmpdir(), 'sandbox-again-'));

    writeFileSync(join(here, 'FILE'), 'FILE\n');
    writeFileSync(join(here, 'FILE_2'), 'FILE_2\n');
    await command("mkdir -p /tmp/w/gone1/x /tmp/w/gone2; cd /tmp/w; touch a \"it's\" 'c d' x.c x1 'x&2' said; chmod 666 said");

    for (const [type, [does, back, has = () => null]] of Object.entries(CASES)) {
      const { id, text } = await does();
      const first = await ended(id);
      const wanted = await has();

      is([first.type, first.status], [type, type === 'command.interrupt' ? 'failed' : 'succeeded'], `${type}: is one`);
      await back?.();
      await page.goto(`${url}history?op=${id}`);
      await record(page).getByRole('button', { name: 'Copy as' }).click();
      await page.getByRole('menuitem', { name: /^curl/ }).click();
      // it is said once it is there
      await page.getByText(/^Copied/).first().waitFor();

      const curl = await page.evaluate(() => navigator.clipboard.readText());
      const said = execFileSync('sh', ['-c', curl], {
        cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'],
        env: { PATH: process.env.PATH, SANDBOX_TOKEN: token, VALUE_OF_A: 'one two', VALUE_OF_B: '$HOME' },
      });
      const again = await until(async () => ((n) => n !== id && n)(await newest(type)), `another ${type}`).then(ended);

      if (!is(asked(again), asked(first), `${type}: what is copied asks for the same`)) {
        ok(false, curl);
      }
      if (back) {
        is(await has(), wanted, `${type}: and does the same`);
      } else if (!/create/.test(type)) {
        is(said, text, `${type}: and is answered the same`);
      }
      ok(!curl.includes(token) && !curl.includes('one two'), `${type}: no secret is in it`);
    }

    // without the values nothing is sent
    const { id } = await CASES['command.execute'][0]();
    await ended(id);
    await page.goto(`${url}history?op=${id}`);
    await record(page).getByRole('button', { name: 'Copy as' }).click();
    await page.getByRole('menuitem', { name: /^curl/ }).click();
    await page.getByText(/Set VALUE_OF_A, VALUE_OF_B first/).waitFor();
    ok(true, 'what is not on record has to be set, and that is said');
    try {
      execFileSync('sh', ['-c', await page.evaluate(() => navigator.clipboard.readText())], {
        cwd: here, stdio: 'ignore', env: { PATH: process.env.PATH, SANDBOX_TOKEN: token } });
      ok(false, 'a value that is not set ends it');
    } catch {
      is(await newest('command.execute'), id, 'a value that is not set ends it');
    }

    rmSync(here, { recursive: true });
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'what cannot be copied says why': async (browser) => {
    const page = await open(browser);
    const why = async (id, text) => {
      await ended(id);
      await page.goto(`${url}history?op=${id}`);
      await record(page).getByRole('button', { name: 'Copy as' }).click();
      const item = page.getByRole('menuitem', { name: /^curl/ });
      await item.waitFor();
      is([await item.getAttribute('aria-disabled'), (await item.innerText()).split('\n')[1]], ['true', text], text);
      await page.keyboard.press('Escape');
    };

    await command('echo x > /tmp/w/r');
    await why((await execd('POST', 'files/replace', { json: { '/tmp/w/r': { old: 'x', new: 'y' } } })).id, 'Not on record whole: new, old');
    await why((await command('true', { unheard: 1 })).id, 'Was sent too, but is not on record: unheard');
    is(await record(page).getByRole('button', { name: 'Run again' }).isDisabled(), true, 'nor is such a command run again');
    const many = Array.from({ length: 2_000 }, (_, i) => ({ src: `/tmp/w/none/${'x'.repeat(40)}${i}`, dest: `/tmp/w/none/${i}` }));
    await why((await execd('POST', 'files/mv', { json: many })).id, 'Not on record whole: moves');
    await page.context().close();
  },

  'run again': async (browser) => {
    const page = await open(browser);
    const { id } = await command('id -u; id -g; pwd', { cwd: '/tmp', timeout: 20_000, uid: 1000, gid: 1000 });
    const first = await ended(id);
    const again = async (act) => {
      const before = await newest('command.execute');
      await act();
      return until(async () => ((n) => n !== before && n)(await newest('command.execute')), 'another command').then(ended);
    };

    await page.goto(`${url}history?op=${id}`);
    await record(page).getByRole('button', { name: 'Run again' }).click();
    await page.getByText('time-out 20').waitFor();
    is(asked(await again(() => page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click())), asked(first), 'in the timeline: the same time-out, user and group');

    await page.goto(`${url}sandboxes/${sandbox}/commands?op=${id}`);
    const detail = page.getByRole('region', { name: 'One command' });
    is(asked(await again(() => detail.getByRole('button', { name: 'Run again' }).click())), asked(first), 'in the commands too');

    await page.goto(`${url}sandboxes/${sandbox}/commands?op=${id}`);
    await detail.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('User').waitFor();
    is([await page.getByLabel('User').inputValue(), await page.getByLabel('Time-out, s').inputValue()], ['1000:1000', '20'], 'and to be changed');
    is(asked(await again(() => page.getByRole('button', { name: 'Run', exact: true }).click())), { ...asked(first), request: { ...first.request } }, 'from where it runs the same');
    await page.getByRole('button', { name: 'Options' }).waitFor();
    await page.getByLabel('User').fill('root');
    await page.getByText('A user ID, or user and group').waitFor();
    ok(true, 'what is no user is said');

    // words, which the runtime here does not take
    for (const [where, press] of [
      [`history?op=${id}`, async () => { await record(page).getByRole('button', { name: 'Run again' }).click(); await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click(); }],
      [`sandboxes/${sandbox}/commands?op=${id}`, () => detail.getByRole('button', { name: 'Run again' }).click()],
    ]) {
      await page.route(`**/operations/${id}`, (route) => route.fulfill({ json: { ...first, summary: '["ls","-l; true"]', command: null,
        request: { argv: ['ls', '-l; true'], timeout_ms: 5 } } }));
      await page.goto(`${url}${where}`);
      const sent = page.waitForRequest((r) => r.method() === 'POST' && /\/command$/.test(r.url()));
      await press();
      is((await sent).postDataJSON(), { argv: ['ls', '-l; true'], timeout: 5 }, 'words are run as words');
      await page.unroute(`**/operations/${id}`);
    }
    await page.context().close();
  },

  'files as of then': async (browser) => {
    const page = await open(browser);
    const by = { run: 'files-then' };
    const list = record(page).getByRole('list', { name: 'Files then' });
    const shown = () => list.getByRole('listitem').evaluateAll((all) => all.map((li) => {
      const a = li.querySelector('a');
      return `${getComputedStyle(a).textDecorationLine.includes('line-through') ? '-' : '+'}${a.innerText}`;
    }));
    const then = async ({ id }) => {
      const { type } = await ended(id);

      // the page asks once: the lists have come to it too
      await newest(type);
      await page.goto(`${url}runs/${by.run}?op=${id}&tab=files`);
      await list.waitFor();
    };

    const two = await upload([{ path: '/tmp/v/one.txt', content: 'one\n' }, { path: '/tmp/v/in/two.txt', content: 'two\n' }], by);
    const moved = await execd('POST', 'files/mv', { ...by, json: [{ src: '/tmp/v/one.txt', dest: '/tmp/v/in/uno.txt' }] });
    const changed = await upload([{ path: '/tmp/v/in/uno.txt', content: 'later\n' }], by);
    const folder = await execd('POST', 'files/mv', { ...by, json: [{ src: '/tmp/v/in', dest: '/tmp/v/out' }] });
    const gone = await execd('DELETE', 'directories?path=/tmp/v/out/', by);

    await then(two);
    await becomes(shown, ['+/tmp/v/in/two.txt', '+/tmp/v/one.txt'], 'all files of an upload');
    await then(moved);
    await becomes(shown, ['+/tmp/v/in/two.txt', '+/tmp/v/in/uno.txt', '-/tmp/v/one.txt'], 'what was moved is where it went, and no more where it was');

    await list.getByRole('listitem').filter({ hasText: 'uno.txt' }).getByRole('button', { name: 'Contents' }).click();
    await list.getByRole('region', { name: 'Contents' }).getByText('one', { exact: true }).waitFor();
    ok(true, 'with what stood in it then');
    const [file] = await Promise.all([page.waitForEvent('download'), list.getByRole('link', { name: 'Download the exact bytes' }).click()]);
    is(Buffer.concat(await (await file.createReadStream()).toArray()).toString(), 'one\n', 'to be had too');

    await then(changed);
    await list.getByRole('listitem').filter({ hasText: 'uno.txt' }).getByRole('button', { name: 'Contents' }).click();
    await list.getByRole('region', { name: 'Contents' }).getByText('later', { exact: true }).waitFor();
    ok(true, 'and a moment later, what stood there later');

    await then(folder);
    await becomes(shown, ['-/tmp/v/in/two.txt', '-/tmp/v/in/uno.txt', '-/tmp/v/one.txt', '+/tmp/v/out/two.txt', '+/tmp/v/out/uno.txt'], 'a folder takes all in it along');
    await then(gone);
    await becomes(shown, ['-/tmp/v/in/two.txt', '-/tmp/v/in/uno.txt', '-/tmp/v/one.txt', '-/tmp/v/out/two.txt', '-/tmp/v/out/uno.txt'], 'and is deleted with it');

    // a difference, though the first file has none
    await upload([{ path: '/tmp/v/no-text', content: 'a\0b' }, { path: '/tmp/v/other', content: 'before\n' }], by);
    const second = await upload([{ path: '/tmp/v/no-text', content: 'a\0b' }, { path: '/tmp/v/other', content: 'after\n' }], by);
    await ended(second.id);
    await page.goto(`${url}runs/${by.run}?op=${second.id}`);
    await record(page).getByRole('tab', { name: 'Diff' }).click();
    await record(page).locator('.line-insert').first().waitFor();
    is(await record(page).getByLabel('File', { exact: true }).evaluate((e) => e.selectedOptions[0].textContent), '/tmp/v/other', 'a second file that was changed has its difference');
    await page.context().close();
  },
});

import { readFileSync } from 'node:fs';
import {
  becomes, facts, is, inAll, live, looks, ok, open, run, sees, serious, settled, shot, signIn, token, until, url,
} from './lib/browser.mjs';
import { breaksOff, command } from './lib/gateway.mjs';

const at = (path, more = '') => `${url}sandboxes/${facts.sandbox}/files${path ? `?path=${encodeURIComponent(path)}` : ''}${more}`;
const execd = (route, o = {}) => fetch(new URL(`../v1/sandboxes/${facts.sandbox}/proxy/44772/${route}`, url), {
  ...o, headers: { 'OPEN-SANDBOX-API-KEY': token, 'X-Actor-Id': 'etl-bot', ...o.headers },
});

/** What stands in a file of the sandbox; null when there is none. */
const stored = async (path) => {
  const r = await execd(`files/download?path=${encodeURIComponent(path)}`);
  return r.ok ? r.text() : null;
};

/** Its bytes. */
const raw = async (path) => Buffer.from(await (await execd(`files/download?path=${encodeURIComponent(path)}`)).arrayBuffer());

/** Somebody else writes a file. */
const write = async (path, text) => {
  const form = new FormData();

  form.append('metadata', new Blob([JSON.stringify({ path })]), 'metadata');
  form.append('file', new Blob([text]), 'file');
  const r = await execd('files/upload', { method: 'POST', body: form });
  if (!r.ok) {
    throw new Error(`${path}: ${r.status} ${await r.text()}`);
  }
};

const row = (page, name) => page.getByRole('treeitem', { name, exact: false });
/** What the tree points at, while it has the keyboard. */
const active = (page) => page.evaluate(() => document.getElementById(
  document.activeElement.getAttribute('aria-activedescendant') ?? '')?.innerText.trim());
const lines = (page) => page.locator('.monaco-editor .view-lines').last();
const text = async (page) => (await lines(page).innerText()).replaceAll('\u00a0', ' ');
const dialog = (page) => page.getByRole('dialog');
const comes = (f) => until(f).then(() => true, () => false);

/** A page of Files, signed in. */
const files = async (browser, path = '', o = {}) => {
  const page = await open(browser, o);

  await page.goto(at(path));
  await settled(page);
  return page;
};

const shown = (page, some) => comes(async () => (await text(page).catch(() => '')).includes(some));

/** The text of the editor gives way to another one. */
const type = async (page, what) => {
  await lines(page).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(what);
};

/** Drops files on an element, as a hand does. */
const drop = async (page, target, all) => {
  const data = await page.evaluateHandle((list) => {
    const d = new DataTransfer();
    list.forEach(([name, body]) => d.items.add(new File([body], name)));
    return d;
  }, all);

  await target.dispatchEvent('dragover', { dataTransfer: data });
  await target.dispatchEvent('drop', { dataTransfer: data });
};

const well = async (page, name, but = () => false) => {
  is(page.seen.errors.filter((e) => !but(e)), [], `${name}: no error in the browser's console`);
  is(page.seen.foreign, [], `${name}: no host but ours`);
  is(page.seen.calls.filter((c) => !/^(?:GET \/console\/|[A-Z]+ \/console\/api\/v1\/|[A-Z]+ \/v1\/sandboxes\/[^/]+\/proxy\/44772\/(?:files|directories)\b)/.test(c)),
    [], `${name}: only the console's API and OpenSandbox's files`);
  await page.context().close();
};

const parts = {
  'open, edit, save': async (browser) => {
    const page = await files(browser);

    ok(!page.seen.calls.some((c) => /monaco|editor\.api/.test(c)), 'the tree comes without the editor');
    await row(page, 'src').click();
    await row(page, 'clean.py').click();
    ok(await shown(page, 'def clean(rows, least=0)'), 'a file opens in the editor');
    ok(/path=%2Fworkspace%2Fsrc%2Fclean\.py/.test(page.url()), 'and has an address');
    ok(await comes(async () => await page.locator('.view-lines [class*="mtk"]').evaluateAll((all) => new Set(all.map((e) => e.className)).size) > 3),
      'its words are coloured by its language');

    await page.goto(at('/workspace/run.sh'));
    await shown(page, 'echo run');
    await type(page, '#!/bin/sh\necho edited\n');
    await page.getByText('Not saved').first().waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('run.sh is saved').waitFor();
    is(await stored('/workspace/run.sh'), '#!/bin/sh\necho edited\n', 'what is saved is in the sandbox');
    is((await (await execd('files/info?path=/workspace/run.sh')).json())['/workspace/run.sh'].mode, 750, 'with the mode that it had');
    await page.reload();
    ok(await shown(page, 'echo edited'), 'and is there again after a reload');

    await type(page, 'lost?');
    await page.getByText('Not saved').first().waitFor();
    await row(page, 'notes.txt').click();
    await page.getByRole('dialog', { name: /run\.sh is not saved/ }).waitFor();
    await shot(page, 'guard');
    await page.getByRole('button', { name: 'Stay' }).click();
    ok(await shown(page, 'lost?'), 'who goes elsewhere is asked, and may stay');
    await page.getByRole('link', { name: 'Overview', exact: true }).first().click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.waitForURL((u) => !u.pathname.endsWith('/files'));
    is(await stored('/workspace/run.sh'), '#!/bin/sh\necho edited\n', 'or discard the edits');
    await well(page, 'edit');
  },

  'it changes as files change': async (browser) => {
    const page = await files(browser, '/workspace/notes.txt');

    await shown(page, 'two');
    await live(page);
    await write('/workspace/appeared.txt', 'x');
    await row(page, 'appeared.txt').waitFor();
    ok(true, 'what an agent makes appears by itself');
    await execd('command', { method: 'POST', body: JSON.stringify({ command: 'rm /workspace/appeared.txt; echo made > /workspace/by-command.txt' }) }).then((r) => r.text());
    await row(page, 'by-command.txt').waitFor();
    await row(page, 'appeared.txt').waitFor({ state: 'detached' });
    ok(true, 'what a command makes or takes away too');
    await write('/workspace/notes.txt', 'one\nthree\n');
    ok(await shown(page, 'three'), 'an open file shows what was written');
    await well(page, 'live');
  },

  'C132 somebody else wrote it': async (browser) => {
    const page = await files(browser, '/workspace/notes.txt');
    const other = async (theirs, mine) => {
      await write('/workspace/notes.txt', 'base\n');
      ok(await shown(page, 'base'), 'the file is open');
      await type(page, mine);
      await write('/workspace/notes.txt', theirs);
      await page.getByText('Somebody else has changed this file').waitFor();
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByRole('dialog', { name: /notes\.txt has changed/ }).waitFor();
    };

    await live(page);
    await other('theirs 1\n', 'mine 1\n');
    await dialog(page).getByText('etl-bot', { exact: false }).waitFor();
    ok(true, 'it is said who wrote it');
    is(await stored('/workspace/notes.txt'), 'theirs 1\n', 'C132 nothing is written over before a choice');
    await dialog(page).locator('.monaco-diff-editor .line-insert, .monaco-diff-editor .char-insert').first().waitFor();
    await shot(page, 'conflict');
    is(await serious(page), [], 'the choice: axe finds nothing serious');
    await dialog(page).getByRole('button', { name: 'Take theirs' }).click();
    ok(await shown(page, 'theirs 1'), 'theirs: the editor has it');

    await other('theirs 2\n', 'mine 2\n');
    await dialog(page).getByRole('button', { name: 'Save mine' }).click();
    ok(await comes(async () => await stored('/workspace/notes.txt') === 'mine 2\n'), 'mine: it is stored');
    await dialog(page).waitFor({ state: 'detached' });

    await other('theirs 3\n', 'mine 3\n');
    await dialog(page).getByRole('button', { name: 'Merge by hand' }).click();
    await dialog(page).locator('.editor.modified .view-lines').click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('and theirs 3\n');
    await shot(page, 'merge');
    await dialog(page).getByRole('button', { name: 'Save the merged text' }).click();
    ok(await comes(async () => await stored('/workspace/notes.txt') === 'mine 3\nand theirs 3\n'), 'both: what was merged by hand is stored');
    await dialog(page).waitFor({ state: 'detached' });
    await well(page, 'conflict');
  },

  'a file grows while it is edited': async (browser) => {
    const page = await files(browser, '/workspace/growing.log');

    await shown(page, 'line 1');
    await live(page);
    await type(page, 'a note of mine\n');
    await page.getByText('Not saved').first().waitFor();
    await execd('command', { method: 'POST', body: JSON.stringify({ command: 'head -c 5000000 /dev/zero | tr "\\0" x >> /workspace/growing.log' }) }).then((r) => r.text());
    await page.getByText('Somebody else has changed this file').waitFor();
    ok(await shown(page, 'a note of mine'), 'what is typed stays in the editor, however much was added to the file');

    await execd('command', { method: 'POST', body: JSON.stringify({ command: 'head -c 5000000 /dev/zero | tr "\\0" x >> /workspace/growing.log' }) }).then((r) => r.text());
    await sees(page.getByText('The file has grown to 9.5 MB'), 'and when it is too much to be compared it is said what to do');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy your text' }).click();
    await becomes(() => page.evaluate(() => navigator.clipboard.readText()), 'a note of mine\n', 'the text can be taken along');
    await well(page, 'grown');
  },

  'a sandbox stops while one edits': async (browser) => {
    const page = await open(browser);
    const change = (to) => fetch(new URL(`../v1/sandboxes/${facts.stops}/${to}`, url), {
      method: 'POST', headers: { 'OPEN-SANDBOX-API-KEY': token },
    });

    await page.goto(`${url}sandboxes/${facts.stops}/files?path=/workspace/plan.txt`);
    await shown(page, 'as it was');
    await live(page);
    await type(page, 'half an hour of work\n');
    await page.getByText('Not saved').first().waitFor();
    await change('pause');
    await page.getByText('The sandbox does not run any more. Your text is still here').waitFor();
    ok(await shown(page, 'half an hour of work'), 'what is typed is still there when the sandbox has stopped');
    ok(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), 'there is nothing to save it to');
    await shot(page, 'stopped');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy your text' }).click();
    await becomes(() => page.evaluate(() => navigator.clipboard.readText()), 'half an hour of work\n', 'but it can be taken along');

    await change('resume');
    await page.getByText('The sandbox does not run any more').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('plan.txt is saved').waitFor();
    ok(true, 'or saved when it runs again');
    await well(page, 'stopped', (e) => /status of 4|status of 5/.test(e));
  },

  'a session ends while one edits': async (browser) => {
    const page = await open(browser, { as: null });
    const end = () => page.context().request.delete(new URL('api/v1/session', url).href, { headers: { Origin: new URL(url).origin } });
    const over = page.getByText('Your session is over.', { exact: false });

    await page.goto(at('/workspace/notes.txt'));
    await signIn(page);
    await lines(page).waitFor();
    await type(page, 'typed before the session was over\n');
    await page.getByText('Not saved').first().waitFor();
    await end();
    await page.keyboard.press('Control+s');
    await over.waitFor();
    is(await page.getByRole('button', { name: 'Save', exact: true }).count(), 0, 'who has no session sees nothing and can do nothing');
    await shot(page, 'session-over');
    await signIn(page);
    await over.waitFor({ state: 'detached' });
    ok(await shown(page, 'typed before the session was over'), 'who signs in again finds what was typed');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('notes.txt is saved').waitFor();
    is(await stored('/workspace/notes.txt'), 'typed before the session was over\n', 'and saves it');

    await page.getByRole('button', { name: 'New folder' }).first().click();
    await dialog(page).getByLabel('Name').fill('half/filled');
    await end();
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await over.waitFor();
    is(await serious(page), [], 'the way in over a dialog: axe finds nothing serious');
    await page.getByLabel('Token', { exact: true }).fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await over.waitFor({ state: 'detached' });
    is(await dialog(page).getByLabel('Name').inputValue(), 'half/filled', 'what is half filled in stays as well');
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
    await live(page);
    await write('/workspace/after-the-session.txt', 'x');
    await row(page, 'after-the-session.txt').waitFor();
    ok(true, 'and the page follows what happens, as before');

    await type(page, 'of somebody else\n');
    await page.getByText('Not saved').first().waitFor();
    await end();
    await page.keyboard.press('Control+s');
    await over.waitFor();
    await signIn(page, facts.other);
    await lines(page).waitFor();
    ok(await shown(page, 'typed before the session was over') && !(await text(page)).includes('of somebody else'), 'another person begins anew');
    await well(page, 'session', (e) => /status of 401 |INCOMPLETE_CHUNKED_ENCODING .*\/live\b|status of 404 .*half/.test(e));
  },

  'new, rename, move, delete': async (browser) => {
    const page = await files(browser);

    await page.getByRole('button', { name: 'New folder' }).first().click();
    await dialog(page).getByLabel('Name').fill('made/here');
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await row(page, 'here').waitFor();
    ok(true, 'a folder in a folder is made at once');
    await page.getByRole('button', { name: 'New file' }).first().click();
    await dialog(page).getByLabel('Name').fill('a.py');
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    await page.waitForURL(/made%2Fhere%2Fa\.py/);
    await lines(page).waitFor();
    is(await stored('/workspace/made/here/a.py'), '', 'a new file is made and opens');

    await row(page, 'a.py').hover();
    await row(page, 'a.py').getByRole('button', { name: /Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await dialog(page).getByLabel('Name').fill('b.py');
    await page.keyboard.press('Enter');
    await page.waitForURL(/made%2Fhere%2Fb\.py/);
    is([await stored('/workspace/made/here/a.py'), await stored('/workspace/made/here/b.py')], [null, ''], 'a file is renamed, and stays open');

    await row(page, 'b.py').hover();
    await row(page, 'b.py').getByRole('button', { name: /Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Move' }).click();
    await dialog(page).getByLabel('Path').fill('/workspace/notes.txt');
    await page.keyboard.press('Enter');
    await dialog(page).getByText('There is something at /workspace/notes.txt already').waitFor();
    ok(true, 'what is taken is said before anything is moved');
    await dialog(page).getByLabel('Path').fill('/workspace/moved.py');
    await page.keyboard.press('Enter');
    await page.waitForURL(/%2Fworkspace%2Fmoved\.py/);
    is(await stored('/workspace/moved.py'), '', 'and it is moved');

    await dialog(page).waitFor({ state: 'detached' });
    await page.getByRole('tree').focus();
    await until(async () => await active(page) === 'moved.py', 'the file in the tree');
    await page.keyboard.press('Delete');
    await page.getByRole('dialog', { name: 'Delete moved.py?' }).waitFor();
    is(await stored('/workspace/moved.py'), '', 'deleting asks first');
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await row(page, 'moved.py').waitFor({ state: 'detached' });
    is(await stored('/workspace/moved.py'), null, 'then does it');

    await row(page, 'old').click();
    await row(page, 'report.csv').waitFor();
    await page.getByRole('region', { name: 'Folder' }).getByRole('button', { name: 'Actions: old' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    ok(await dialog(page).getByRole('button', { name: 'Delete' }).isDisabled(), 'a folder goes only when its name is typed');
    await shot(page, 'delete');
    await dialog(page).getByRole('textbox').fill('old');
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await row(page, 'report.csv').waitFor({ state: 'detached' });
    is(await stored('/workspace/old/report.csv'), null, 'with all that is in it');
    await well(page, 'entries', (e) => /404/.test(e) && /directories\/list/.test(e));
  },

  'C131 saving changes what was typed, and nothing else': async (browser) => {
    const page = await files(browser);
    const utf16 = Buffer.from('\ufeffone\r\ntwo\r\n', 'utf16le');
    const kept = {
      'bom.txt': Buffer.from('\ufeffone\ntwo\n'), 'crlf.txt': Buffer.from('one\r\ntwo\r\n'), 'no-end.txt': Buffer.from('one\ntwo'),
      'bom-crlf-no-end.txt': Buffer.from('\ufeffone\r\ntwo'), 'spaces.txt': Buffer.from('one  \t\n\n\ntwo \n\n'),
      'mixed.txt': Buffer.from('one\r\ntwo\nthree\r\n\nfour\rfive\r\n'),
      'wide.txt': Buffer.from('one 中文 é \u{1f600}\ntwo\n'),
    };
    const closed = { 'utf16.txt': utf16, 'latin1.txt': Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]), 'nul.txt': Buffer.from('a\0b\n') };

    for (const [name, bytes] of Object.entries({ ...kept, ...closed, 'one-line.txt': Buffer.alloc(5 * 1024 * 1024, 'x') })) {
      await write(`/workspace/c131/${name}`, bytes);
    }

    for (const [name, bytes] of Object.entries(kept)) {
      await page.goto(at(`/workspace/c131/${name}`));
      ok(await shown(page, 'one'), `C131 ${name} is open`);
      await lines(page).click();
      await page.keyboard.press('Control+Home');
      await page.keyboard.insertText('Z');
      await page.keyboard.press('Control+s');
      await page.getByText(`${name} is saved`).first().waitFor();

      const start = bytes.subarray(0, 3).equals(Buffer.from('\ufeff')) ? 3 : 0;
      const wanted = Buffer.concat([bytes.subarray(0, start), Buffer.from('Z'), bytes.subarray(start)]);
      is((await raw(`/workspace/c131/${name}`)).toString('hex'), wanted.toString('hex'), `C131 ${name}: one character is another one, all else is as it was`);
    }

    for (const [name, bytes] of Object.entries(closed)) {
      await page.goto(at(`/workspace/c131/${name}`));
      await page.getByText('This is not text').waitFor();
      is(await page.locator('.monaco-editor').count(), 0, `C131 ${name}: what an editor would change is shown as bytes`);
      is((await raw(`/workspace/c131/${name}`)).toString('hex'), bytes.toString('hex'), `C131 ${name}: and is as it was`);
    }

    await page.goto(at('/workspace/c131/one-line.txt'));
    await page.getByText('This file has 5 MB').waitFor();
    is(await page.locator('.monaco-editor').count(), 0, 'C131 a line of 5 MiB is not put into an editor');
    await well(page, 'C131');
  },

  'refused, and why': async (browser) => {
    const page = await files(browser);

    await page.getByRole('button', { name: 'New file' }).first().click();
    await dialog(page).getByLabel('Name').fill('.env');
    await dialog(page).getByRole('button', { name: 'Create' }).click();
    const said = await dialog(page).getByRole('alert').innerText();
    ok(/The rule “\w+” \(line \d+\) does not allow this for \/workspace\/\.env/.test(said), 'a rule that refuses is named, with the path', said);
    await shot(page, 'refused');
    await page.keyboard.press('Escape');

    await page.goto(at('/workspace/config.json'));
    await shown(page, 'least');
    await page.route('**/files/upload', (r) => r.fulfill({ status: 423, contentType: 'application/json', body: JSON.stringify({
      code: 'GATEWAY_LOCK_TIMEOUT', message: 'A path that this operation needs was not free in time.',
      details: { key: '/workspace', mode: 'write', holder: { id: 'x', actor: 'build-bot' }, waited_ms: 20_000 },
    }) }), { times: 1 });
    await type(page, '{}\n');
    await page.keyboard.press('Control+s');
    await page.getByText('build-bot is working on /workspace. This waited 20s').waitFor();
    ok(true, 'a lock that was not free: who holds it and what to do');

    const asked = page.waitForRequest('**/files/upload');
    await page.keyboard.press('Control+s');
    ok(/^sha256:[0-9a-f]{64}$/.test((await asked).headers()['if-match']), 'C132 what is saved says what it replaces: by its digest, not by time and size');
    await page.getByText('config.json is saved').waitFor();

    // nobody tells this page what happens: the gateway has to
    await page.route('**/live?**', (r) => r.abort());
    await page.goto(at('/workspace/config.json'));
    await shown(page, '{}');
    await type(page, '{"mine": 1}');
    await write('/workspace/config.json', '{"theirs": 1}');
    await page.keyboard.press('Control+s');
    await page.getByRole('dialog', { name: /config\.json has changed/ }).waitFor();
    is(await stored('/workspace/config.json'), '{"theirs": 1}', 'C132 the gateway refuses to write over what it is not, and one is asked');
    await dialog(page).getByRole('button', { name: 'Take theirs' }).click();
    ok(await shown(page, 'theirs'), 'with what stands there now');
    await well(page, 'refused', (e) => /40[34]|412|423|live\?/.test(e));
  },

  'a lock is seen': async (browser) => {
    const lease = await fetch(new URL(`api/v1/sandboxes/${facts.sandbox}/leases`, url), {
      method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'X-Actor-Id': 'build-bot' },
      body: JSON.stringify({ keys: [{ path: '/workspace/src', mode: 'write' }], ttl_ms: 3_600_000 }),
    });

    is(lease.status, 201, 'somebody holds a folder');
    const page = await files(browser, '/workspace/README.md');

    await shown(page, 'Orders');
    is(await page.getByText('is working on this').count(), 0, 'a file beside it has no notice');
    await row(page, 'src').click();
    await row(page, 'clean.py').click();
    await page.getByText('is working on this (lease').waitFor();
    ok(true, 'one in it says who works on it, while it waits');
    await shot(page, 'locked');
    await fetch(new URL(`api/v1/sandboxes/${facts.sandbox}/leases/${(await lease.json()).id}`, url), {
      method: 'DELETE', headers: { Authorization: `Bearer ${token}` } });
    await well(page, 'lock');
  },

  'upload by drop': async (browser) => {
    const page = await files(browser);

    await drop(page, row(page, 'empty'), [['one.txt', '1\n'], ['two.txt', '22\n']]);
    await page.getByRole('dialog', { name: 'Upload 2 files' }).waitFor();
    is(await dialog(page).getByLabel('Into the folder').inputValue(), '/workspace/empty', 'files go to the folder that they are dropped on');
    await dialog(page).getByLabel('Into the folder').fill('/workspace/inbox');
    await dialog(page).getByRole('button', { name: 'Upload' }).click();
    await row(page, 'inbox').waitFor();
    await dialog(page).waitFor({ state: 'detached' });
    is([await stored('/workspace/inbox/one.txt'), await stored('/workspace/inbox/two.txt')], ['1\n', '22\n'], 'or to another one');

    await page.goto(at('/workspace/inbox'));
    await settled(page);
    await drop(page, page.getByRole('region', { name: 'Folder' }), [['one.txt', 'other\n'], ['three.txt', '333\n']]);
    await dialog(page).getByText('replaces').waitFor();
    await shot(page, 'upload');
    is(await serious(page), [], 'upload: axe finds nothing serious');
    await dialog(page).getByLabel('1 file is there already').selectOption('skip');
    await dialog(page).getByRole('button', { name: 'Upload' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    is([await stored('/workspace/inbox/one.txt'), await stored('/workspace/inbox/three.txt')], ['1\n', '333\n'], 'what is there already may stay');

    // an agent makes a file while the page asks what becomes of others
    await drop(page, page.getByRole('region', { name: 'Folder' }), [['five.txt', 'ours\n'], ['six.txt', '6\n']]);
    await dialog(page).getByText('five.txt').waitFor();
    const listed = page.waitForResponse((r) => /directories\/list\?path=%2Fworkspace%2Ffresh&/.test(r.url()));
    await dialog(page).getByLabel('Into the folder').fill('/workspace/fresh');
    await listed;
    await write('/workspace/fresh/five.txt', 'an agent was first\n');
    await dialog(page).getByRole('button', { name: 'Upload' }).click();
    await dialog(page).getByText('Something has come to be where these files go').waitFor();
    is([await stored('/workspace/fresh/five.txt'), await stored('/workspace/fresh/six.txt')], ['an agent was first\n', '6\n'],
      'what somebody has just made is not written over');
    await sees(dialog(page).getByText('replaces'), 'but asked about');
    await dialog(page).getByLabel('1 file is there already').selectOption('replace');
    await dialog(page).getByRole('button', { name: 'Upload' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    is(await stored('/workspace/fresh/five.txt'), 'ours\n', 'and replaced when that is wanted');

    await drop(page, page.getByRole('region', { name: 'Folder' }), [['.env', 'x'], ['four.txt', '4']]);
    await dialog(page).getByRole('button', { name: 'Upload' }).click();
    await dialog(page).getByText(/The rule “\w+”/).waitFor();
    await becomes(() => stored('/workspace/inbox/four.txt'), '4', 'one that is refused says why, and stops no other');
    await shot(page, 'upload-refused');
    await well(page, 'upload', (e) => /40[34]|412/.test(e));
  },

  'download': async (browser) => {
    const page = await files(browser, '/workspace/data.bin');
    const got = async (f) => {
      const [d] = await Promise.all([page.waitForEvent('download'), f()]);
      return [d.suggestedFilename(), readFileSync(await d.path())];
    };

    const [name, bytes] = await got(() => page.getByRole('button', { name: 'Download' }).click());
    is([name, [...bytes]], ['data.bin', [...Array(256).keys()]], 'a file comes as it is');

    await page.goto(at('/workspace/odd'));
    await settled(page);
    await page.getByRole('region', { name: 'Folder' }).getByRole('button', { name: /Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Download as zip' }).click();
    await dialog(page).getByText('4 items').waitFor();
    await shot(page, 'zip');
    const [zipName, zip] = await got(() => dialog(page).getByRole('button', { name: 'Download' }).click());
    is(zipName, 'odd.zip', 'a folder as a zip');
    ok(zip.includes('gnp.exe') && zip.includes('slash') && !zip.includes('ney'), 'of what could be read');
    await dialog(page).getByText('1 file could not be read').waitFor();
    ok(true, 'and what could not is said');
    await well(page, 'download', (e) => /403/.test(e) && /ney/.test(e));
  },

  'an answer that breaks off': async (browser) => {
    const page = await files(browser);
    const cut = await breaksOff();

    await page.route('**/files/download?*', (route) => route.continue({ url: cut.url }), { times: 1 });
    await row(page, 'README.md').click();
    ok(await shown(page, 'Cleans the orders of a day'), 'a file whose answer broke off is asked for again by itself');

    await page.route('**/files/download?*', (route) => route.continue({ url: cut.url }));
    await row(page, 'windows.ini').click();
    await page.getByRole('alert').getByText('The gateway cannot be reached').waitFor();
    ok(true, 'one whose answers all break off says what is wrong: the line');
    cut.close();
    await well(page, 'broken', (e) => /CONTENT_LENGTH_MISMATCH|CONNECTION|files\/download/.test(e));
  },

  'no text': async (browser) => {
    const page = await files(browser, '/workspace/data.bin');

    await page.getByText('This is not text').waitFor();
    ok((await page.getByRole('region', { name: 'Bytes of the file' }).innerText()).includes('00000010  10 11 12'), 'bytes are shown as bytes');
    await shot(page, 'binary');
    await row(page, 'large.log').click();
    await page.getByText('This file has 5.7 MB').waitFor();
    ok(!page.seen.calls.some((c) => c.includes('download') && c.includes('large')), 'a large file is not read by itself');
    await page.getByRole('button', { name: /Show the first/ }).click();
    await page.getByRole('region', { name: 'Beginning of the file' }).waitFor();
    ok(true, 'its beginning can be seen');
    await row(page, 'chart.png').click();
    await page.getByRole('img', { name: 'Image chart.png' }).waitFor();
    await page.getByText('160 × 100 pixels').waitFor();
    ok(true, 'an image is a picture');
    await shot(page, 'image');
    await row(page, 'windows.ini').click();
    await page.getByText('line ends of this file are of several kinds').waitFor();
    ok(true, 'what saving would change besides is said');
    await well(page, 'no text');
  },

  'versions': async (browser) => {
    const page = await files(browser, '/workspace/src/clean.py');
    const first = await shown(page, 'import sys');

    ok(first, 'a file that was written twice');
    await page.getByRole('button', { name: 'Versions' }).click();
    const list = page.getByRole('list', { name: 'Versions' });
    await list.getByRole('listitem').nth(1).waitFor();
    is(await list.getByRole('listitem').count(), 2, 'has two versions');
    await page.locator('.monaco-diff-editor .line-insert').first().waitFor();
    ok(true, 'the newest is shown with what it changed');
    await page.getByRole('button', { name: 'In one column' }).click();
    await page.locator('.monaco-diff-editor:not(.side-by-side)').waitFor();
    await shot(page, 'versions-inline');
    await page.getByRole('button', { name: 'Side by side' }).click();
    await page.locator('.monaco-diff-editor.side-by-side').waitFor();
    ok(true, 'in one column or side by side');
    is(await page.getByRole('button', { name: 'Ignore spaces around lines' }).getAttribute('aria-pressed'), 'false', 'with spaces or without');

    await list.getByRole('button').nth(1).click();
    await list.getByRole('listitem').nth(1).locator('[aria-current]').waitFor();
    await page.getByLabel('Compare with').selectOption('now');
    await page.locator('.monaco-diff-editor .line-insert').first().waitFor();
    const asked = page.waitForRequest('**/files/upload');
    await page.getByRole('button', { name: 'Restore' }).click();
    ok(/^[0-9a-f-]{36}$/.test((await asked).headers()['x-sandbox-restored-from'] ?? ''), 'a restore says what it restores');
    await list.getByText('restored').waitFor();
    is(await list.getByRole('listitem').count(), 3, 'and is a version too');
    ok((await stored('/workspace/src/clean.py')).includes('r["total"] >= 0]'), 'the file is what it was');
    await page.getByRole('button', { name: 'Versions' }).click();
    ok(await comes(async () => !(await text(page)).includes('import sys')), 'in the editor too');
    await page.getByRole('button', { name: 'Versions' }).click();
    await page.getByRole('link', { name: 'All of this file in the history' }).click();
    await page.waitForURL(/history\?path=%2Fworkspace%2Fsrc%2Fclean\.py$/);
    await page.getByRole('option').first().waitFor();
    is(await page.getByRole('option').filter({ hasNotText: 'clean.py' }).count(), 0, 'and all that was done with it is one click away');
    await well(page, 'versions');
  },

  'C129 a folder whose name would be a program': async (browser) => {
    const name = 'x"); __import__("os").system("id"); ("';

    await command(facts.sandbox, `mkdir -p '/workspace/odd/${name}'`);
    const page = await files(browser, `/workspace/odd/${name}`);
    const said = await page.getByRole('region', { name: 'Python' }).innerText();

    is(JSON.parse(said.match(/write_file\((".*"), "print/)[1]), `/workspace/odd/${name}/hello.py`, 'what is offered to be copied has it as a text');
    await command(facts.sandbox, `rmdir '/workspace/odd/${name}'`);
    await well(page, 'snippet');
  },

  'C129 hostile names and texts': async (browser) => {
    const page = await files(browser, '/workspace/odd/<img src=x onerror=alert(1)>.txt');

    ok(await shown(page, '<script>document.title=1</script>'), 'markup in a file is text');
    await sees(row(page, '<img src=x onerror=alert(1)>.txt'), 'in a name too');
    ok((await row(page, 'gnp.exe').innerText()).includes('U+202E'), 'what turns the direction is a sign');
    is(await page.evaluate(() => document.querySelectorAll('img:not([src="icon.svg"])').length), 0, 'and makes nothing');
    await shot(page, 'hostile');
    is(page.seen.errors.filter((e) => /Content.Security/i.test(e)), [], 'CSP has nothing to say');
    await well(page, 'hostile');
  },

  'by keyboard': async (browser) => {
    const page = await files(browser);

    await page.getByRole('tree').focus();
    await page.keyboard.press('Home');
    for (let i = 0; i < 12 && await active(page) !== 'src'; i++) {
      await page.keyboard.press('ArrowDown');
    }
    await page.keyboard.press('ArrowRight');
    await row(page, 'util').waitFor();
    await page.keyboard.press('ArrowRight');
    ok(await comes(async () => await active(page) === 'util'), 'arrows open folders and go into them');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/clean\.py/);
    ok(await shown(page, 'def clean'), 'Enter opens a file');
    await page.getByRole('tree').focus();
    await page.keyboard.press('F2');
    await page.getByRole('dialog', { name: 'Rename clean.py' }).waitFor();
    await page.keyboard.press('Escape');
    ok(true, 'F2 renames');
    await well(page, 'keyboard');
  },
};

await run(parts, inAll(async (page) => {
  for (const [name, path, more] of [
    ['folder', '', ''], ['editor', '/workspace/src/clean.py', ''], ['versions', '/workspace/src/clean.py', '&view=versions'],
    ['image', '/workspace/chart.png', ''], ['binary', '/workspace/data.bin', ''], ['empty', '/workspace/empty', ''],
    ['missing', '/workspace/nothing-here', ''],
  ]) {
    await page.goto(at(path, more));
    await settled(page);

    if (name === 'editor' || name === 'versions') {
      await page.locator('.view-lines [class*="mtk"]').first().waitFor({ state: 'attached' });
    }

    await looks(page, name);
  }
}, { refused: /404.*nothing-here/ }));

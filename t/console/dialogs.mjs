// Without a mouse: what opens over a page, and a record beside its list.  Each is
// come to by keyboard, has the keyboard at once, keeps it as long as it is open
// (Tab goes round in it, both ways), closes with Escape, and gives the keyboard
// back to what opened it.

import { facts, is, ok, open, run, settled, until, url } from './lib/browser.mjs';
import { command } from './lib/gateway.mjs';
import { helpers, round } from './lib/keyboard.mjs';
import { paste, ready } from './lib/terminal.mjs';

const box = `sandboxes/${facts.sandbox}`;
const file = (path) => `${box}/files?path=${encodeURIComponent(path)}`;
const comes = (f) => until(f, 'it').then(() => true, () => false);

/** Where the keyboard is now. */
const here = (page) => page.evaluateHandle(() => document.activeElement);
const at = async (handle) => handle.asElement().evaluate((e) => e.isConnected && e === document.activeElement);

/** The keyboard on something, then a key: what has the keyboard as the key is pressed. */
async function press(page, what, key = 'Enter') {
  await what.focus();
  const opener = await here(page);
  await page.keyboard.press(key);
  return opener;
}

const button = (page, name) => page.getByRole('button', { name, exact: true }).first();

/** A link that is on every page, and leads to another one. */
const elsewhere = (page) => page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name: 'Runs', exact: true });

/** Goes to an item of the open menu, and takes it. */
async function take(page, item) {
  const wanted = page.getByRole('menuitem', { name: item });

  // one of them has the keyboard when a menu was opened by it
  await page.locator('[role="menuitem"]:focus').waitFor();
  await until(async () => {
    if (await wanted.evaluate((e) => e === document.activeElement)) {
      return true;
    }
    await page.keyboard.press('ArrowDown');
    return false;
  }, `${item} of a menu`);
  await page.keyboard.press('Enter');
}

/** What a menu offers: it is the menu's button that has the keyboard in the end. */
async function choose(page, menu, item) {
  const opener = await press(page, menu);

  await take(page, item);
  return opener;
}

/** What stands over an open folder. */
const folderMenu = (page) => page.getByRole('region', { name: 'Folder', exact: true }).getByRole('button', { name: /^Actions: / });

const inTree = async (page, name, key) => {
  const tree = page.getByRole('tree');
  const points = () => tree.evaluate((e) => document.getElementById(e.getAttribute('aria-activedescendant') ?? '')?.textContent ?? '');

  await tree.focus();
  await page.keyboard.press('Home');
  await until(async () => {
    if ((await points()).includes(name)) {
      return true;
    }
    await page.keyboard.press('ArrowDown');
    return false;
  }, name);
  return press(page, tree, key);
};

/** Edits, while somebody else writes the same file, and saves. */
async function edited(page, path) {
  await page.locator('.monaco-editor .view-line').first().waitFor();
  await page.locator('.monaco-editor :is(.native-edit-context, textarea.inputarea)').first().focus();
  await page.keyboard.insertText('mine ');
  await page.locator('[role="treeitem"]').filter({ hasText: '●' }).waitFor();
  const opener = await here(page);

  if (path) {
    await command(facts.sandbox, `echo theirs > ${path}`);
    await page.keyboard.press('Control+s');
  }
  return opener;
}

/** A command's record, opened in the list. */
async function record(page, last = 'k') {
  const list = page.getByRole('listbox', { name: 'Records, oldest first' });

  await list.getByRole('option').first().waitFor();
  await list.focus();
  await page.keyboard.press(last);
  const opener = await here(page);

  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Record' }).getByRole('button', { name: 'Copy as' }).waitFor();
  return opener;
}

/** What opens, where, and how: each says what had the keyboard before. */
const DIALOGS = {
  'search or jump': ['', (page) => press(page, elsewhere(page), 'Control+k')],
  'keys': ['sandboxes', (page) => press(page, elsewhere(page), '?')],
  'keys, out of a menu': ['sandboxes', (page) => choose(page, button(page, /^Account/), 'Keyboard')],
  'new sandbox': ['sandboxes', (page) => press(page, button(page, 'New sandbox'))],
  'new token': ['tokens', (page) => press(page, button(page, 'New token'))],
  'revoke a token': ['tokens', (page) => press(page, page.getByRole('button', { name: /^Revoke/ }).first())],
  'break a lock': [`${box}/locks`, (page) => press(page, button(page, 'Break'))],
  'delete a sandbox': [`${box}/overview`, (page) => choose(page, button(page, 'More actions'), 'Delete')],
  'open a port': [`${box}/overview`, (page) => choose(page, button(page, 'More actions'), 'Open a port')],
  'snapshots': [`${box}/overview`, (page) => choose(page, button(page, 'More actions'), 'Snapshots')],
  'new file': [file('/tmp/db'), (page) => press(page, button(page, 'New file'))],
  'new folder': [file('/tmp/db'), (page) => press(page, button(page, 'New folder'))],
  'rename, in the tree': [file('/tmp/db/schema.sql'), (page) => inTree(page, 'schema.sql', 'F2')],
  'delete, in the tree': [file('/tmp/db/schema.sql'), (page) => inTree(page, 'schema.sql', 'Delete')],
  'rename, out of a menu': [file('/tmp/db'), (page) => choose(page, folderMenu(page), 'Rename…')],
  'move, out of a menu': [file('/tmp/db'), (page) => choose(page, folderMenu(page), 'Move…')],
  'delete, out of a menu': [file('/tmp/db'), (page) => choose(page, folderMenu(page), 'Delete…')],
  'a folder as zip': [file('/tmp/db'), (page) => choose(page, folderMenu(page), 'Download as zip')],
  'upload': [file('/tmp/db'), async (page) => {
    const chooser = page.waitForEvent('filechooser');
    const opener = await press(page, button(page, 'Upload files'));

    await (await chooser).setFiles(['a.txt', 'schema.sql'].map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from('x') })));
    await page.getByText('replaces', { exact: true }).waitFor();
    return opener;
  }],
  'conflict': [file('/tmp/db/one.sql'), (page) => edited(page, '/tmp/db/one.sql')],
  'unsaved edits': [file('/tmp/db/two.sql'), async (page) => {
    await edited(page);
    return press(page, elsewhere(page));
  }],
  'paste': [`${box}/terminal`, async (page) => {
    const opener = await here(page);

    await paste(page, 'one\ntwo\n');
    return opener;
  }],
  'end a terminal': [`${box}/terminal`, (page) => press(page, button(page, 'End terminal'))],
  'export': [`${box}/history`, (page) => choose(page, button(page, 'Export'), /JSON/)],
  'run again': [`${box}/history?run=nightly-31&type=command.execute`, async (page) => {
    await record(page);
    return press(page, button(page, 'Run again'));
  }],
};

/** It has the keyboard, and keeps it. */
async function holds(page, name) {
  ok(await comes(() => page.evaluate(() => keyboard.inside())), `${name}: it has the keyboard at once`);
  await settled(page);

  for (const tab of ['Tab', 'Shift+Tab']) {
    const { stops, dark, out } = await round(page, tab);

    is(out, [], `${name}: ${tab} does not leave it`);
    ok(stops < 100, `${name}: ${tab} goes round in it`, stops);
    is(dark, [], `${name}: where the keyboard is can be seen`);
    is(await page.evaluate(() => keyboard.missed()), [], `${name}: all that can be pressed is come to`);
  }
}

const dialogs = (page) => page.getByRole('dialog');

/** Escape closes the one on top, and the keyboard is where it was. */
async function closes(page, name, opener) {
  const before = await dialogs(page).count();

  await page.keyboard.press('Escape');
  ok(await comes(async () => await dialogs(page).count() < before), `${name}: Escape closes it`);
  ok(await comes(() => at(opener)), `${name}: and what opened it has the keyboard`,
    await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
}

async function opened(browser, where, o) {
  const page = await open(browser, o);

  await page.addInitScript(helpers);
  await page.goto(url + where);
  await (where.endsWith('/terminal') ? ready(page) : settled(page));
  return page;
}

const dialogPart = (name, [where, opens]) => async (browser) => {
  const page = await opened(browser, where);
  const opener = await opens(page);

  await dialogs(page).waitFor();
  await holds(page, name);
  await closes(page, name, opener);
  await page.context().close();
};

/** One over the other. */
const nested = {
  'delete a snapshot': async (browser) => {
    const page = await opened(browser, `${box}/overview`);
    const menu = await choose(page, button(page, 'More actions'), 'Snapshots');

    await dialogs(page).waitFor();
    await page.getByRole('textbox', { name: /Name of the snapshot/ }).focus();
    await page.keyboard.type('by-keyboard');
    await page.keyboard.press('Enter');
    await page.getByText('Ready', { exact: true }).waitFor();
    const opener = await press(page, button(page, 'Delete the snapshot by-keyboard'));
    await until(async () => await dialogs(page).count() === 2 || await page.getByRole('dialog', { name: /Delete/ }).count() > 0, 'a question');
    await holds(page, 'delete a snapshot');
    await page.keyboard.press('Escape');
    ok(await comes(() => at(opener)), 'delete a snapshot: Escape closes the question alone, and gives the keyboard back');
    await closes(page, 'snapshots below it', menu);
    await page.context().close();
  },

  'merge by hand': async (browser) => {
    const page = await opened(browser, file('/tmp/db/three.sql'));
    const opener = await edited(page, '/tmp/db/three.sql');

    await dialogs(page).waitFor();
    await press(page, button(page, 'Merge by hand'));
    await button(page, 'Save the merged text').waitFor();
    await holds(page, 'merge by hand');
    await closes(page, 'merge by hand', opener);
    await page.context().close();
  },
};

const records = {
  'an open record': async (browser) => {
    const page = await opened(browser, `${box}/history?run=nightly-31&type=command.execute`, { permissions: ['clipboard-read', 'clipboard-write'] });
    const list = await record(page);
    const region = page.getByRole('region', { name: 'Record' });
    const { stops, dark } = await round(page);

    ok(stops > 15 && stops < 400, 'a record: Tab goes round the page, with it', stops);
    is(dark, [], 'a record: where the keyboard is can be seen');
    is(await page.evaluate(() => keyboard.missed()), [], 'a record: all that can be pressed is come to');

    const output = region.getByRole('tab', { name: 'Output' });
    await output.focus();
    await page.keyboard.press('ArrowRight');
    ok(await comes(() => region.getByRole('tab', { name: 'Replay' }).evaluate((e) => e === document.activeElement && e.getAttribute('aria-selected') === 'true')),
      'a record: arrows go from tab to tab');
    await page.keyboard.press('ArrowLeft');
    await region.getByRole('region', { name: 'stdout' }).waitFor();

    const find = region.getByRole('textbox', { name: 'Find in the output' });
    await find.focus();
    await page.keyboard.type('line');
    await region.getByRole('status').filter({ hasText: '1/3' }).waitFor();
    await page.keyboard.press('Enter');
    await region.getByRole('status').filter({ hasText: '2/3' }).waitFor();
    await page.keyboard.press('Shift+Enter');
    await region.getByRole('status').filter({ hasText: '1/3' }).waitFor();
    await page.keyboard.press('Escape');
    ok(await comes(async () => await find.inputValue() === '') && await find.evaluate((e) => e === document.activeElement),
      'a record: Enter goes through what was found, Escape ends a search, and no more than that');

    const copy = await press(page, button(page, 'Copy as'));
    await page.getByRole('menu').waitFor();
    await page.keyboard.press('Escape');
    ok(await comes(() => at(copy)), 'a record: what can be copied is a menu, and gives the keyboard back');
    ok(await region.isVisible(), 'a record: Escape there closes the menu alone');
    await page.keyboard.press('Enter');
    await take(page, 'curl');
    ok(await comes(async () => (await page.evaluate(() => navigator.clipboard.readText())).includes('curl ')), 'a record: it is copied by keyboard');
    ok(await comes(() => at(copy)), 'a record: and the keyboard is where it was');

    await page.keyboard.press('Escape');
    await region.waitFor({ state: 'detached' });
    ok(await comes(() => at(list)), 'a record: Escape closes it, and the list has the keyboard');

    // the same by its own button
    await page.keyboard.press('Enter');
    await region.getByRole('button', { name: 'Copy as' }).waitFor();
    await press(page, region.getByRole('button', { name: 'Close', exact: true }));
    await region.waitFor({ state: 'detached' });
    ok(await comes(() => at(list)), 'a record: and so it has when its button closes it');
    await page.context().close();
  },

  'a record on a narrow screen': async (browser) => {
    const page = await opened(browser, `${box}/history?run=nightly-31&type=command.execute`, { width: 390 });
    const list = await record(page);

    await holds(page, 'a record over its list');
    await closes(page, 'a record over its list', list);
    await page.context().close();
  },
};

const parts = Object.entries(DIALOGS).map(([name, one]) => [name, dialogPart(name, one)]);
const half = Math.floor(parts.length / 2);

await run(
  { ...Object.fromEntries(parts.slice(0, half)), ...records },
  { ...Object.fromEntries(parts.slice(half)), ...nested },
);

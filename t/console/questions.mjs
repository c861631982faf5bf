// The questions that people come with, each answered within three actions from
// where one stands after signing in.  What counts is what the browser gets: a
// click, a key that is no letter, a text typed in one go.

import { is, ok, open, run, shot, signIn, url } from './lib/browser.mjs';
import { differs } from './lib/diff.mjs';

const rows = (page) => page.getByRole('option');
const record = (page) => page.getByRole('region', { name: 'Record' });

/** Tells of each action as it happens; survives going from page to page. */
const watch = () => {
  let typing = false;
  const act = (what) => {
    typing = what === 'typed';
    globalThis.acted(what);
  };

  addEventListener('pointerdown', (e) => e.isTrusted && act(`clicked ${e.target.textContent.trim().slice(0, 40)}`), true);
  addEventListener('wheel', (e) => e.isTrusted && act('scrolled'), true);
  addEventListener('keydown', (e) => {
    const letter = e.key.length === 1 && !e.ctrlKey && !e.metaKey && !e.altKey;

    if (e.isTrusted && !['Control', 'Shift', 'Alt', 'Meta'].includes(e.key) && !(letter && typing)) {
      act(letter ? 'typed' : `pressed ${e.key}`);
    }
  }, true);
};

/** Signs in; then what is done to answer is counted, and how long it takes. */
async function asked(browser, question, answer) {
  const page = await open(browser, { as: null });
  const actions = [];

  await page.exposeFunction('acted', (what) => actions.push(what));
  await page.addInitScript(watch);
  await page.goto(url);
  await signIn(page);
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  ok(actions.length > 0, `${question}: signing in was counted too`);
  actions.length = 0;

  const start = performance.now();
  await answer(page);
  const took = Math.round(performance.now() - start);

  ok(actions.length > 0 && actions.length <= 3, `${question}: answered within three actions (${actions.length}, ${took} ms)`, ...actions);
  await shot(page, question.replace(/\W+/g, '-').toLowerCase());
  is(page.seen.errors, [], `${question}: no error in the browser's console`);
  await page.context().close();
}

await run({
  'agent': (browser) => asked(browser, 'What did agent report-bot do?', async (page) => {
    await page.getByRole('link', { name: /report-bot/ }).first().click();
    await rows(page).filter({ hasText: 'echo from-report-bot' }).waitFor();
    is(await rows(page).filter({ hasText: 'orders' }).count(), 0, 'its operations, and no others');
  }),

  'failed': (browser) => asked(browser, 'Which command failed and why?', async (page) => {
    await page.getByRole('link', { name: /014_orders/ }).first().click();
    await record(page).getByRole('region', { name: 'stderr' }).getByText('error: relation orders already exists').waitFor();
    await record(page).getByText('Failed · 3').first().waitFor();
    ok(true, 'the command, its exit code and what it wrote');
  }),

  'files of a run': (browser) => asked(browser, 'Which files did run nightly-31 change and how?', async (page) => {
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('link', { name: 'nightly-31', exact: true }).click();
    await rows(page).filter({ hasText: '/tmp/db/schema.sql' }).last().click();
    await record(page).locator('.line-insert').first().waitFor();
    await differs(page, [['create table orders (id int);'], ['create table orders (id int, total int);']], 'which, before and after');
  }),

  'deleted': (browser) => asked(browser, 'What was deleted?', async (page) => {
    await page.getByRole('link', { name: /file\.delete/ }).click();
    await rows(page).filter({ hasText: '/tmp/db/old.sql' }).click();
    await record(page).locator('.line-delete').first().waitFor();
    await differs(page, [['drop table orders;'], []], 'with what stood in it');
  }),

  'replay': (browser) => asked(browser, 'Replay it', async (page) => {
    await page.getByRole('link', { name: /014_orders/ }).first().click();
    await record(page).getByRole('tab', { name: 'Replay' }).click();
    await record(page).getByRole('button', { name: 'Play' }).click();
    await page.waitForFunction(() => document.querySelector('.xterm-rows')?.textContent.includes('already exists'));
    ok(true, 'as it was on the screen');
  }),
});

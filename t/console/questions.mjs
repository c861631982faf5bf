// The questions that people come with, each answered within three actions from
// where one stands after signing in.

import { facts, is, ok, open, run, shot, signIn, url } from './lib/browser.mjs';

const rows = (page) => page.getByRole('option');
const record = (page) => page.getByRole('region', { name: 'Record' });

/** Signs in; counts what is done from there on, and how long it takes. */
async function asked(browser, question, answer) {
  const page = await open(browser, { as: null });
  let actions = 0;
  const act = async (what) => {
    actions++;
    await what;
  };

  await page.goto(url);
  await signIn(page);
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();

  const start = Date.now();
  await answer(page, act);
  const took = Date.now() - start;

  ok(actions <= 3, `${question}: answered within three actions (${actions}, ${took} ms)`);
  await shot(page, question.replace(/\W+/g, '-').toLowerCase());
  is(page.seen.errors, [], `${question}: no error in the browser's console`);
  await page.context().close();
}

await run({
  'agent': (browser) => asked(browser, 'What did agent report-bot do?', async (page, act) => {
    await act(page.getByRole('link', { name: /report-bot/ }).first().click());
    await rows(page).filter({ hasText: 'echo from-report-bot' }).waitFor();
    is(await rows(page).filter({ hasText: 'orders' }).count(), 0, 'its operations, and no others');
  }),

  'failed': (browser) => asked(browser, 'Which command failed and why?', async (page, act) => {
    await act(page.getByRole('link', { name: /014_orders/ }).first().click());
    await record(page).getByRole('region', { name: 'stderr' }).getByText('error: relation orders already exists').waitFor();
    ok(await record(page).getByText('Failed · 3').first().isVisible(), 'the command, its exit code and what it wrote');
  }),

  'files of a run': (browser) => asked(browser, 'Which files did run nightly-31 change and how?', async (page, act) => {
    await act((async () => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill('nightly-31');
      await page.getByRole('option', { name: /Run nightly-31/ }).click();
    })());
    await page.waitForURL(/runs\/nightly-31/);
    await act(rows(page).filter({ hasText: '/tmp/db/schema.sql' }).last().click());
    await record(page).getByText('create table orders (id int, total int);').first().waitFor();
    is((await record(page).getByRole('region', { name: 'Diff' }).innerText()).split('\n').filter((l) => /create|schema/.test(l)).map((l) => l.trim()),
      ['create table orders (id int);', 'create table orders (id int, total int);'], 'before and after, and nothing else');
    await act(record(page).getByRole('tab', { name: 'Files then' }).click());
    await record(page).getByRole('list', { name: 'Files then' }).getByText('/tmp/db/schema.sql').waitFor();
    ok(true, 'and all of them as they stood');
  }),

  'deleted': (browser) => asked(browser, 'What was deleted?', async (page, act) => {
    await act(page.getByRole('link', { name: /file\.delete/ }).click());
    await act(rows(page).filter({ hasText: '/tmp/db/old.sql' }).click());
    await record(page).getByText('drop table orders;').first().waitFor();
    ok(true, 'with what stood in it');
  }),

  'replay': (browser) => asked(browser, 'Replay it', async (page, act) => {
    await act(page.getByRole('link', { name: /014_orders/ }).first().click());
    await act(record(page).getByRole('tab', { name: 'Replay' }).click());
    await act(record(page).getByRole('button', { name: 'Play' }).click());
    await page.waitForFunction(() => document.querySelector('.xterm-rows')?.textContent.includes('already exists'));
    ok(true, 'as it was on the screen');
    is(facts.sandbox.length > 0, true, 'of the sandbox where it was');
  }),
});

import { facts, is, inAll, looks, ok, open, run, settled, shot, until, url } from './lib/browser.mjs';
import { differs } from './lib/diff.mjs';

const rows = (page) => page.getByRole('option');
const record = (page) => page.getByRole('region', { name: 'Record' });
const screen = (page) => page.locator('.xterm-rows').evaluate((e) => [...e.children].map((l) => l.textContent.trimEnd()).join('\n').trimEnd());
const at = async (page) => (await page.getByRole('timer').innerText()).split(' / ').map((s) => Number(s.split(':')[0]) * 60 + Number(s.split(':')[1]));

async function replay(browser, options) {
  const page = await open(browser, options);

  await page.goto(`${url}sandboxes/${facts.sandbox}/history`);
  await rows(page).filter({ hasText: '32mgreen' }).click();
  await record(page).getByRole('tab', { name: 'Replay' }).click();
  await record(page).getByRole('button', { name: 'Play' }).waitFor();
  return page;
}

await run({
  'a command': async (browser) => {
    const page = await replay(browser);
    const player = record(page).getByRole('group', { name: 'Replay' });

    await player.focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('End');
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('later'));
    const [, skipped] = await at(page);
    await player.getByLabel('Skip idle time').uncheck();
    const [, whole] = await until(async () => {
      const now = await at(page);
      return now[1] !== skipped && now;
    }, 'another length');
    ok(whole > 2.3 && skipped < whole - 1, 'time in which nothing happens is left out, or not', `${skipped} ${whole}`);

    await player.focus();
    await page.keyboard.press('0');
    await page.waitForFunction(() => !document.querySelector('.xterm-rows').textContent.includes('later'));
    is((await at(page))[0], 0, '0 leads to the start');
    await page.keyboard.press('5');
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('100%'));
    ok(Math.abs((await at(page))[0] - whole / 2) < 0.2, '5 to the middle');
    ok(!(await screen(page)).includes('later'), 'which shows what was there then');
    await page.keyboard.press('.');
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('later'));
    ok(true, '. is a frame on');
    await page.keyboard.press(',');
    await page.waitForFunction(() => !document.querySelector('.xterm-rows').textContent.includes('later'));
    ok(true, ', a frame back');

    await player.getByLabel('Speed').selectOption('8');
    await page.keyboard.press('Escape');
    await player.focus();
    await page.keyboard.press('Space');
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('later'));
    await player.getByRole('button', { name: 'Play' }).waitFor();
    ok(true, 'it plays to its end, as fast as asked for');

    const [file] = await Promise.all([page.waitForEvent('download'), player.getByRole('button', { name: 'Download as .cast' }).click()]);
    ok(/\.cast$/.test(file.suggestedFilename()), 'the recording can be had');
    is(JSON.parse(Buffer.concat(await (await file.createReadStream()).toArray()).toString().split('\n')[0]).version, 2, 'as asciicast');

    await player.focus();
    await page.keyboard.press('f');
    await page.waitForFunction(() => document.fullscreenElement !== null);
    ok(true, 'on the whole screen');
    await page.keyboard.press('f');
    await page.waitForFunction(() => document.fullscreenElement === null);
    await page.context().close();
  },

  'markers': async (browser) => {
    const page = await open(browser);

    await page.route('**/recording', (route) => route.fulfill({ body: [
      '{"version":2,"width":80,"height":24}', '[0.1,"o","$ "]', '[1.0,"m","make test"]', '[1.1,"o","make test\\r\\nok\\r\\n"]',
      '[2.0,"r","100x30"]', '[3.0,"m","ls <b>"]', '[3.1,"o","$ ls\\r\\nfile-a\\r\\n"]', '',
    ].join('\n') }));
    await page.goto(`${url}sandboxes/${facts.sandbox}/history`);
    await rows(page).filter({ hasText: 'seq 1 400' }).click();
    await record(page).getByRole('tab', { name: 'Replay' }).click();
    await record(page).getByRole('list', { name: 'Commands' }).getByRole('button', { name: /ls <b>/ }).click();
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('make test'));
    ok(!(await screen(page)).includes('file-a'), 'a marker leads to where its command begins');
    await record(page).getByRole('group', { name: 'Replay' }).focus();
    await page.keyboard.press(']');
    await page.waitForFunction(() => document.querySelector('.xterm-rows').textContent.includes('file-a'));
    ok(true, 'keys go from one to the next');
    is(await page.locator('.xterm-rows > div').count(), 30, 'the size is what it was then');
    await page.context().close();
  },

  'a run, step by step': async (browser) => {
    const page = await open(browser);

    await page.goto(`${url}runs/nightly-31`);
    await page.getByRole('button', { name: 'Step through' }).click();
    const steps = page.getByRole('group', { name: 'Step through' });
    await steps.getByText(/^Step 1 of \d+$/).waitFor();
    await steps.getByRole('button', { name: 'Next failure' }).click();
    await record(page).getByRole('region', { name: 'stderr' }).getByText('error: relation orders already exists').waitFor();
    ok(true, 'a run goes to what went wrong');
    await steps.getByRole('button', { name: 'Next step' }).click();
    await record(page).locator('.line-insert').first().waitFor();
    await differs(page, [['create table orders (id int);'], ['create table orders (id int, total int);']], 'before and after, side by side');
    ok(true, 'and on, with the difference that a step made');
    await record(page).getByRole('tab', { name: 'Files then' }).click();
    await record(page).getByRole('list', { name: 'Files then' }).getByText('here').waitFor();
    ok(true, 'and the files as of then');
    await shot(page, 'step');
    await page.context().close();
  },

  'a run, step by step, on a phone': async (browser) => {
    const page = await open(browser, { width: 390 });
    const steps = page.getByRole('group', { name: 'Step through' });

    await page.goto(`${url}runs/nightly-31`);
    await page.getByRole('button', { name: 'Step through' }).click();
    await page.getByRole('dialog', { name: 'Record' }).waitFor();
    await steps.getByText(/^Step 1 of \d+$/).waitFor();
    await steps.getByRole('button', { name: 'Next step' }).click();
    await steps.getByText(/^Step 2 of \d+$/).waitFor();
    await steps.getByRole('button', { name: 'Next failure' }).click();
    await record(page).getByRole('region', { name: 'stderr' }).getByText('error: relation orders already exists').waitFor();
    ok(true, 'a run is gone through there too');
    await shot(page, 'step-390');

    const now = await steps.getByText(/^Step \d+ of/).innerText();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Record' }).waitFor({ state: 'hidden' });
    is(await steps.getByText(/^Step \d+ of/).innerText(), now, 'a record is closed, and one is still where one was');
    await steps.getByRole('button', { name: 'Next step' }).click();
    await page.getByRole('dialog', { name: 'Record' }).waitFor();
    await steps.getByRole('button', { name: 'Close' }).click();
    is([await steps.count(), await page.getByRole('dialog', { name: 'Record' }).count()], [0, 1], 'until one ends it: the record stays');
    await page.context().close();
  },
}, inAll(async (page) => {
  for (const [name, path, tab] of [
    ['timeline', `sandboxes/${facts.sandbox}/history`],
    ['global', 'history?group=actor'],
    ['replay', `sandboxes/${facts.sandbox}/history`, /^(Replay|回放)$/],
    ['diff', 'runs/nightly-31', /^(Diff|差异)$/],
  ]) {
    await page.goto(url + path);
    await rows(page).first().waitFor();
    if (tab) {
      await rows(page).filter({ hasText: name === 'diff' ? 'schema.sql' : '32mgreen' }).last().click();
      await page.getByRole('tab', { name: tab }).click();
    }
    await settled(page);
    await looks(page, name);
  }
}));

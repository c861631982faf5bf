import {
  facts, is, inAll, live, looks, ok, open, run, sees, serious, settled, shot, token, url,
} from './lib/browser.mjs';
import { command } from './lib/gateway.mjs';

const commandsUrl = (id) => `${url}sandboxes/${id}/commands`;
const field = (page) => page.getByRole('textbox', { name: 'Command', exact: true });
const detail = (page) => page.getByRole('region', { name: 'One command' });
const log = (page) => page.getByRole('region', { name: /^(Output|输出)$/ });
const lines = (page) => log(page).locator('[data-stream]').evaluateAll((all) => all
  .map((e) => [e.dataset.stream, e.querySelector('pre').textContent]));

async function commands(browser, id = facts.sandbox) {
  const page = await open(browser);

  await page.goto(commandsUrl(id));
  await field(page).waitFor();
  // texts that come late hide a page for a moment, and with it what has the keyboard
  await settled(page);
  return page;
}

const enter = async (page, text) => {
  await field(page).fill(text);
  await field(page).press('Enter');
};

await run({
  'live, line by line': async (browser) => {
    const page = await commands(browser);

    await page.locator('textarea:focus').waitFor();
    ok(await field(page).evaluate((e) => e === document.activeElement), 'the field has the keyboard');
    // each line waits for the one before to be seen
    await enter(page, 'for i in 1 2 3; do echo "line $i"; until rm "go-$i" 2> /dev/null; do sleep 0.1; done; done; echo "at the end" >&2; exit 3');
    for (const i of [1, 2, 3]) {
      await log(page).getByText(`line ${i}`, { exact: true }).waitFor();
      if (i === 1) {
        await sees(detail(page).getByText('Running', { exact: true }), 'a line is seen while it runs');
      }
      await command(facts.sandbox, `touch go-${i}`);
    }
    ok(true, 'and before the next one is written');
    await detail(page).getByText('Failed · 3').waitFor();
    is(await lines(page), [...[1, 2, 3].map((i) => ['stdout', `line ${i}`]), ['stderr', 'at the end']],
      'all of it, in order, and which was an error');
    ok(/op=/.test(page.url()), 'it has an address');

    await page.reload();
    await detail(page).getByText('Failed · 3').waitFor();
    await detail(page).getByText('line 3').waitFor();
    ok(true, 'which leads to it from the history');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'directory, environment, time-out': async (browser) => {
    const page = await commands(browser);

    await page.getByRole('button', { name: 'Options' }).click();
    await page.getByLabel('Directory').fill('/usr/lib');
    await page.getByLabel('Environment').fill('GREETING=hello there\nnot a variable');
    await sees(page.getByText('Line 2 is not NAME=value.'), 'what is no variable is said');
    await page.getByLabel('Environment').fill('GREETING=hello there');
    await enter(page, 'pwd; echo "$GREETING"');
    await log(page).getByText('hello there').waitFor();
    is((await lines(page)).map(([, l]) => l), ['/usr/lib', 'hello there'], 'it runs there, with that');

    await page.getByLabel('Environment').fill('');
    await page.getByLabel('Time-out, s').fill('x');
    await sees(page.getByText('A number of seconds, or nothing.'), 'a time-out is a number');
    await page.getByLabel('Time-out, s').fill('1');
    await enter(page, 'echo begun; sleep 60');
    await detail(page).getByText('Timed out').waitFor();
    ok(true, 'and ends it when it is over');
    await shot(page, 'options');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'interrupt': async (browser) => {
    const page = await commands(browser);

    const long = `6${Date.now() % 100_000}`;

    await enter(page, `echo waiting; sleep ${long}`);
    await log(page).getByText('waiting', { exact: true }).waitFor();
    await shot(page, 'running');
    await detail(page).getByRole('button', { name: 'Interrupt' }).click();
    await detail(page).getByText('Interrupted', { exact: true }).waitFor();
    ok(true, 'a command is interrupted');

    await enter(page, `pgrep -fx 'sleep ${long}' || echo none`);
    await log(page).getByText('none', { exact: true }).waitFor();
    ok(true, 'and is gone from the sandbox');

    await enter(page, 'echo begun; sleep 600');
    await log(page).getByText('begun', { exact: true }).waitFor();
    await page.waitForURL(/op=/);
    await page.reload();
    await detail(page).getByRole('button', { name: 'Interrupt' }).click();
    await detail(page).getByText('Running', { exact: true }).waitFor({ state: 'detached' });
    ok(true, 'one that a reload has left is found running, and interrupted too');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'a rule against it': async (browser) => {
    const page = await commands(browser);

    await enter(page, 'shutdown now');
    await detail(page).getByText('A policy rule denies this.').waitFor();
    await sees(detail(page).getByText(/Sandboxes are deleted, not shut down\./), 'a rule that denies a command says why');
    await page.getByRole('region', { name: 'Commands' }).getByRole('listitem').filter({ hasText: 'shutdown now' }).first().waitFor();
    ok(true, 'and it is in the history');
    await shot(page, 'denied');
    await page.context().close();
  },

  'a line that is cut': async (browser) => {
    const page = await commands(browser);

    await enter(page, 'echo before; until rm go-on 2> /dev/null; do sleep 0.1; done; exit 5');
    await log(page).getByText('before', { exact: true }).waitFor();
    await page.context().setOffline(true);
    await detail(page).getByText(/The line was cut while it ran. It runs on/).waitFor();
    await command(facts.sandbox, 'touch go-on');
    await page.context().setOffline(false);
    await detail(page).getByText('Failed · 5').waitFor();
    ok(true, 'a line that was cut does not hide how a command has ended');
    await page.context().close();
  },

  'background jobs': async (browser) => {
    const page = await commands(browser);

    await page.getByRole('button', { name: 'Options' }).click();
    await page.getByLabel('In the background').check();
    await enter(page, 'for i in 1 2 3; do echo "tick $i"; sleep 0.5; done; sleep 600');
    await detail(page).getByText('Background job').waitFor();
    await log(page).getByText('tick 2', { exact: true }).waitFor();
    await sees(detail(page).getByText('Running', { exact: true }), 'a job runs, and its log is read as it grows');

    const address = page.url();
    await page.goto(url);
    await page.goto(address);
    await log(page).getByText('tick 1', { exact: true }).waitFor();
    await sees(detail(page).getByText('Running', { exact: true }), 'it is found again, running, with its log');
    await shot(page, 'job');
    is(await serious(page), [], 'axe finds nothing serious');
    await detail(page).getByRole('button', { name: 'Interrupt' }).click();
    await detail(page).getByText(/^Failed/).waitFor();
    ok(true, 'and is stopped from there');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'again': async (browser) => {
    const page = await commands(browser);
    const first = page.getByRole('region', { name: 'Commands' }).getByRole('listitem');

    // by an agent, meanwhile
    await live(page);
    await command(facts.sandbox, 'echo "$PWD at $RANDOM"', { body: { cwd: '/var' }, headers: { 'X-Actor-Id': 'other-bot' } });
    const row = first.filter({ hasText: 'echo "$PWD at $RANDOM"' }).first();
    await row.getByText('other-bot').waitFor();
    ok(true, 'what others run appears by itself');

    await row.getByRole('button', { name: /Run again/ }).click();
    await log(page).getByText(/^\/var at \d+$/).waitFor();
    ok(true, 'and can be run again as it was');
    await page.waitForURL(/op=/);
    const answer = await fetch(new URL(`api/v1/sandboxes/${facts.sandbox}/operations/${new URL(page.url()).searchParams.get('op')}`, url),
      { headers: { Authorization: `Bearer ${token}` } }).then((r) => r.json());
    ok(answer.links.rerun_of?.length > 0, 'on record as that', JSON.stringify(answer.links));

    await detail(page).getByRole('button', { name: 'Edit' }).click();
    is(await field(page).inputValue(), 'echo "$PWD at $RANDOM"', 'a command can be changed before');
    is(await page.getByLabel('Directory').inputValue(), '/var', 'with all that belongs to it');
    await page.getByLabel('Directory').fill('');
    await field(page).fill('');
    await field(page).press('ArrowUp');
    is(await field(page).inputValue(), 'echo "$PWD at $RANDOM"', 'the arrow brings back what was run');

    await field(page).fill('echo needle-in-output');
    await field(page).press('Enter');
    await log(page).getByText('needle-in-output').waitFor();
    await page.getByRole('textbox', { name: 'Search commands and output' }).fill('needle-in-output');
    await page.waitForFunction(() => document.querySelectorAll('section li').length === 1);
    ok(true, 'the history is searched');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'much, and hostile': async (browser) => {
    const page = await commands(browser, facts.other);

    await enter(page, 'seq 1 50000');
    await detail(page).getByText('OK', { exact: true }).waitFor();
    await log(page).getByText('50000', { exact: true }).waitFor();
    ok(await log(page).locator('[data-stream]').count() < 200, 'of many lines only those that are seen are drawn');
    await sees(detail(page).getByText(/earlier lines are not kept here/), 'and what is let go of is said');

    await enter(page, 'printf "\\033[31mred\\033[0m and plain\\n"');
    await log(page).getByText('red', { exact: true }).waitFor();
    ok(await log(page).getByText('red', { exact: true }).evaluate((e) =>
      getComputedStyle(e).color !== getComputedStyle(e.closest('pre')).color), 'colours are shown');

    await enter(page, 'printf "<img src=x onerror=alert(1)>\\033]52;c;ZXZpbA==\\007 \\342\\200\\256gnp.exe\\n"');
    await log(page).getByText('onerror=alert(1)', { exact: false }).waitFor();
    const said = await log(page).innerText();
    ok(said.includes('U+202E') && !said.includes('\u202e'), 'C129 what would act is a sign', said);
    is(await log(page).locator('img').count(), 0, 'markup is text');
    is(page.seen.errors, [], 'no error in the browser, none of CSP');
    await page.context().close();
  },
}, inAll(async (page) => {
  await page.goto(commandsUrl(facts.sandbox));
  await settled(page);
  await looks(page, 'commands');
  await page.getByRole('button', { name: /^(Options|选项)$/ }).click();
  await page.getByRole('textbox', { name: /^(Command|命令)$/ }).fill('for i in 1 2 3 4 5; do echo "migrating table $i"; done; echo "error: relation orders exists" >&2; exit 1');
  await page.keyboard.press('Enter');
  await log(page).getByText('error: relation').waitFor();
  await page.getByText(/^(Failed · 1|失败 · 1)$/).first().waitFor();
  await settled(page);
  await looks(page, 'output');
}));

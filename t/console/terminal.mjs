import {
  facts, is, inAll, looks, ok, open, run, sees, serious, settled, shot, signIn, still, token, until, url,
} from './lib/browser.mjs';
import { command, reload } from './lib/gateway.mjs';
import { another, box, paste, ready, screen, shows, terminalUrl, type } from './lib/terminal.mjs';

/** In the page: how much has come, and how much of it after Ctrl+C was pressed. */
const counting = () => {
  let bytes = 0;
  let pressed = 0;

  globalThis.came = () => bytes - pressed;
  globalThis.WebSocket = class extends WebSocket {
    constructor(...all) {
      super(...all);
      this.addEventListener('message', ({ data }) => { bytes += data.byteLength ?? data.length; });
    }
  };
  addEventListener('keydown', (e) => { if (e.ctrlKey && e.key === 'c') pressed = bytes; }, true);
};

/** A page with a terminal that waits for its first command. */
async function terminal(browser, sandbox = facts.sandbox, { init, ...o } = {}) {
  const page = await open(browser, o);

  page.sent = [];
  page.sockets = [];
  page.received = 0;
  page.on('websocket', (ws) => {
    page.sockets.push(ws);
    ws.on('framereceived', ({ payload }) => { page.received += payload.length; });
    ws.on('framesent', ({ payload }) => page.sent.push(payload));
  });
  if (init) {
    await page.addInitScript(init);
  }
  await page.goto(terminalUrl(sandbox));
  await ready(page);
  return page;
}

const MIB = 1024 * 1024;

/** What a page holds, once what it let go of is swept away. */
async function heap(page) {
  const client = await page.context().newCDPSession(page);

  await client.send('HeapProfiler.collectGarbage');
  const { usedSize } = await client.send('Runtime.getHeapUsage');
  await client.detach();
  return usedSize;
}

/** Bytes that were typed, frame by frame. */
const typed = (page, from = 0) => page.sent.slice(from).filter((p) => typeof p !== 'string' && p[0] === 0).map((p) => Buffer.from(p).subarray(1));

const resizes = (page) => page.sent.filter((p) => typeof p === 'string' && p.includes('"resize"')).map((p) => JSON.parse(p));

await run({
  'a shell at once': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'echo $((6*7))');
    await shows(page, /^42$/);
    ok(true, 'a terminal opens by itself, has the keyboard and answers');

    await page.keyboard.type('echo ta');
    await page.keyboard.press('Control+u');
    await page.keyboard.type('ls -d /et');
    await page.keyboard.press('Tab');
    await shows(page, /ls -d \/etc\//);
    ok(true, 'Tab completes');
    await page.keyboard.press('Control+u');

    await type(page, 'echo begun-$((1+1)); sleep 600');
    await shows(page, /^begun-2$/);
    await page.keyboard.press('Control+c');
    await shows(page, /\^C/);
    await type(page, 'echo back-$((1+1))');
    await shows(page, /^back-2$/);
    ok(true, 'Ctrl+C stops what runs');

    await type(page, 'printf "\\033[31mred\\033[0m \\033[1;32mgreen\\033[0m\\n"');
    await shows(page, /^red green$/);
    const colours = await box(page).locator('.xterm-rows span').evaluateAll((all) => all
      .filter((s) => /^(?:red|green)$/.test(s.textContent)).map((s) => getComputedStyle(s).color));
    is(new Set(colours).size, 2, 'colours are shown');

    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'read out': async (browser) => {
    const page = await terminal(browser);
    const rows = page.locator('.xterm-accessibility-tree');
    const reads = page.getByRole('button', { name: 'Read out by a screen reader' });

    is(await rows.count(), 0, 'a terminal is not read out unasked');
    await reads.click();
    await rows.waitFor({ state: 'attached' });
    await type(page, 'echo for $((2 + 3)) ears');
    await page.keyboard.press('Enter');
    await rows.getByText('for 5 ears', { exact: true }).waitFor({ state: 'attached' });
    ok(true, 'its rows are there for a screen reader');
    is(await serious(page), [], 'axe finds nothing serious');
    await page.reload();
    await ready(page);
    is(await reads.getAttribute('aria-pressed'), 'true', 'which is remembered');
    await page.context().close();
  },

  'a session that ends': async (browser) => {
    const page = await open(browser, { as: null });
    const over = page.getByText('Your session is over.', { exact: false });

    await page.goto(terminalUrl(facts.sandbox));
    await signIn(page);
    await ready(page);
    await type(page, 'kept=yes');
    await page.keyboard.press('Enter');
    await page.context().request.delete(new URL('api/v1/session', url).href, { headers: { Origin: new URL(url).origin } });
    await over.waitFor();
    ok(true, 'a terminal whose session is over leads to the way in');
    await signIn(page);
    await over.waitFor({ state: 'detached' });
    await ready(page);
    await type(page, 'echo "kept: $kept"');
    await page.keyboard.press('Enter');
    await shows(page, /^kept: yes$/);
    ok(true, 'and goes on where it was');
    await page.context().close();
  },

  'a reload': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'for i in $(seq 1 60); do echo "line-$i"; done; N=$((40+2))');
    await shows(page, /^line-60$/);
    const address = page.url();
    await page.reload();
    await ready(page);
    is(page.url(), address, 'a terminal has an address');
    await shows(page, /^line-60$/);
    await type(page, 'echo kept-$N');
    await shows(page, /^kept-42$/);
    ok(true, 'a reload comes back to the same shell');

    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Shift+PageUp');
    }
    await shows(page, /^line-1$/);
    ok(true, 'with what it had written before');

    await page.getByRole('link', { name: 'History', exact: true }).last().click();
    await settled(page);
    await page.getByRole('link', { name: 'Terminal', exact: true }).click();
    await ready(page);
    await type(page, 'echo again-$N');
    await shows(page, /^again-42$/);
    ok(true, 'and so does coming back from another page');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'a line that is cut': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'N=7; echo before-$((N*6))');
    await shows(page, /^before-42$/);
    await page.context().setOffline(true);
    await page.getByText(/The line is cut/).waitFor();
    await page.context().setOffline(false);
    await ready(page);
    await type(page, 'echo after-$((N*6))');
    await shows(page, /^after-42$/);
    is((await screen(page)).filter((r) => r === 'before-42').length, 1, 'a line that was cut comes back by itself, with nothing twice');
    const since = new URL(page.sockets.at(-1).url()).searchParams.get('since');
    ok(Number(since) > 0, 'from the byte that was seen last', since);

    await reload();
    await ready(page);
    await type(page, 'echo reloaded-$((N*6))');
    await shows(page, /^reloaded-42$/);
    ok(true, 'a reload of nginx ends nothing');

    is(page.sockets.filter((ws) => /sbx_|token|code/i.test(ws.url())), [], 'C141 no address has a credential in it');
    await page.context().close();
  },

  'a cut that only we have noticed': async (browser) => {
    const page = await open(browser);
    let cut = false;
    let lines = 0;
    let asked = 0;

    // the gateway never hears of the first one's end, and nobody asked it whose it is
    await page.routeWebSocket(/\/pty\//, (ws) => {
      const server = ws.connectToServer();

      if (lines++ === 0) {
        ws.onMessage((m) => server.send(m));
        ws.onClose(() => {});
      }
    });
    await page.route(/\/operations\?.*pty\.open/, async (route) => {
      if (!cut || asked++ > 0) {
        return cut ? route.continue() : route.abort();
      }

      // nor has the record come yet
      const r = await route.fetch();
      const { items, ...rest } = await r.json();
      return route.fulfill({ response: r, json: { items: items.filter((o) => o.status !== 'started'), ...rest } });
    });
    await page.goto(terminalUrl(facts.sandbox));
    await ready(page);
    await page.evaluate(() => dispatchEvent(new Event('offline')));
    await page.getByText(/The line is cut/).waitFor();
    cut = true;
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await ready(page);
    await type(page, 'echo ours-$((6*7))');
    await shows(page, /^ours-42$/);
    ok(asked > 1, 'a line of ours that is in our way is taken back by itself, once it is on record', asked);
    await page.context().close();
  },

  'C060 from one to another': async (browser) => {
    const page = await terminal(browser);

    await page.context().setOffline(true);
    await page.getByText(/The line is cut/).waitFor();
    for (const id of [facts.other, facts.sandbox, facts.other]) {
      await page.evaluate((to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }, new URL(terminalUrl(id)).pathname);
      await still(page);
    }
    await page.context().setOffline(false);
    await ready(page);
    await page.waitForTimeout(2_000);
    const alive = page.sockets.filter((ws) => !ws.isClosed());
    is(alive.length, 1, 'C060 after a cut and two changes there is one socket');
    ok(alive[0].url().includes(facts.other), 'to the sandbox that is seen');
    await page.context().close();
  },

  'more than is kept': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'head -c 1500000 /dev/zero | tr "\\0" x | fold -w 1000; echo; echo all-$((6*7))');
    await shows(page, /^all-42$/);
    await page.reload();
    await ready(page);
    await shows(page, /^all-42$/);
    await page.keyboard.press('Control+Shift+F');
    await page.getByRole('textbox', { name: 'Find' }).fill('are no longer kept here');
    await page.getByText('1 of 1', { exact: true }).waitFor();
    ok(true, 'what a terminal has let go of is said, where it is missing');
    await page.keyboard.press('Escape');

    // C056: whether the program asked for marks cannot be told any more
    await paste(page, 'echo a\necho b');
    await page.getByText('Each line may run as a command as soon as it is pasted.').waitFor();
    ok(true, 'C056 and a paste is taken for keys then');
    await page.context().close();
  },

  'a rule against it': async (browser) => {
    const page = await open(browser);

    await page.goto(terminalUrl(facts.locked));
    await page.getByText('A policy rule denies this.').waitFor();
    await sees(page.getByText(/no-terminals/), 'a rule that denies a terminal is named');
    await shot(page, 'denied');
    await page.context().close();
  },

  'C049 C060 takeover': async (browser) => {
    const mine = await terminal(browser);
    await type(mine, 'echo mine-$((6*7))');
    await shows(mine, /^mine-42$/);

    const theirs = await open(browser);
    await theirs.goto(mine.url());
    await theirs.getByRole('button', { name: 'Take it over' }).waitFor();
    ok(true, 'a terminal that is open elsewhere is not taken without asking');
    await type(mine, 'echo still-$((6*7))');
    await shows(mine, /^still-42$/);
    ok(true, 'and goes on there');
    await shot(theirs, 'held');

    await theirs.getByRole('button', { name: 'Take it over' }).click();
    await ready(theirs);
    await shows(theirs, /^mine-42$/);
    await mine.getByText(/taken this terminal over|was taken over/).waitFor();
    await shot(mine, 'taken');
    ok(true, 'C049 whoever had it is told that it was taken');

    const sockets = mine.sockets.length;
    await mine.waitForTimeout(2_500);
    is(mine.sockets.length, sockets, 'C060 and does not fight for it');
    await type(theirs, 'echo theirs-$((6*7))');
    await shows(theirs, /^theirs-42$/);
    ok(true, 'which works for the one who took it');
    await mine.context().close();
    await theirs.context().close();
  },

  'CJK': async (browser) => {
    const page = await terminal(browser);

    await page.keyboard.insertText('echo 你好世界');
    await page.keyboard.press('Enter');
    await shows(page, /^你好世界$/);
    ok(true, 'text of an input method is typed');

    const client = await page.context().newCDPSession(page);
    await page.keyboard.type('echo ');
    await client.send('Input.imeSetComposition', { text: 'nihao', selectionStart: 5, selectionEnd: 5 });
    await client.send('Input.imeSetComposition', { text: '再见', selectionStart: 2, selectionEnd: 2 });
    is((await screen(page)).filter((r) => r.includes('nihao')).length, 0, 'what is being composed is not typed yet');
    await client.send('Input.insertText', { text: '再见' });
    await page.keyboard.press('Enter');
    await shows(page, /^再见$/);
    ok(true, 'what was composed is typed once');

    await type(page, 'clear; printf "中文字|\\nabcdef|\\n"');
    await shows(page, /^abcdef\|$/);
    const ends = await box(page).locator('.xterm-rows > div').evaluateAll((rows) => rows
      .filter((r) => r.textContent.trimEnd().endsWith('|')).map((r) => {
        const walker = document.createTreeWalker(r, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          const at = node.textContent.indexOf('|');
          if (at >= 0) {
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            return range.getBoundingClientRect().left;
          }
        }
        return -1;
      }));
    ok(ends.length === 2 && Math.abs(ends[0] - ends[1]) < 1, 'a wide character has two columns', ends);
    await shot(page, 'cjk');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'C135 a character in two pieces': async (browser) => {
    const page = await terminal(browser);
    const ends = [];

    page.sockets.at(-1).on('framereceived', ({ payload }) => ends.push(Buffer.from(payload).subarray(-2).toString('hex')));
    // the second piece is written when the first has been seen to come
    await type(page, 'rm -f on; printf "a\\342\\200"; until rm on 2> /dev/null; do sleep 0.1; done; printf "\\224b\\n"');
    await until(() => ends.includes('e280'), 'half a character');
    await command(facts.sandbox, 'touch on');
    await shows(page, /^a\u2014b$/);
    ok(true, 'C135 a character whose bytes come apart is whole');
    await page.context().close();
  },

  'C056 C057 pasting': async (browser) => {
    const page = await terminal(browser);

    await paste(page, 'echo one-$((1+1))');
    await shows(page, /echo one-/);
    await page.keyboard.press('Enter');
    await shows(page, /^one-2$/);
    ok(true, 'one line is pasted as it is');

    await type(page, 'clear; bind "set enable-bracketed-paste off"');
    await paste(page, 'echo first-$((1+1))\necho second-$((1+1))\n');
    await page.getByRole('dialog', { name: 'Paste 2 lines?' }).waitFor();
    await shot(page, 'paste');
    is(await serious(page), [], 'axe finds nothing serious in it');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await type(page, 'echo not-$((1+1))');
    await shows(page, /^not-2$/);
    ok(!(await screen(page)).some((r) => /first-/.test(r)), 'several lines are asked for, and not pasted if not wanted');

    await paste(page, 'echo first-$((1+1))\necho second-$((1+1))\n');
    await page.getByRole('button', { name: 'Paste', exact: true }).click();
    await shows(page, /^second-2$/);
    await shows(page, /^first-2$/);
    ok(true, 'and pasted if they are');
    await type(page, 'echo key-$((1+1))');
    await shows(page, /^key-2$/);
    ok(true, 'the keyboard is back in the terminal');

    // more than a frame may have, and a key behind it
    await type(page, 'clear; stty -echo -icanon; echo now-$((1+1)); head -c 1000000 | md5sum; read -n 1 K; stty echo icanon; echo "key=$K"');
    await shows(page, /^now-2$/);
    const before = page.sent.length;
    await paste(page, 'x'.repeat(1_000_000));
    await page.getByRole('button', { name: 'Paste', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('k');
    await shows(page, /^key=k$/);
    const sum = (await screen(page)).find((r) => /^[0-9a-f]{32}/.test(r)).slice(0, 32);
    const { createHash } = await import('node:crypto');
    is(sum, createHash('md5').update('x'.repeat(1_000_000)).digest('hex'), 'C057 a large paste arrives once and in order');
    ok(page.sent.slice(before).every((p) => p.length <= 16 * 1024 + 1), 'in frames of bounded size');
    const frames = typed(page, before);
    is(frames.reduce((sum, f) => sum + f.length, 0), 1_000_001, 'C057 each byte is sent once');
    is([frames.at(-1).toString(), Buffer.concat(frames).indexOf('k')], ['k', 1_000_000], 'C057 a key that is pressed meanwhile comes behind it');
    await page.context().close();
  },

  'C054 C055 size': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'stty size');
    const [, rows, cols] = /^(\d+) (\d+)$/.exec((await shows(page, /^\d+ \d+$/)).find((r) => /^\d+ \d+$/.test(r)));
    ok(Number(cols) > 100 && Number(rows) > 20, 'the shell knows how large the terminal is', cols, rows);

    const before = resizes(page).length;
    for (let i = 0; i < 20; i++) {
      await page.setViewportSize({ width: 1000 + i * 10, height: i % 2 ? 700 : 500 });
    }
    // the shell has the size that the page has in the end
    await until(() => ![undefined, Number(cols)].includes(resizes(page)[before] && resizes(page).at(-1).cols), 'another size');
    await until(async () => {
      await type(page, 'clear; stty size');
      const last = resizes(page).at(-1);
      return shows(page, new RegExp(`^${last.rows} ${last.cols}$`), 2_000).catch(() => false);
    }, 'the size of the shell');
    ok(resizes(page).length - before <= 10, 'C055 many changes are told as few', resizes(page).length - before);
    const last = resizes(page).at(-1);
    ok(Number(last.cols) !== Number(cols), 'another size is told');

    // the page has another size when the line comes back
    await page.context().setOffline(true);
    await page.getByText(/The line is cut/).waitFor();
    const cut = resizes(page).length;
    await page.setViewportSize({ width: 1100, height: 640 });
    await still(page);
    await page.context().setOffline(false);
    await ready(page);
    await type(page, 'clear; stty size');
    await until(() => resizes(page).length > cut, 'a size after the cut');
    const now = resizes(page).at(-1);
    await shows(page, new RegExp(`^${now.rows} ${now.cols}$`));
    ok(now.cols !== last.cols || now.rows !== last.rows, 'C054 after a cut the present size is told');
    is(resizes(page).length - cut, 1, 'C054 once');

    await another(page);
    const told = resizes(page).length;
    await page.setViewportSize({ width: 900, height: 600 });
    await until(() => resizes(page).length > told, 'a new size');
    ok(resizes(page).every((r) => r.cols >= 2 && r.rows >= 2), 'C054 a terminal that is not seen tells no size');
    await page.context().close();
  },

  'tabs': async (browser) => {
    const page = await terminal(browser, facts.other);
    const tabs = page.getByRole('tablist', { name: 'Terminals' }).getByRole('tab');

    await type(page, 'W=first');
    await another(page);
    is(await tabs.count(), 2, 'a second terminal beside the first');
    await type(page, 'echo "w=<$W>"');
    await shows(page, /^w=<>$/);
    await tabs.first().click();
    await page.locator('[role="tab"][aria-selected="true"]').and(tabs.first()).waitFor();
    await type(page, 'echo "w=<$W>"');
    await shows(page, /^w=<first>$/);
    ok(true, 'each with its own shell, and the keyboard in the one that is seen');

    await page.keyboard.press('Control+Shift+ArrowUp');
    ok(await tabs.first().evaluate((e) => e === document.activeElement), 'the keyboard gets out of a terminal');
    await page.keyboard.press('ArrowRight');
    await until(() => tabs.nth(1).evaluate((e) => e === document.activeElement), 'the keyboard at the other tab');
    await page.keyboard.press('Enter');
    await page.locator('[role="tab"][aria-selected="true"]').and(tabs.nth(1)).waitFor();
    await type(page, 'echo "w=<$W>-again"');
    await shows(page, /^w=<>-again$/);
    ok(true, 'and into another');

    await type(page, 'exit 3');
    await page.getByText('The shell has ended with exit code 3.').waitFor();
    await shot(page, 'exited');
    await page.getByRole('button', { name: 'Start it again' }).click();
    await ready(page);
    await type(page, 'echo new-$((6*7))');
    await shows(page, /^new-42$/);
    ok(true, 'a shell that has ended says so, and can be started again');

    await page.getByRole('button', { name: 'End terminal' }).click();
    const dialog = page.getByRole('dialog', { name: 'End this terminal?' });
    await shot(page, 'end');
    await dialog.getByRole('button', { name: 'End terminal' }).click();
    await page.waitForFunction(() => document.querySelectorAll('[role="tablist"][aria-label="Terminals"] [role="tab"]').length === 1);
    ok(true, 'ending one asks, and leaves the others');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'on a phone': async (browser) => {
    const page = await terminal(browser, facts.other, { width: 390, hasTouch: true, isMobile: true });

    await type(page, 'echo begun-$((1+1)); sleep 600');
    await shows(page, /^begun-2$/);
    await page.getByRole('button', { name: 'Ctrl+C' }).tap();
    await shows(page, /\^C/);
    await type(page, 'echo $((6*7))');
    await shows(page, /^42$/);
    ok(true, 'the keys that a phone has not got are buttons');
    await shot(page, 'phone');
    is(await serious(page), [], 'axe finds nothing serious');
    await page.context().close();
  },

  'find and links': async (browser) => {
    const page = await terminal(browser);

    await type(page, 'clear; for i in 1 2 3; do echo "needle $i"; done; echo see http://example.com/a?b=1');
    await shows(page, /^needle 3$/);
    await page.keyboard.press('Control+Shift+F');
    await page.getByRole('textbox', { name: 'Find' }).fill('needle ');
    await page.getByText(/^\d of \d$/).waitFor();
    ok(/of [34]$/.test(await page.getByText(/^\d of \d$/).innerText()), 'finds and counts');
    await shot(page, 'find');
    is(await serious(page), [], 'axe finds nothing serious');
    await page.keyboard.press('Escape');
    await type(page, 'echo typed-$((6*7))');
    await shows(page, /^typed-42$/);
    ok(true, 'Esc gives the keyboard back');

    const at = await box(page).locator('.xterm-rows > div', { hasText: /^see http/ }).boundingBox();
    await page.mouse.move(at.x + 100, at.y + 8);
    await box(page).locator('.xterm-cursor-pointer').waitFor();
    await page.mouse.click(at.x + 100, at.y + 8);
    await page.getByRole('dialog', { name: 'Open this address?' }).waitFor();
    await sees(page.getByRole('region', { name: 'Open this address?' }).getByText('http://example.com/a?b=1'), 'a link asks, and says where it leads');
    await shot(page, 'link');
    await page.keyboard.press('Escape');
    is(page.seen.foreign, [], 'nothing has left for there');
    await page.context().close();
  },

  'C058 a flood': async (browser) => {
    const page = await terminal(browser, facts.other, { init: counting });

    const calm = await heap(page);
    await type(page, 'yes "a line of a flood that does not end by itself"');
    await until(() => page.received > 8 * MIB, 'a flood');
    const more = await heap(page) - calm;
    ok(more < 48 * MIB, `C058 what a flood leaves in a page is bounded (${Math.round(more / MIB)} MiB more)`);
    await page.keyboard.press('Control+c');
    await type(page, 'clear; echo calm-$((6*7))');
    await shows(page, /^calm-42$/);
    const drained = await page.evaluate(() => came());
    await type(page, 'clear; echo over-$((6*7))');
    await shows(page, /^over-42$/);
    const after = await page.evaluate(() => came()) - drained;
    // within a second where nothing else runs.  How long it takes on another machine
    // is how long it takes to draw what was on its way: the buffers of two connections
    ok(after < MIB / 16, `C058 Ctrl+C ends a flood: ${Math.round(drained / 1024)} KiB were on their way, then nothing comes`, after);

    // what comes last comes while much waits to be drawn
    await type(page, 'clear; yes "a line of a flood" | head -c 48M; echo; echo end-$((6*7))');
    await shows(page, /^end-42$/);
    ok((await screen(page)).some((r) => /^a line of a flood$/.test(r)), 'a flood that ends by itself shows its end, and what stood before it');
    await page.context().close();
  },

  'a session replayed': async (browser) => {
    const page = await terminal(browser, facts.replayed);

    await type(page, 'echo first-$((6*7))');
    await shows(page, /^first-42$/);
    await type(page, 'printf "\\033[31mred\\033[0m and second-$((6*7))\\n"');
    await shows(page, /^red and second-42$/);
    const [seen] = (await screen(page)).filter((r) => /second-42/.test(r));
    await type(page, 'exit');
    await page.getByText('The shell has ended').waitFor();

    await page.goto(terminalUrl(facts.replayed).replace(/terminal$/, 'history?type=pty.open'));
    await page.getByRole('option').filter({ hasText: /OK|Failed/ }).last().click();
    const record = page.getByRole('region', { name: 'Record' });
    const has = (text) => page.waitForFunction((t) => document.querySelector('.xterm-rows')?.textContent.includes(t), text);
    await record.getByRole('tab', { name: 'Replay' }).click();
    const markers = record.getByRole('list', { name: 'Commands' });
    await markers.getByRole('button', { name: /echo first-/ }).waitFor();
    ok(await markers.getByRole('button', { name: /second-/ }).count() > 0, 'the commands that were typed are its markers');

    await record.getByRole('button', { name: 'Play' }).click();
    await has('red and second-42');
    ok(true, 'a session plays to its end, as it was on the screen');
    is(await record.locator('.xterm-rows > div').evaluateAll((all) => all.map((r) => r.textContent.replaceAll('\u00a0', ' ').trimEnd()).filter((r) => /^red/.test(r))),
      [seen], 'letter by letter');
    await shot(page, 'replayed');

    await markers.getByRole('button', { name: /echo first-/ }).click();
    await page.waitForFunction(() => !document.querySelector('.xterm-rows').textContent.includes('second-42'));
    ok(true, 'a marker leads to where its command was typed');
    await markers.getByRole('button', { name: /second-/ }).first().click();
    await has('first-42');
    ok(true, 'the next one to what the first had written');
    is(page.seen.errors, [], 'no error in the browser');
    await page.context().close();
  },

  'C130 hostile output': async (browser) => {
    const page = await open(browser, { permissions: ['clipboard-read', 'clipboard-write'] });

    await page.goto(terminalUrl(facts.other));
    await ready(page);
    await page.evaluate(() => navigator.clipboard.writeText('mine'));
    const title = await page.title();
    await type(page, 'printf "\\033]52;c;ZXZpbA==\\007\\033]0;evil\\007\\033]2;evil\\007\\033[3;500;500t\\033]8;;javascript:alert(1)\\007click\\033]8;;\\007 done\\n"');
    await shows(page, /^click done$/);
    is(await page.evaluate(() => navigator.clipboard.readText()), 'mine', 'OSC 52 does not write the clipboard');
    is(await page.title(), title, 'a title is not set');

    const at = await box(page).locator('.xterm-rows > div', { hasText: /^click done/ }).boundingBox();
    await page.mouse.move(at.x + 20, at.y + 8);
    await page.mouse.click(at.x + 20, at.y + 8);
    await still(page, 300);
    is(await page.getByRole('dialog').count(), 0, 'a link to a script is none');

    await type(page, 'printf "<img src=x onerror=alert(1)>%s\\n" "$(printf "a\\314\\201%.0s" $(seq 40))"');
    await shows(page, /^<img src=x onerror=alert\(1\)>a/);
    is(await box(page).locator('img').count(), 0, 'markup is text');
    await shot(page, 'hostile');
    is(page.seen.errors, [], 'no error in the browser, none of CSP');
    await page.context().close();
  },
}, inAll(async (page) => {
  await page.goto(terminalUrl(facts.seen));
  await ready(page);
  await type(page, 'clear; ls --color=always -l / | head -12; printf "\\033[31merror:\\033[0m relation \\"orders\\" exists\\n\\033[33mwarning\\033[0m \\033[32mok\\033[0m \\033[34mblue\\033[0m \\033[35mmagenta\\033[0m \\033[36mcyan\\033[0m \\033[90mgrey\\033[0m 中文，好\\n"');
  await shows(page, /中文/);
  await looks(page, 'terminal');
}));

// C133, C042: the console behind outer proxies: one that takes a prefix off, one
// that passes whole buffers only.

import { facts, is, ok, open, run, sees, settled, signIn } from './lib/browser.mjs';
import { command } from './lib/gateway.mjs';
import { outer } from './lib/outer.mjs';
import { ready, shows, type } from './lib/terminal.mjs';

const PREFIX = '/tools/sbx';
const BUFFER = 8 * 1024;

/** Passes a stream on when a buffer of it is full, as nginx does with `proxy_ignore_headers X-Accel-Buffering`. */
const inBuffers = (answer, res) => {
  if (!answer.headers['content-type']?.startsWith('text/event-stream')) {
    answer.pipe(res);
    return;
  }

  let held = Buffer.alloc(0);

  res.flushHeaders();
  answer.on('data', (bytes) => {
    held = Buffer.concat([held, bytes]);
    const full = held.length - held.length % BUFFER;

    if (full > 0) {
      res.write(held.subarray(0, full));
      held = held.subarray(full);
    }
  });
  answer.on('end', () => res.end(held));
};

const prefixed = await outer({ prefix: PREFIX });
const buffered = await outer({ pass: inBuffers });
const { mount } = prefixed;

await run({
  'C133 a prefix': async (browser) => {
    const page = await open(browser, { origin: mount, as: null });

    for (const at of ['', '/', '/sandboxes', '/sandboxes/', `/sandboxes/${facts.sandbox}/history?status=failed`]) {
      await page.goto(mount + at);
      if (at === '') {
        await signIn(page);
        is(page.url(), `${mount}/`, 'C133 without its slash one redirect leads to it');
      }
      await settled(page);
      ok(true, `C133 ${PREFIX}/console${at} is there`);
    }

    await page.getByRole('option').first().click();
    await page.getByRole('region', { name: 'stderr' }).waitFor();
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Sandboxes', exact: true }).click();
    await page.getByRole('link', { name: 'report-builder', exact: true }).click();
    await page.getByRole('option').first().waitFor();
    is(page.url(), `${mount}/sandboxes/${facts.other}/history`, 'C133 and all links stay below it');

    await page.getByRole('link', { name: 'Terminal', exact: true }).click();
    await ready(page);
    await type(page, 'echo $((6*7))');
    await shows(page, /^42$/);
    ok(true, 'C133 and sockets');
    is(page.seen.calls.filter((c) => !c.includes(` ${PREFIX}/`)), [], 'C133 as do all calls');
    is(page.seen.errors, [], 'C133 without an error');
    is(page.seen.foreign, [], 'C133 or another host');
    await page.context().close();
  },
}, {
  'C042 whole buffers': async (browser) => {
    const page = await open(browser, { origin: `${buffered.mount}/`, as: null });
    const streams = [];

    page.on('request', (r) => {
      const { pathname, searchParams } = new URL(r.url());

      if (/\/live$/.test(pathname)) {
        streams.push(searchParams.get('padding'));
      }
    });
    // nobody else works in this one: what others do would fill a buffer too
    await page.goto(`${buffered.mount}/sandboxes/${facts.sandbox}/history`);
    await signIn(page);
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
    await command(facts.sandbox, 'echo behind whole buffers');
    await sees(page.getByRole('option').filter({ hasText: 'echo behind whole buffers' }).getByText('OK'), 'C042 what happens is told behind a proxy that passes whole buffers only');
    is([streams[0], Number(streams.at(-1)) >= BUFFER], [null, true], 'C042 signs of life fill a buffer when nothing has come through');
    is(page.seen.errors, [], 'C042 without an error');
    await page.context().close();
  },
});

prefixed.close();
buffered.close();

// C133: the console behind an outer proxy that takes a prefix off.

import { createServer, request } from 'node:http';
import { facts, is, ok, open, run, sees, settled, signIn, url } from './lib/browser.mjs';
import { ready, shows, type } from './lib/terminal.mjs';

const PREFIX = '/tools/sbx';
const inner = new URL(url);

const outer = createServer((req, res) => {
  if (!req.url.startsWith(`${PREFIX}/`)) {
    res.writeHead(404).end();
    return;
  }

  const passed = request({
    host: inner.hostname, port: inner.port, method: req.method, path: req.url.slice(PREFIX.length),
    // Host stays: a session is good for the origin that the browser sees
    headers: req.headers,
  }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers);
    answer.pipe(res);
  });

  passed.on('error', () => res.destroy());
  res.on('close', () => passed.destroy());
  req.pipe(passed);
});

outer.on('upgrade', (req, client) => {
  const passed = request({
    host: inner.hostname, port: inner.port, path: req.url.slice(PREFIX.length), headers: req.headers,
  });

  passed.on('upgrade', (answer, upstream, first) => {
    const { rawHeaders: raw } = answer;
    const head = raw.map((h, i) => (i % 2 ? `${raw[i - 1]}: ${h}\r\n` : '')).join('');

    client.write(`HTTP/1.1 101 Switching Protocols\r\n${head}\r\n`);
    client.write(first);
    upstream.pipe(client).pipe(upstream);
    upstream.on('error', () => client.destroy());
  });
  passed.on('response', () => client.destroy());
  passed.on('error', () => client.destroy());
  client.on('error', () => passed.destroy());
  passed.end();
});

await new Promise((done) => outer.listen(0, '127.0.0.1', done));
const mount = `http://127.0.0.1:${outer.address().port}${PREFIX}/console`;

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
});

outer.closeAllConnections();
outer.close();

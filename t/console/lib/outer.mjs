// A proxy in front of the gateway, as others have one: it takes a prefix off, and
// may pass answers in its own way.

import { createServer, request } from 'node:http';
import { url } from './browser.mjs';

const inner = new URL(url);

/** Where the console is behind it, and how it ends. */
export async function outer({ prefix = '', pass = (answer, res) => answer.pipe(res) } = {}) {
  const server = createServer((req, res) => {
    if (!req.url.startsWith(`${prefix}/`)) {
      res.writeHead(404).end();
      return;
    }

    const passed = request({
      host: inner.hostname, port: inner.port, method: req.method, path: req.url.slice(prefix.length),
      // Host stays: a session is good for the origin that the browser sees
      headers: req.headers,
    }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      pass(answer, res);
    });

    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    req.pipe(passed);
  });

  server.on('upgrade', (req, client) => {
    const passed = request({
      host: inner.hostname, port: inner.port, path: req.url.slice(prefix.length), headers: req.headers,
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

  await new Promise((done) => server.listen(0, '127.0.0.1', done));

  return {
    mount: `http://127.0.0.1:${server.address().port}${prefix}/console`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

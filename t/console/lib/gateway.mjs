// What tests do to the gateway while a page is open, and how they know that it
// is done.

import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { facts, token, until, url } from './browser.mjs';

const stat = (pid) => {
  try {
    // the name stands in brackets, and may hold anything
    const [, name, rest] = /\((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    const [state, parent] = rest.split(' ');

    return state === 'Z' ? null : { pid, name, parent: Number(parent) };
  } catch {
    return null;    // it is gone
  }
};

const childrenOf = (parent) => readdirSync('/proc').filter((n) => /^\d+$/.test(n))
  .map((n) => stat(Number(n))).filter((p) => p && p.parent === parent);

const program = (name) => childrenOf(facts.gateway).find((p) => p.name === name)?.pid;

const workers = () => {
  const nginx = program('nginx');
  return nginx === undefined ? [] : childrenOf(nginx).map((p) => p.pid);
};

/** nginx reads its configuration again: there are other workers then. */
export async function reload() {
  const before = workers();

  process.kill(facts.gateway, 'SIGHUP');
  await until(() => workers().some((pid) => !before.includes(pid)), 'a reload');
}

/** The helper dies, and another one takes its place. */
export async function restartHelper() {
  const before = program('sandbox-helper');

  process.kill(before, 'SIGKILL');
  await until(() => ![undefined, before].includes(program('sandbox-helper')), 'another helper');
  await until(async () => (await (await fetch(new URL('api/v1/health', url))).json()).status === 'ok', 'a healthy gateway');
}

/** An agent's request, on a connection of its own: one that is kept may be closed by a reload. */
export const agent = (id, route, { method = 'GET', headers, body } = {}) => new Promise((done, fail) => {
  const asked = request(new URL(`../v1/sandboxes/${id}/proxy/44772/${route}`, url), {
    method, agent: false, headers: { 'OPEN-SANDBOX-API-KEY': token, 'X-Actor-Id': 'etl-bot', ...headers },
  }, async (answer) => {
    try {
      done({ status: answer.statusCode, text: Buffer.concat(await answer.toArray()).toString() });
    } catch (e) {
      fail(e);
    }
  });

  asked.on('error', fail);
  asked.end(body);
});

/** An agent's command, to its end: what it says. */
export const command = async (id, text, o = {}) => (await agent(id, 'command', {
  method: 'POST', body: JSON.stringify({ command: text, ...o.body }), headers: o.headers,
})).text;

/** Where a request is sent so that its answer begins well, and breaks off: for route.continue({ url }). */
export async function breaksOff(type = 'application/octet-stream') {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { 'Content-Type': type, 'Content-Length': 1000 });
    answer.write('as far as here', () => setTimeout(() => answer.destroy(), 20));
  }).listen(0, '127.0.0.1');

  await new Promise((done) => server.once('listening', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

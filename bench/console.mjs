import { createReadStream, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { parseArgs } from 'node:util';

const { values: o } = parseArgs({ options: {
  records: { type: 'string', default: '1000000' },
  seconds: { type: 'string', default: '10' },
} });
const RECORDS = Number(o.records);
const SECONDS = Number(o.seconds);
// a machine that is busy draws few in that time: it goes on until there is something to tell of
const FEWEST = 31;

if (!(RECORDS > 0) || !(SECONDS > 0)) {
  process.stderr.write('usage: bench/console [--records N] [--seconds N]\n');
  process.exit(2);
}

const { chromium } = createRequire(new URL('../html/package.json', import.meta.url))('playwright-core');
const ROOT = 'build/console';
const result = {};
const say = (name, value) => process.stdout.write(`${name.padEnd(44)} ${value}\n`);


// --- a history of any length ----------------------------------------------------------

const AT = Date.parse('2026-01-01T00:00:00Z');

function record(n) {
  const failed = n % 19 === 0;
  const file = n % 5 === 0;

  return {
    seq: n, cursor: n, id: `${n.toString(16).padStart(8, '0')}-0000-7000-8000-000000000000`, sandbox_id: 's1', source: 'sdk',
    type: file ? 'file.write' : 'command.execute', status: failed ? 'failed' : 'succeeded',
    started_at: new Date(AT + n * 1000).toISOString(), completed_at: new Date(AT + n * 1000 + n % 900).toISOString(), duration_ms: n % 900,
    actor: { type: 'agent', id: `bot-${Math.floor(n / 37) % 5}`, thread: null, run: `run-${Math.floor(n / 400)}`, correlation: null, parent: null, identity: null },
    summary: file ? `/workspace/src/module-${n % 211}/file-${n}.ts` : `npm run build -- --target package-${n} --verbose && echo done`,
    summary_bytes: 60, exit_code: failed ? 1 : 0, http_status: 200, bytes_in: 10, bytes_out: 20,
    output: file ? null : { stdout_bytes: 900, stderr_bytes: failed ? 40 : 0, stdout_total_bytes: 900, stderr_total_bytes: failed ? 40 : 0, complete: true, state: 'complete' },
    file: file ? { path: `/workspace/file-${n}`, old_path: null, change: 'write', before_hash: null, after_hash: 'x', before_size: 10, after_size: 20 + n % 99, has_diff: true } : null,
    verdict: { decision: 'allow', rule: 'default' }, lock: { waited_ms: n % 97 === 0 ? 120 : 0 }, chain: { hash: 'x' }, error_code: null, reason: null, folded: null,
  };
}

function page(q) {
  const limit = Number(q.get('limit') ?? 100);
  const asc = q.get('order') === 'asc';
  const [lo, hi] = [Number(q.get('after') ?? 0) + 1, Math.min(RECORDS, Number(q.get('before') ?? RECORDS + 1) - 1)];
  const first = asc ? lo : Math.max(lo, hi - limit + 1);
  const last = asc ? Math.min(hi, lo + limit - 1) : hi;
  const items = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => record(first + i));
  const buckets = Number(q.get('buckets') ?? 0);
  const none = { values: [], other: 0 };

  return {
    items: asc ? items : items.reverse(), next: (asc ? last < hi : first > lo) ? (asc ? last : first) : null, previous: null, gaps: [], complete: true,
    facets: { total: RECORDS, failed: Math.floor(RECORDS / 19), exact: true, type: none, status: none, actor: none, sandbox: none, source: none },
    histogram: { from: new Date(AT).toISOString(), to: new Date(AT + RECORDS * 1000).toISOString(), step_ms: 1, exact: true,
      counts: Array.from({ length: buckets }, (_, i) => ({ total: 50 + (i * 37) % 90, failed: i % 7 })) },
  };
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

const server = createServer((req, res) => {
  const { pathname, searchParams } = new URL(req.url, 'http://x');
  const api = /^\/console\/api\/v1\/(.*)$/.exec(pathname)?.[1];
  const json = (v, status = 200) => res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(v));

  if (api === undefined) {
    const asset = /^\/console\/(assets\/[\w.-]+|icon\.svg)$/.exec(pathname)?.[1];
    const file = join(ROOT, asset ?? 'index.html');
    const zipped = statSync(`${file}.gz`, { throwIfNoEntry: false }) !== undefined;

    res.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'text/plain', ...(zipped ? { 'Content-Encoding': 'gzip' } : {}) });
    createReadStream(zipped ? `${file}.gz` : file).pipe(res);
  } else if (api === 'session') {
    json({ actor: { type: 'console', id: 'bench' }, role: 'admin', expires_at: null });
  } else if (api === 'health') {
    json({ status: 'ok', version: 'bench' });
  } else if (/operations$/.test(api)) {
    json(page(searchParams));
  } else if (/\/output$/.test(api)) {
    json({ status: 'failed', state: 'complete', complete: true, last: 0, next: null,
      items: [{ n: 0, stream: 'stderr', at: '', bytes: 40, text: 'error: the build of this package failed\n' }] });
  } else if (/live$/.test(api)) {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': here\n\n');
  } else {
    json({ code: 'GATEWAY_NOT_FOUND', message: 'not in this bench', details: {} }, 404);
  }
});

await new Promise((f) => server.listen(0, '127.0.0.1', f));
const url = `http://127.0.0.1:${server.address().port}/console/history`;


// --- sizes ----------------------------------------------------------------------------

const zipped = readdirSync(`${ROOT}/assets`).filter((f) => f.endsWith('.gz'))
  .map((f) => ({ name: f.slice(0, -3), bytes: readFileSync(`${ROOT}/assets/${f}`).length })).sort((a, b) => b.bytes - a.bytes);

result.assets = zipped;
zipped.slice(0, 8).forEach((f) => say(`gzipped ${f.name}`, `${(f.bytes / 1024).toFixed(1)} KiB`));


// --- in a browser ---------------------------------------------------------------------

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });

try {
  const tab = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const sizes = [];

  tab.setDefaultTimeout(60_000 * Number(process.env.SANDBOX_TEST_PATIENCE ?? 1));
  tab.on('requestfinished', (r) => { if (!r.url().includes('/api/')) sizes.push(r.sizes().then((one) => one.responseBodySize)); });

  const start = performance.now();
  await tab.goto(url);
  await tab.getByRole('option').first().waitFor();
  await tab.evaluate(() => new Promise((f) => requestIdleCallback(f)));
  result.interactive_ms = Math.round(performance.now() - start);

  const loaded = (await Promise.all(sizes)).reduce((a, b) => a + b, 0);

  result.timeline_bytes = loaded;
  say('the timeline loads', `${(loaded / 1024).toFixed(1)} KiB`);
  say('time to interactive', `${result.interactive_ms} ms`);

  await browser.startTracing(tab, { categories: ['toplevel', 'devtools.timeline'] });

  const frames = await tab.evaluate(async ([seconds, FEWEST]) => {
    const list = document.querySelector('[role="listbox"]');
    const times = [];
    let last = performance.now();
    let most = 0;
    const until = last + seconds * 1000;

    await new Promise((done) => {
      const frame = () => {
        const now = performance.now();

        times.push(now - last);
        last = now;
        if (times.length % 30 === 0) {
          most = Math.max(most, list.scrollHeight);
        }
        // a fling: a window a frame, and at the far end of the pages all the way back
        list.scrollTop -= 90 + (times.length % 60) * 6;
        if (now < until || times.length < FEWEST) {
          requestAnimationFrame(frame);
        } else {
          done();
        }
      };

      requestAnimationFrame(frame);
    });

    return { times: times.slice(1), most, rows: list.querySelectorAll('[role="option"]').length,
      heap: performance.memory?.usedJSHeapSize ?? null, first: list.querySelector('[role="option"] time').dateTime };
  }, [SECONDS, FEWEST]);

  // a busy machine makes frames late that cost little: tasks are told by their processor time too
  const tasks = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
  const main = tasks.filter((e) => e.name === 'FunctionCall' || e.name === 'FireAnimationFrame').map((e) => `${e.pid} ${e.tid}`)
    .reduce((all, t) => all.set(t, (all.get(t) ?? 0) + 1), new Map());
  const [thread] = [...main].sort((a, b) => b[1] - a[1])[0] ?? [''];
  const spent = tasks.filter((e) => e.tdur > 0 && /RunTask$/.test(e.name) && `${e.pid} ${e.tid}` === thread)
    .map((e) => e.tdur / 1000).sort((a, b) => a - b);

  const sorted = [...frames.times].sort((a, b) => a - b);
  const of = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

  result.frames = { n: sorted.length, median_ms: of(0.5), p95_ms: of(0.95), p99_ms: of(0.99), worst_ms: sorted.at(-1),
    above_50_ms: sorted.filter((t) => t > 50).length };
  result.list = { height_px: frames.most, rows_drawn: frames.rows, heap_bytes: frames.heap };
  say(`${RECORDS} records, frames in ${SECONDS} s of scrolling`, sorted.length);
  say('frame, median / 95 % / 99 % / worst', [of(0.5), of(0.95), of(0.99), sorted.at(-1)].map((t) => `${t.toFixed(1)} ms`).join(' / '));
  say('frames above 50 ms', result.frames.above_50_ms);
  result.tasks = { n: spent.length, total_ms: spent.reduce((a, b) => a + b, 0), p99_ms: spent[Math.floor(spent.length * 0.99)],
    worst_ms: spent.at(-1), above_50_ms: spent.filter((t) => t > 50).length };
  say('main thread, processor time of the worst task', `${(spent.at(-1) ?? 0).toFixed(1)} ms, ${result.tasks.above_50_ms} above 50 ms`);
  say('main thread, processor time a frame', `${(result.tasks.total_ms / sorted.length).toFixed(1)} ms`);
  say('list at its longest', `${frames.most} px, ${frames.rows} rows drawn`);
  say('heap', frames.heap === null ? '–' : `${(frames.heap / 1024 / 1024).toFixed(1)} MiB`);
  say('scrolled to', frames.first);
} finally {
  await browser.close();
  server.close();
  server.closeAllConnections();
}

writeFileSync('build/bench-console.json', `${JSON.stringify(result, null, 1)}\n`);

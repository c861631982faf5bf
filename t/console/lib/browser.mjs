// Real Chromium for the tests of the console, and the few words they are
// written in.  What is found is told as lines of JSON, which
// t/lib/SandboxConsole.pm makes results of.

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const need = createRequire(`${root}/html/package.json`);
const { chromium } = need('playwright-core');
const axe = need.resolve('axe-core/axe.min.js');

export const { CONSOLE_URL: url, CONSOLE_TOKEN: token, CONSOLE_OUT: out } = process.env;
export const facts = JSON.parse(process.env.CONSOLE_FACTS ?? '{}');

export const WIDTHS = { 1440: 900, 1024: 768, 390: 844 };

mkdirSync(out, { recursive: true });

const say = (o) => process.stdout.write(`${JSON.stringify(o)}\n`);

export function ok(is, name, ...diag) {
  say({ ok: !!is, name, diag: is ? [] : diag.map(String) });
  return !!is;
}

export const is = (got, wanted, name) => ok(
  JSON.stringify(got) === JSON.stringify(wanted), name,
  `got ${JSON.stringify(got)}`, `wanted ${JSON.stringify(wanted)}`);

/** A browser without a way out of this machine. */
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none',
    '--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1,EXCLUDE localhost'],
});

/**
 * A page in a profile of its own, which remembers what may not happen:
 * errors in the console, refusals by CSP, requests to another host.
 */
export async function open(browser, { width = 1440, theme = 'light', language = 'en', origin = url, ...rest } = {}) {
  const { origin: ours } = new URL(origin);
  const context = await browser.newContext({
    viewport: { width, height: WIDTHS[width] ?? 900 }, locale: language, colorScheme: theme,
    reducedMotion: 'reduce', ...rest,
  });
  const page = await context.newPage();
  const seen = { errors: [], foreign: [], calls: [] };

  page.on('console', (m) => {
    // a gateway without sessions refuses the question who is signed in
    if (m.type() === 'error' && !m.location().url.endsWith('/api/v1/session')) {
      seen.errors.push(`${m.text()} ${m.location().url}`);
    }
  });
  page.on('pageerror', (e) => seen.errors.push(String(e.stack ?? e)));
  page.on('request', (r) => {
    const u = new URL(r.url());

    if (['data:', 'blob:', 'about:'].includes(u.protocol)) {
      return;
    }
    if (u.origin === ours) {
      seen.calls.push(`${r.method()} ${u.pathname}`);
    } else {
      seen.foreign.push(r.url());
    }
  });

  return Object.assign(page, { seen });
}

/** Signs in with a token, by hand, wherever the page is. */
export async function signIn(page, by = token) {
  await page.getByLabel(/^(Token|令牌)$/).fill(by);
  await page.getByRole('button', { name: /^(Sign in|登录)$/ }).click();
  await page.getByRole('navigation', { name: /^(Main navigation|主导航)$/ }).waitFor();
}

/** Has it come to rest?  What loads has loaded, and nothing is a skeleton. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('main')
    && !document.querySelector('.shimmer, main[aria-busy="true"]'), null, { timeout: 15_000 });
  await page.waitForTimeout(120);
}

export const shot = (page, name) => page.screenshot({ path: `${out}/${name}.png` });

/** What axe-core finds serious or worse. */
export async function serious(page) {
  // not as a script of the page, which CSP would refuse
  await page.evaluate(readFileSync(axe, 'utf8'));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));

  return violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(' ')} ${n.failureSummary?.split('\n')[1] ?? ''}`));
}

/** Is anything wider than the window? */
export const overflow = (page) => page.evaluate(() =>
  document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Runs the parts of a test; one that throws fails alone. */
export async function run(parts) {
  const browser = await launch();

  try {
    for (const [name, part] of Object.entries(parts)) {
      try {
        await part(browser);
      } catch (e) {
        ok(false, `${name}: goes through to its end`, e.stack);
      }
    }
  } finally {
    await browser.close();
    say({ done: true });
  }
}

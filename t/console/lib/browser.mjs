// Real Chromium for the tests of the console, and the few words they are
// written in.  What is found is told as lines of JSON, which
// t/lib/SandboxConsole.pm makes results of.
//
// No test waits for a time where it can wait for a thing: a machine may be five
// times slower than this one.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const need = createRequire(`${root}/html/package.json`);
const { chromium, request } = need('playwright-core');
const axe = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');

export const { CONSOLE_URL: url, CONSOLE_TOKEN: token, CONSOLE_OUT: out } = process.env;
export const facts = JSON.parse(process.env.CONSOLE_FACTS ?? '{}');

export const WIDTHS = { 1440: 900, 1024: 768, 390: 844 };
export const THEMES = ['light', 'dark'];
export const LANGUAGES = ['en', 'zh-CN'];

/** How long is waited for a thing at most. */
export const LONGEST = 60_000 * Number(process.env.SANDBOX_TEST_PATIENCE ?? 1);

mkdirSync(out, { recursive: true });

const say = (o) => process.stdout.write(`${JSON.stringify(o)}\n`);

export function ok(is, name, ...diag) {
  say({ ok: !!is, name, diag: is ? [] : diag.map(String) });
  return !!is;
}

export const is = (got, wanted, name) => ok(
  JSON.stringify(got) === JSON.stringify(wanted), name,
  `got ${JSON.stringify(got)}`, `wanted ${JSON.stringify(wanted)}`);

/** Is it seen, now or soon? */
export const sees = (locator, name) => locator.waitFor().then(() => ok(true, name), (e) => ok(false, name, e.message));

/** Waits until f says something true, which it then has. */
export async function until(f, what = 'it') {
  for (const end = Date.now() + LONGEST; ; await new Promise((done) => setTimeout(done, 50))) {
    const found = await f();

    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`${what} has not come about`);
    }
  }
}

/** What f says is this, now or soon: a page shows what it was told to show a moment later. */
export async function becomes(f, wanted, name) {
  let got;

  await until(async () => JSON.stringify(got = await f()) === JSON.stringify(wanted)).catch(() => null);
  is(got, wanted, name);
}

/** A browser without a way out of this machine. */
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none', '--disable-smooth-scrolling',
    '--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1,EXCLUDE localhost'],
});

const sessions = new Map();

/** What a browser has that is signed in with a token: one session for all pages of a script. */
function session(by) {
  if (!sessions.has(by)) {
    sessions.set(by, (async () => {
      const asks = await request.newContext({ extraHTTPHeaders: { Origin: new URL(url).origin } });
      const answer = await asks.post(new URL('api/v1/session', url).href, { data: { token: by } });

      if (!answer.ok()) {
        throw new Error(`no session: ${answer.status()} ${await answer.text()}`);
      }

      const state = await asks.storageState();
      await asks.dispose();
      return state;
    })());
  }

  return sessions.get(by);
}

const calls = new Set();

/**
 * A page in a profile of its own, which remembers what may not happen:
 * errors in the console, requests to another host.  It is signed in; with
 * `as` by another token, or, when that is null, not yet.
 */
export async function open(browser, {
  width = 1440, theme = 'light', language = 'en', origin = url, as = token, ...rest
} = {}) {
  const { origin: ours } = new URL(origin);
  const context = await browser.newContext({
    viewport: { width, height: WIDTHS[width] ?? 900 }, locale: language, colorScheme: theme,
    reducedMotion: 'reduce', ...(as === null ? {} : { storageState: await session(as) }), ...rest,
  });

  context.setDefaultTimeout(LONGEST);

  const page = await context.newPage();
  const close = context.close.bind(context);

  // an answer that a route was about to give to a page that goes is given up:
  // else its failure, of which nobody hears, ends the script
  context.close = async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' }).catch(() => null);
    await close();
  };

  const seen = { errors: [], foreign: [], calls: [], live: 0 };
  const prefix = new URL(origin).pathname.replace(/\/console\/?$/, '');
  const heard = (method, { pathname }) => {
    seen.calls.push(`${method} ${pathname}`);
    calls.add(`${method} ${pathname.startsWith(prefix) ? pathname.slice(prefix.length) : pathname}`);
  };

  page.on('console', (m) => {
    if (m.type() === 'error') {
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
      heard(r.method(), u);
    } else {
      seen.foreign.push(r.url());
    }
  });
  page.on('websocket', (ws) => heard('GET', new URL(ws.url())));
  page.on('response', (r) => {
    if (r.ok() && /\/live$/.test(new URL(r.url()).pathname)) {
      seen.live++;
    }
  });

  return Object.assign(page, { seen, language });
}

/** Signs in with a token, by hand, wherever the page is. */
export async function signIn(page, by = token) {
  await page.getByLabel(/^(Token|令牌)$/).fill(by);
  await page.getByRole('button', { name: /^(Sign in|登录)$/ }).click();
  await page.getByRole('navigation', { name: /^(Main navigation|主导航)$/ }).waitFor();
}

/** Waits until the page is told what happens: what happens from now on will be seen. */
export const live = (page) => until(() => page.seen.live > 0, 'a live stream');

/** Nothing moves any more.  Only for pictures: what a test finds does not rest on it. */
export const still = (page, quiet = 60) => page.evaluate((ms) => new Promise((done) => {
  let timer;
  const end = () => {
    seen.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(done));
  };
  const seen = new MutationObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(end, ms);
  });

  seen.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  timer = setTimeout(end, ms);
  setTimeout(end, 3_000);
}), quiet);

/** Has it come to rest?  What loads has loaded, and nothing is a skeleton. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('main')
    && !document.querySelector('.shimmer, main[aria-busy="true"]'));
  await still(page);
}

/** A picture of what is seen. */
export async function shot(page, name) {
  page.camera ??= page.context().newCDPSession(page);

  const { data } = await (await page.camera).send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true });
  writeFileSync(`${out}/${name}.png`, data, 'base64');
}

/** What was changed has been drawn. */
const drawn = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
}));

/** What axe-core finds serious or worse; of the colours alone, if told so. */
export async function serious(page, { colours = false } = {}) {
  // not as a script of the page, which CSP would refuse
  if (!await page.evaluate(() => 'axe' in globalThis)) {
    await page.evaluate(axe);
  }

  const { violations } = await page.evaluate((only) => globalThis.axe.run(document, {
    resultTypes: ['violations'], ...(only ? { runOnly: { type: 'rule', values: ['color-contrast'] } } : {}),
  }), colours);

  return violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(' ')} ${n.failureSummary?.split('\n')[1] ?? ''}`));
}

/** Is anything wider than the window? */
export const overflow = (page) => page.evaluate(() =>
  document.documentElement.scrollWidth - document.documentElement.clientWidth);

/**
 * What is on the page as people see it: pictures in all widths and both themes,
 * none wider than the window, and axe has nothing serious to say.  Both change
 * while the page is open, as they do for people.  What axe says of the page
 * depends on its width, of its colours on the theme, of neither on language.
 */
export async function looks(page, name) {
  const { language } = page;

  for (const width of Object.keys(WIDTHS).map(Number)) {
    await page.setViewportSize({ width, height: WIDTHS[width] });
    await still(page);

    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, theme);
      await drawn(page);
      await shot(page, `${name}-${theme}-${language}-${width}`);

      if (language === 'en') {
        is(await serious(page, { colours: theme === 'dark' }), [], `${name} ${theme} ${width}: axe finds nothing serious`);
      }
    }

    ok(await overflow(page) <= 0, `${name} ${language} ${width}: as wide as the window`);
  }

  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: WIDTHS[1440] });
}

/**
 * Parts that look at pages in all languages: f is given a page in each.
 * `refused` says which errors it may have.
 */
export const inAll = (f, { refused = /^$/, ...options } = {}) => Object.fromEntries(LANGUAGES.map((language) => [
  `looks ${language}`, async (browser) => {
    const page = await open(browser, { language, ...options });

    await f(page);
    is(page.seen.errors.filter((e) => !refused.test(e)), [], `${language}: no error in the browser`);
    is(page.seen.foreign, [], `${language}: no host but ours`);
    await page.context().close();
  },
]));

/**
 * Runs the parts of a test one after the other, and beside them those of
 * `beside`, which look only; one that throws fails alone.  CONSOLE_PARTS
 * chooses some by name.
 */
export async function run(parts, beside = {}) {
  const only = new RegExp(process.env.CONSOLE_PARTS ?? '');
  const browser = await launch();

  const lane = async (all) => {
    for (const [name, part] of Object.entries(all).filter(([n]) => only.test(n))) {
      const began = performance.now();

      try {
        await part(browser);
      } catch (e) {
        ok(false, `${name}: goes through to its end`, e.stack);
        await Promise.all(browser.contexts().flatMap((c) => c.pages())
          .map((page, i) => shot(page, `failed-${name.replace(/\W+/g, '-')}-${i}`).catch(() => null)));
      }

      say({ part: name, ms: Math.round(performance.now() - began) });
    }
  };

  try {
    await Promise.all([parts, beside].map(lane));
  } finally {
    await Promise.all(browser.contexts().map((context) => context.close()));
    await browser.close();
    say({ done: true, calls: [...calls] });
  }
}

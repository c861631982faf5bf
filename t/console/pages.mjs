import {
  facts, is, ok, open, overflow, run, serious, settled, shot, signIn, url, WIDTHS,
} from './lib/browser.mjs';

const PAGES = {
  'overview': '',
  'sandboxes': 'sandboxes',
  'sandbox-history': `sandboxes/${facts.sandbox}/history`,
  'sandbox-locks': `sandboxes/${facts.sandbox}/locks`,
  'sandbox-overview': `sandboxes/${facts.sandbox}/overview`,
  'history': 'history',
  'run': 'runs/nightly-31',
  'policy': 'policy',
  'tokens': 'tokens',
  'no-match': 'history?q=nothing-has-this-word',
  'unknown-sandbox': 'sandboxes/no-such-sandbox/history',
  'not-found': 'no/such/page',
};

// the pages, the console API, and routes of OpenSandbox
const CALLS = /^(?:GET \/console\/|[A-Z]+ \/console\/api\/v1\/[a-z]|[A-Z]+ \/v1\/(?:sandboxes|snapshots)\b)/;

const FIRST_PAGE = 200 * 1024;

const parts = {};

// One load of a page is looked at in all themes and widths: both change while
// it is open, as they do for people.

for (const language of ['en', 'zh-CN']) {
  parts[language] = async (browser) => {
    const page = await open(browser, { language });

    const look = async (name) => {
      for (const width of Object.keys(WIDTHS).map(Number)) {
        await page.setViewportSize({ width, height: WIDTHS[width] });

        for (const theme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme: theme });
          await page.waitForTimeout(30);
          await shot(page, `${name}-${theme}-${language}-${width}`);

          // what axe sees depends on theme and width, not on language
          if (language === 'en' && (width === 1440 || (width === 390 && theme === 'light'))) {
            is(await serious(page), [], `${name} ${theme} ${width}: axe finds nothing serious`);
          }
        }

        ok(await overflow(page) <= 0, `${name} ${language} ${width}: as wide as the window`);
      }
    };

    await page.goto(url);
    await page.getByLabel(/^(Token|令牌)$/).waitFor();
    await look('signin');
    await signIn(page);

    for (const [name, at] of Object.entries(PAGES)) {
      await page.goto(url + at);
      await settled(page);
      await look(name);
    }

    await page.goto(`${url}sandboxes/${facts.sandbox}/history?status=failed`);
    await page.getByRole('option').first().click();
    await page.getByText('relation "orders" already exists').last().waitFor();
    await settled(page);
    await look('record');

    is(await page.evaluate(() => document.documentElement.lang), language, `${language} is the language of the browser`);
    is(page.seen.errors.filter((e) => !e.includes('no-such-sandbox')), [], `${language}: no error in the browser's console`);
    is(page.seen.foreign, [], `${language}: no host but ours`);
    is([...new Set(page.seen.calls)].filter((c) => !CALLS.test(c)), [], `${language}: no call but to these APIs`);
    await page.context().close();
  };
}

parts.size = async (browser) => {
  const page = await open(browser);
  const sizes = new Map();

  page.on('response', async (r) => {
    if (!r.url().includes('/api/')) {
      sizes.set(r.url(), (await r.request().sizes()).responseBodySize);
    }
  });

  await page.goto(url);
  await signIn(page);
  await settled(page);

  const all = [...sizes.values()].reduce((a, b) => a + b, 0);
  ok(all > 50_000 && all < FIRST_PAGE, `the first page has ${Math.round(all / 1024)} KiB, below 200`,
    ...[...sizes].map(([u, n]) => `${n} ${u}`));
  await page.context().close();
};

await run(parts);

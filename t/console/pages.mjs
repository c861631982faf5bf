import { facts, is, LANGUAGES, looks, ok, open, run, settled, signIn, url } from './lib/browser.mjs';

const PAGES = {
  'overview': '',
  'sandboxes': 'sandboxes',
  'sandbox-history': `sandboxes/${facts.sandbox}/history`,
  'sandbox-locks': `sandboxes/${facts.sandbox}/locks`,
  'sandbox-overview': `sandboxes/${facts.sandbox}/overview`,
  'history': 'history',
  'runs': 'runs',
  'run': 'runs/nightly-31',
  'policy': 'policy',
  'tokens': 'tokens',
  'no-match': 'history?q=nothing-has-this-word',
  'unknown-sandbox': 'sandboxes/no-such-sandbox/history',
  'not-found': 'no/such/page',
};

const FIRST_PAGE = 200 * 1024;

const pictures = (language) => async (browser) => {
  const page = await open(browser, { language, as: null });

  await page.goto(url);
  await page.getByLabel(/^(Token|令牌)$/).waitFor();
  await looks(page, 'signin');
  await signIn(page);

  for (const [name, at] of Object.entries(PAGES)) {
    await page.goto(url + at);
    await settled(page);
    await looks(page, name);
  }

  await page.goto(`${url}sandboxes/${facts.sandbox}/history?status=failed`);
  await page.getByRole('option').first().click();
  await page.getByText('relation "orders" already exists').last().waitFor();
  await settled(page);
  await looks(page, 'record');

  is(await page.evaluate(() => document.documentElement.lang), language, `${language} is the language of the browser`);
  is(page.seen.errors.filter((e) => !e.includes('no-such-sandbox')), [], `${language}: no error in the browser's console`);
  is(page.seen.foreign, [], `${language}: no host but ours`);
  await page.context().close();
};

const size = async (browser) => {
  const page = await open(browser, { as: null });
  const asked = [];

  page.on('requestfinished', (r) => {
    if (!r.url().includes('/api/')) {
      asked.push(r.sizes().then((s) => [s.responseBodySize, r.url()]));
    }
  });

  await page.goto(url);
  await signIn(page);
  await settled(page);

  const sizes = await Promise.all(asked);
  const all = sizes.reduce((sum, [n]) => sum + n, 0);
  ok(all > 50_000 && all < FIRST_PAGE, `the first page has ${Math.round(all / 1024)} KiB, below 200`,
    ...sizes.map((s) => s.join(' ')));
  await page.context().close();
};

const [en, zh] = LANGUAGES.map(pictures);

await run({ en }, { 'zh-CN': zh, size });

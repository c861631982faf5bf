import { facts, is, LANGUAGES, looks, ok, open, run, settled, signIn, still, url } from './lib/browser.mjs';

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

// C129: what strangers name, and what an upstream says, on every page
const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>\u001b]0;evil\u0007\u202egnp.exe';

const hostile = async (browser) => {
  const page = await open(browser);
  let named = 0;

  await page.route(/\/v1\//, async (route) => {
    const { pathname } = new URL(route.request().url());

    if (/\/(?:live|session)$/.test(pathname)) {
      return route.continue();
    }
    if (!pathname.includes('/api/v1/')) {
      return route.fulfill({ status: 500, json: { code: 'DOCKER::FAILED', message: HOSTILE } });
    }

    const response = await route.fetch();
    const text = await response.text();

    named += text.includes('"data-cleaning-7"') ? 1 : 0;
    return route.fulfill({ response, body: text.replaceAll('"data-cleaning-7"', JSON.stringify(HOSTILE)) });
  });

  const box = `sandboxes/${facts.sandbox}`;
  let seen = 0;

  for (const [name, at] of Object.entries({ ...PAGES, 'sandbox-files': `${box}/files`, 'sandbox-commands': `${box}/commands`, 'sandbox-terminal': `${box}/terminal`,
    'policy-asked': `policy?operation=file.write&path=${encodeURIComponent(HOSTILE)}`, 'metadata': 'sandboxes?metadata=team%3Ddata' })) {
    await page.goto(url + at);
    await settled(page);
    await still(page);
    const got = await page.evaluate(() => ({ title: document.title, made: document.querySelectorAll('img:not([src="icon.svg"]), [onerror], main script').length,
      text: document.body.innerText }));

    ok(got.title !== '1' && got.made === 0, `C129 ${name}: a hostile name and a hostile error are text`, JSON.stringify([got.title, got.made]));
    ok(!/[\u001b\u0007\u202e]/.test(got.text), `C129 ${name}: and nothing in them acts`);
    seen += got.text.includes('<script>document.title=1</script>') ? 1 : 0;
  }

  ok(named > 5 && seen > 7, `C129 and they were there (${named} answers, seen on ${seen} pages)`);
  is(page.seen.errors.filter((e) => !/status of (?:500|404)/.test(e)), [], 'C129 no error in the browser, none of CSP');
  await page.context().close();
};

const [en, zh] = LANGUAGES.map(pictures);

await run({ en }, { 'zh-CN': zh, size, hostile });

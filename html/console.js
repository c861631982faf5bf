// Fills in this gateway's address, and what needs a script: tabs, copying,
// language and theme.  Without it everything is there to read, in English.

'use strict';

const root = document.documentElement;
const words = {
  'en': { copy: 'Copy', copied: 'Copied', failed: 'Select and copy by hand' },
  'zh-CN': { copy: '复制', copied: '已复制', failed: '请手动选择并复制' },
};


function remember(key, value) {
  try {
    localStorage.setItem(`sandbox-gateway.${key}`, value);
  } catch {
    // a browser that stores nothing: the choice lasts as long as the page
  }
}


function remembered(key) {
  try {
    return localStorage.getItem(`sandbox-gateway.${key}`);
  } catch {
    return null;
  }
}


// The console may be mounted below a prefix of an outer proxy.

function fillAddress() {
  if (!/^https?:$/.test(location.protocol)) {
    return;
  }

  const prefix = location.pathname.replace(/\/console(\/.*)?$/, '');
  const protocol = location.protocol.slice(0, -1);
  const domain = location.host + prefix;
  const values = { protocol, domain, base: `${protocol}://${domain}` };

  for (const e of document.querySelectorAll('[data-fill]')) {
    e.textContent = values[e.dataset.fill];
  }
}


function setUpTabs() {
  const list = document.querySelector('.tablist');
  const tabs = [...list.querySelectorAll('button')];

  const select = (tab, focus) => {
    for (const t of tabs) {
      const on = t === tab;
      t.setAttribute('aria-selected', String(on));
      t.tabIndex = on ? 0 : -1;
      document.getElementById(t.getAttribute('aria-controls')).hidden = !on;
    }

    if (focus) {
      tab.focus();
      remember('tab', tab.id);
    }
  };

  list.hidden = false;
  list.setAttribute('role', 'tablist');

  tabs.forEach((tab, i) => {
    tab.setAttribute('role', 'tab');
    document.getElementById(tab.getAttribute('aria-controls'))
      .setAttribute('role', 'tabpanel');
    tab.addEventListener('click', () => select(tab, true));
    tab.addEventListener('keydown', (event) => {
      const to = {
        ArrowLeft: (i + tabs.length - 1) % tabs.length,
        ArrowRight: (i + 1) % tabs.length,
        Home: 0,
        End: tabs.length - 1,
      }[event.key];

      if (to !== undefined) {
        event.preventDefault();
        select(tabs[to], true);
      }
    });
  });

  select(tabs.find((t) => t.id === remembered('tab')) ?? tabs[0], false);
}


async function copy(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }

  // plain http on a name other than localhost

  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr';
  document.body.append(area);
  area.select();

  const done = document.execCommand('copy');
  area.remove();

  if (!done) {
    throw new Error('not allowed');
  }
}


function setUpCopying() {
  const said = document.getElementById('said');

  for (const pre of document.querySelectorAll('pre')) {
    const box = document.createElement('div');
    const button = document.createElement('button');
    const word = (name) => words[root.dataset.lang][name];

    box.className = 'code';
    button.type = 'button';
    button.dataset.word = 'copy';
    button.textContent = word('copy');
    pre.replaceWith(box);
    box.append(pre, button);

    button.addEventListener('click', async () => {
      let name = 'copied';

      try {
        await copy(pre.textContent);
      } catch {
        name = 'failed';
      }

      button.focus();
      button.textContent = word(name);
      said.textContent = word(name);
      setTimeout(() => { button.textContent = word('copy'); }, 1600);
    });
  }
}


function setUpLanguage() {
  const set = (lang) => {
    root.dataset.lang = lang;
    root.lang = lang;

    for (const e of document.querySelectorAll('[data-word]')) {
      e.textContent = words[lang][e.dataset.word];
    }
  };

  const wanted = remembered('lang')
    ?? (navigator.language.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en');

  set(wanted in words ? wanted : 'en');

  document.getElementById('lang').addEventListener('click', () => {
    set(root.dataset.lang === 'en' ? 'zh-CN' : 'en');
    remember('lang', root.dataset.lang);
  });
}


function setUpTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const wanted = remembered('theme');

  if (wanted === 'light' || wanted === 'dark') {
    root.dataset.theme = wanted;
  }

  document.getElementById('theme').addEventListener('click', () => {
    const now = root.dataset.theme ?? (dark.matches ? 'dark' : 'light');
    root.dataset.theme = now === 'dark' ? 'light' : 'dark';
    remember('theme', root.dataset.theme);
  });
}


fillAddress();
setUpTheme();
setUpCopying();
setUpLanguage();
setUpTabs();
document.querySelector('.tools').hidden = false;

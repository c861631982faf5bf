// Going round with the keyboard: a page, or what lies over it.

/** In the page: what it has to offer, and where the keyboard is. */
export const helpers = () => {
  const OWN = 'a[href], button, input, select, textarea, summary, [contenteditable="true"], [role="button"], [role="link"], '
    + '[role="tab"], [role="option"], [role="treeitem"], [role="menuitem"], [role="checkbox"], [role="switch"]';
  // what has one place for Tab, and arrows inside
  const WIDGETS = '[role="listbox"], [role="tree"], [role="tablist"], [role="radiogroup"], [role="menu"], [role="grid"]';
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('[inert], [aria-hidden="true"]')
    && !e.matches(':disabled, [aria-disabled="true"]') && e.getClientRects().length > 0;
  const reacts = (e) => {
    const key = Object.keys(e).find((k) => k.startsWith('__reactProps'));
    return !!key && typeof e[key].onClick === 'function';
  };
  const name = (e) => `${e.tagName.toLowerCase()}${e.getAttribute('role') ? `[${e.getAttribute('role')}]` : ''} `
    + `"${(e.getAttribute('aria-label') ?? e.textContent ?? '').trim().slice(0, 40)}"`;
  // what lies over all else has the keyboard to itself
  const scope = () => [...document.querySelectorAll('[role="dialog"][data-state="open"]')].at(-1) ?? document.body;
  let reached = new Set();

  globalThis.keyboard = {
    /** Is it in what lies on top? */
    inside: () => scope().contains(document.activeElement) && document.activeElement !== document.body,
    begin() {
      const first = scope() === document.body ? document.querySelector('button') : document.activeElement;

      reached = new Set([first]);
      first.focus();
    },
    /** Notes where the keyboard is; false once it has been there before. */
    step() {
      const e = document.activeElement;

      if (!e || e === document.body || e === document.documentElement) {
        return { end: true, out: scope() !== document.body };
      }

      const again = reached.has(e);
      const style = getComputedStyle(e);
      const ring = [e, e.parentElement, e.closest('[data-keys="own"]')].filter(Boolean).some((one) => {
        const s = getComputedStyle(one);
        return (s.outlineStyle !== 'none' && s.outlineWidth !== '0px') || s.boxShadow !== 'none';
      });

      reached.add(e);
      return {
        end: again, out: !scope().contains(e), name: name(e),
        own: !!e.closest('.xterm, .xterm-screen') ? 'terminal' : e.closest('.monaco-editor') ? 'editor' : '',
        visible: ring || style.caretColor !== 'transparent' && e.matches('input, textarea, select'),
      };
    },
    /** What was not come to. */
    missed() {
      const all = [...scope().querySelectorAll('*')].filter((e) => (e.matches(OWN) || reacts(e)) && seen(e));
      const within = (e) => [...reached].some((r) => r === e || r.contains(e) && r.matches(WIDGETS) || e.contains(r));

      // what a field offers is gone through with its arrows
      const offered = (e) => [...reached].some((r) => r.matches('[role="combobox"]') && e.closest(`[id="${CSS.escape(r.getAttribute('aria-controls') ?? '')}"]`));

      return all.filter((e) => !within(e) && !offered(e)
        // one of a widget that was come to: its arrows are tried by themselves
        && !(e.closest(WIDGETS) && [...reached].some((r) => e.closest(WIDGETS).contains(r) || r === e.closest(WIDGETS)))
        // the editor's and the terminal's own parts
        && !e.closest('.monaco-editor, .monaco-diff-editor, .xterm')
        && !e.matches('[tabindex="-1"][aria-hidden]')).map(name);
    },
    widgets() {
      return [...document.querySelectorAll(WIDGETS)].filter((e) => seen(e) && !e.closest('.monaco-editor, .monaco-diff-editor, .xterm')).map((e, i) => {
        e.dataset.widget = String(i);
        return { i, role: e.getAttribute('role'), name: name(e),
          n: e.querySelectorAll('[role="option"], [role="treeitem"], [role="tab"], [role="radio"]').length };
      });
    },
    /** What a widget points at; nothing, when another has taken its place. */
    at(i) {
      const e = document.querySelector(`[data-widget="${i}"]`);

      if (!e) {
        return '';
      }
      const holder = e.matches('[aria-activedescendant]') ? e : e.querySelector('[aria-activedescendant]');

      return holder?.getAttribute('aria-activedescendant')
        || (e.contains(document.activeElement) && document.activeElement !== e ? name(document.activeElement) : '')
        || [...e.querySelectorAll('[aria-selected="true"]')].map(name).join() || '-';
    },
    focus(i) {
      const e = document.querySelector(`[data-widget="${i}"]`);
      const inside = e.matches('[tabindex="0"]') ? e : e.querySelector('[tabindex="0"], [aria-selected="true"]') ?? e;
      inside.focus();
    },
    menus() {
      return [...document.querySelectorAll('main [aria-haspopup="menu"], header [aria-haspopup="menu"]')].filter(seen).map((e, i) => {
        e.dataset.menu = String(i);
        return { i, name: name(e) };
      });
    },
  };
};

/** Presses Tab until it is back: how many stops there are, which cannot be seen, which lie below what lies on top. */
export async function round(page, tab = 'Tab') {
  const dark = [];
  const out = [];
  let stops = 0;

  await page.evaluate(() => keyboard.begin());

  for (let leave = ''; stops < 400; stops++) {
    await page.keyboard.press(leave || tab);
    const at = await page.evaluate(() => keyboard.step());

    if (at.out) {
      out.push(at.name ?? 'nothing');
    }
    if (at.end && !leave) {
      break;
    }
    if (!at.end && !at.visible && !at.own) {
      dark.push(at.name);
    }
    // both keep Tab for themselves, and have a key to get out: in all editors at once
    if (at.own === 'editor' && !leave && !page.tabLeaves) {
      await page.keyboard.press('Control+m');
      page.tabLeaves = true;
    }
    leave = at.own === 'terminal' && !leave ? 'Control+Shift+ArrowUp' : '';
  }

  return { stops, dark, out };
}

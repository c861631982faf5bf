// Colours of the terminal: those of the page around it, and sixteen that can be
// told apart on either ground.

import type { ITheme } from '@xterm/xterm';

const LIGHT = {
  black: '#1b1f26', red: '#b3261e', green: '#17693a', yellow: '#855300',
  blue: '#2456c9', magenta: '#8a2a8c', cyan: '#0b6b75', white: '#6b7280',
  brightBlack: '#565e6b', brightRed: '#c9352c', brightGreen: '#1d7d46', brightYellow: '#976000',
  brightBlue: '#3367dd', brightMagenta: '#a03ca2', brightCyan: '#0f7c87', brightWhite: '#1b1f26',
};

const DARK = {
  black: '#2c323c', red: '#ff8f87', green: '#6fcf97', yellow: '#f0b95b',
  blue: '#84a9ff', magenta: '#d9a0e8', cyan: '#6fd3dd', white: '#e4e7ec',
  brightBlack: '#8a93a1', brightRed: '#ffaba5', brightGreen: '#93e0b2', brightYellow: '#f7cf88',
  brightBlue: '#a8c2ff', brightMagenta: '#e7bdf2', brightCyan: '#96e3ea', brightWhite: '#ffffff',
};

/** The theme that the page has now. */
export function terminalTheme(): ITheme {
  const root = document.documentElement;
  const style = getComputedStyle(root);
  const colour = (name: string) => style.getPropertyValue(`--c-${name}`).trim();
  const dark = root.dataset.theme === 'dark';

  return {
    ...(dark ? DARK : LIGHT),
    background: colour('bg'),
    foreground: colour('text'),
    cursor: colour('accent'),
    cursorAccent: colour('bg'),
    selectionBackground: dark ? '#3a4d7d' : '#c4d5f7',
    selectionInactiveBackground: dark ? '#2c3752' : '#dde6f8',
  };
}

/** Tells when it becomes another. */
export function onTheme(f: () => void): () => void {
  const observer = new MutationObserver(f);

  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
}

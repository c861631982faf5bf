// Light, dark, or what the system has.  The style sheet knows the result only:
// until it is set nothing is drawn, and the canvas is the system's.

import { useEffect } from 'react';
import { remembered, useStored } from '@/lib/stored';

export const THEMES = ['system', 'light', 'dark'] as const;

const dark = matchMedia('(prefers-color-scheme: dark)');

function apply() {
  const chosen = remembered('theme');

  document.documentElement.dataset.theme = chosen === 'light' || chosen === 'dark'
    ? chosen : dark.matches ? 'dark' : 'light';
}

apply();
dark.addEventListener('change', apply);

export function useTheme() {
  const [theme, setTheme] = useStored('theme', THEMES, 'system');

  useEffect(apply, [theme]);
  return [theme, setTheme] as const;
}

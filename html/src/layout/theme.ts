import { useEffect } from 'react';
import { remembered, useStored } from '@/lib/stored';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

function apply(theme: string | null) {
  if (theme === 'light' || theme === 'dark') {
    document.documentElement.dataset.theme = theme;
  } else {
    delete document.documentElement.dataset.theme;
  }
}

apply(remembered('theme'));

export function useTheme() {
  const [theme, setTheme] = useStored('theme', THEMES, 'system');

  useEffect(() => apply(theme), [theme]);
  return [theme, setTheme] as const;
}

// Monaco, fetched when the first editor or diff opens and never before.

import { useEffect, useState } from 'react';
import { language } from '@/i18n';

export type Monaco = typeof import('./monaco');

let loading: Promise<Monaco> | null = null;

function load(): Promise<Monaco> {
  loading ??= (async () => {
    // its texts are taken once, when it is loaded
    if (language() === 'zh-CN') {
      await import('monaco-editor/nls/lang/zh-cn.js');
    }

    return import('./monaco');
  })();

  loading.catch(() => { loading = null; });
  return loading;
}

/** Monaco, once it is there. */
export function useMonaco(): { monaco: Monaco | null; error: unknown; retry(): void } {
  const [monaco, setMonaco] = useState<Monaco | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);

  useEffect(() => {
    let gone = false;

    setError(null);
    load().then((m) => { if (!gone) setMonaco(m); }, (e) => { if (!gone) setError(e); });
    return () => { gone = true; };
  }, [tries]);

  return { monaco, error, retry: () => setTries((n) => n + 1) };
}

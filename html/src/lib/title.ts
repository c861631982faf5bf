import { useEffect } from 'react';

/** What the browser's tab says; null where the page around says it. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title === null) {
      return;
    }

    document.title = title ? `${title} · sandbox-gateway` : 'sandbox-gateway';
  }, [title]);
}

import { useSyncExternalStore } from 'react';

/** Does a media query hold? */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (f) => {
      const media = matchMedia(query);
      media.addEventListener('change', f);
      return () => media.removeEventListener('change', f);
    },
    () => matchMedia(query).matches,
  );
}

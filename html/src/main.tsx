import { StrictMode, Suspense } from 'react';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import '@/lib/mount';
import '@/layout/theme';
import './styles.css';
import { ApiError } from '@/api/errors';
import { SessionProvider } from '@/api/session';
import { ready } from '@/i18n';
import { App } from './app';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // an answer of the gateway's own is an answer; what passes is asked again
      retry: (n, e) => e instanceof ApiError && e.passing && n < 3,
      retryDelay: (n, e) => (e instanceof ApiError && e.retryAfter !== null
        ? e.retryAfter * 1000 : Math.min(500 * 2 ** n, 5_000)),
      refetchIntervalInBackground: false,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

// Files of an older build are gone once a newer one is served.
addEventListener('vite:preloadError', (e) => {
  const key = 'sandbox-gateway.reloaded';
  const before = Number(sessionStorage.getItem(key) ?? 0);

  if (Date.now() - before > 30_000) {
    e.preventDefault();
    sessionStorage.setItem(key, String(Date.now()));
    location.reload();
  }
});

void ready.then(() => {
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <SessionProvider>
          <Suspense><App /></Suspense>
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
});

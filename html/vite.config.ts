import { fileURLToPath } from 'node:url';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { compressed } from './build/compressed.ts';
import { notices } from './build/notices.ts';
import { pages } from './build/pages.ts';

// `make dev` sets SANDBOX_GATEWAY to the running gateway that answers the API.
const gateway = process.env.SANDBOX_GATEWAY ?? 'http://127.0.0.1:8080';

export default defineConfig(({ command }) => ({
  // Built, nothing names an address from the root: the console may be mounted
  // below any prefix.
  base: command === 'build' ? './' : '/console/',
  plugins: [react(), tailwind(), pages(), notices(), compressed()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    outDir: '../build/console',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 4096,
  },
  server: {
    proxy: {
      '/console/api/': { target: gateway, ws: true },
      '/v1/': { target: gateway, ws: true },
    },
  },
}));

// Addresses, kept stable (docs/console-api.md); each page is loaded when it opens.

import type { FlatNamespace } from 'i18next';
import { createBrowserRouter, Navigate } from 'react-router';
import { texts } from '@/i18n';
import { basename } from '@/lib/mount';
import { NotFound, RouteError } from '@/layout/route-error';
import { Shell } from '@/layout/shell';

/**
 * A page and the texts of all its parts.  A part whose texts came later, when
 * it is drawn first, would hide the page until then, and take the keyboard from it.
 */
const page = <T,>(load: () => Promise<T>, ...areas: FlatNamespace[]) => async () =>
  (await Promise.all([load(), texts(...areas)]))[0];

export const makeRouter = () => createBrowserRouter([
  {
    element: <Shell />,
    errorElement: <RouteError />,
    hydrateFallbackElement: <></>,
    children: [
      {
        errorElement: <RouteError />,
        children: [
          { index: true, lazy: page(() => import('@/pages/overview'), 'overview') },
          { path: 'sandboxes', lazy: page(() => import('@/pages/sandboxes'), 'sandboxes') },
          {
            path: 'sandboxes/:id',
            lazy: page(() => import('@/pages/sandbox'), 'sandboxes', 'lifecycle'),
            children: [
              {
                errorElement: <RouteError />,
                children: [
                  { index: true, element: <Navigate to="history" replace /> },
                  { path: 'history', lazy: page(() => import('@/pages/timeline'), 'timeline') },
                  { path: 'files', lazy: page(() => import('@/pages/files'), 'files') },
                  { path: 'commands', lazy: page(() => import('@/pages/commands'), 'commands') },
                  { path: 'terminal', lazy: page(() => import('@/pages/terminal'), 'terminal') },
                  { path: 'locks', lazy: page(() => import('@/pages/locks'), 'locks') },
                  { path: 'overview', lazy: page(() => import('@/pages/sandbox/overview'), 'sandboxes') },
                ],
              },
            ],
          },
          { path: 'history', lazy: page(() => import('@/pages/timeline'), 'timeline') },
          { path: 'runs', lazy: page(() => import('@/pages/runs'), 'runs') },
          { path: 'runs/:run', lazy: page(() => import('@/pages/timeline'), 'timeline') },
          { path: 'policy', lazy: page(() => import('@/pages/policy'), 'policy') },
          { path: 'tokens', lazy: page(() => import('@/pages/tokens'), 'tokens') },
          { path: '*', element: <NotFound /> },
        ],
      },
    ],
  },
], { basename });

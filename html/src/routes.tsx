// Addresses, kept stable (docs/console-api.md); each page is loaded when it opens.

import { createBrowserRouter, Navigate } from 'react-router';
import { basename } from '@/lib/mount';
import { NotFound, RouteError } from '@/layout/route-error';
import { Shell } from '@/layout/shell';

export const makeRouter = () => createBrowserRouter([
  {
    element: <Shell />,
    errorElement: <RouteError />,
    hydrateFallbackElement: <></>,
    children: [
      {
        errorElement: <RouteError />,
        children: [
          { index: true, lazy: () => import('@/pages/overview') },
          { path: 'sandboxes', lazy: () => import('@/pages/sandboxes') },
          {
            path: 'sandboxes/:id',
            lazy: () => import('@/pages/sandbox'),
            children: [
              {
                errorElement: <RouteError />,
                children: [
                  { index: true, element: <Navigate to="history" replace /> },
                  { path: 'history', lazy: () => import('@/pages/timeline') },
                  { path: 'files', lazy: () => import('@/pages/files') },
                  { path: 'commands', lazy: () => import('@/pages/commands') },
                  { path: 'terminal', lazy: () => import('@/pages/terminal') },
                  { path: 'locks', lazy: () => import('@/pages/locks') },
                  { path: 'overview', lazy: () => import('@/pages/sandbox/overview') },
                ],
              },
            ],
          },
          { path: 'history', lazy: () => import('@/pages/timeline') },
          { path: 'runs', lazy: () => import('@/pages/runs') },
          { path: 'runs/:run', lazy: () => import('@/pages/timeline') },
          { path: 'policy', lazy: () => import('@/pages/policy') },
          { path: 'tokens', lazy: () => import('@/pages/tokens') },
          { path: '*', element: <NotFound /> },
        ],
      },
    ],
  },
], { basename });

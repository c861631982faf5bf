// Where the navigation leads.  A new area gets a line here, its routes in
// routes.tsx and its texts in i18n/.

import { Box, History, KeyRound, LayoutDashboard, ShieldCheck, Workflow, type LucideIcon } from 'lucide-react';
import type { ParseKeys } from 'i18next';
import type { Role } from '@/api/session';

export interface Area {
  to: string;
  label: ParseKeys<'common'>;
  icon: LucideIcon;
  /** Shown to those who have this role. */
  role?: Role;
  /** It shows things of all sandboxes: not for those who may see certain ones only. */
  all?: true;
}

/** The main navigation. */
export const AREAS: readonly Area[] = [
  { to: '/', label: 'nav.overview', icon: LayoutDashboard },
  { to: '/sandboxes', label: 'nav.sandboxes', icon: Box, all: true },
  { to: '/history', label: 'nav.history', icon: History, all: true },
  { to: '/runs', label: 'nav.runs', icon: Workflow, all: true },
  { to: '/policy', label: 'nav.policy', icon: ShieldCheck, role: 'admin', all: true },
  { to: '/tokens', label: 'nav.tokens', icon: KeyRound, role: 'admin', all: true },
];

/** Tabs of a sandbox: addresses below sandboxes/{id}/. */
export const SANDBOX_TABS: readonly { to: string; label: ParseKeys<'common'> }[] = [
  { to: 'history', label: 'tab.history' },
  { to: 'files', label: 'tab.files' },
  { to: 'commands', label: 'tab.commands' },
  { to: 'terminal', label: 'tab.terminal' },
  { to: 'locks', label: 'tab.locks' },
  { to: 'overview', label: 'tab.overview' },
];

import { type ReactNode } from 'react';
import { Tabs as Radix } from 'radix-ui';
import { NavLink } from 'react-router';
import { cx } from '@/lib/cx';

const tab = 'inline-flex h-9 items-center gap-1.5 whitespace-nowrap border-b-2 px-1 text-sm hover:text-text';
const on = 'border-accent font-medium';
const off = 'border-transparent text-dim';

/** Tabs that are addresses of their own. */
export function LinkTabs({ label, tabs }: { label: string; tabs: { to: string; label: string }[] }) {
  return (
    <nav aria-label={label} className="flex gap-4 overflow-x-auto border-b px-4 [scrollbar-width:none]">
      {tabs.map((one) => (
        <NavLink key={one.to} to={one.to} className={({ isActive }) => cx(tab, isActive ? on : off)}>{one.label}</NavLink>
      ))}
    </nav>
  );
}

interface Props<T extends string> {
  label: string;
  value: T;
  onChange(value: T): void;
  tabs: { value: T; label: string; content(): ReactNode }[];
}

/** Tabs inside of something; only the open one is there. */
export function Tabs<T extends string>({ label, value, onChange, tabs }: Props<T>) {
  return (
    <Radix.Root value={value} onValueChange={(v) => onChange(v as T)} className="flex min-h-0 flex-1 flex-col">
      <Radix.List aria-label={label} className="flex shrink-0 gap-4 overflow-x-auto border-b px-3 [scrollbar-width:none]">
        {tabs.map((one) => (
          <Radix.Trigger key={one.value} value={one.value} className={cx(tab, one.value === value ? on : off)}>
            {one.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((one) => (
        <Radix.Content key={one.value} value={one.value} className="min-h-0 flex-1 overflow-y-auto">
          {one.value === value && one.content()}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}

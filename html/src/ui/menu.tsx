import type { ReactElement, ReactNode } from 'react';
import { Check } from 'lucide-react';
import { DropdownMenu as Radix } from 'radix-ui';
import { cx } from '@/lib/cx';

const item = 'flex min-h-7 cursor-pointer select-none items-center gap-2 rounded-sm px-2 py-1 text-sm outline-none '
  + 'data-highlighted:bg-sunk data-disabled:cursor-not-allowed data-disabled:opacity-50';

/** A menu under what opens it. */
export function Menu({ trigger, children, align = 'end' }:
  { trigger: ReactElement; children: ReactNode; align?: 'start' | 'end' }) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content align={align} sideOffset={4} collisionPadding={8}
          className="z-50 max-h-[min(420px,var(--radix-dropdown-menu-content-available-height))] min-w-44 max-w-[min(360px,calc(100vw-16px))] overflow-y-auto rounded-md border border-strong bg-bg p-1"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export function MenuItem({ icon, danger, disabled, onSelect, children }:
  { icon?: ReactNode; danger?: boolean; disabled?: boolean; onSelect(): void; children: ReactNode }) {
  return (
    <Radix.Item disabled={disabled} onSelect={onSelect} className={cx(item, danger && 'text-bad')}>
      {icon}{children}
    </Radix.Item>
  );
}

/** One of several that may be on; the menu stays open. */
export function MenuCheck({ checked, onChange, children, count }:
  { checked: boolean; onChange(on: boolean): void; children: ReactNode; count?: string }) {
  return (
    <Radix.CheckboxItem checked={checked} onCheckedChange={onChange} className={item}
      onSelect={(e) => e.preventDefault()}
    >
      <span className="flex size-4 shrink-0 items-center justify-center rounded-sm border border-strong">
        <Radix.ItemIndicator><Check size={12} aria-hidden /></Radix.ItemIndicator>
      </span>
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {count !== undefined && <span className="tabular-nums text-xs text-dim">{count}</span>}
    </Radix.CheckboxItem>
  );
}

export function MenuRadio<T extends string>({ value, onChange, options }:
  { value: T; onChange(v: T): void; options: { value: T; label: ReactNode }[] }) {
  return (
    <Radix.RadioGroup value={value} onValueChange={(v) => onChange(v as T)}>
      {options.map((o) => (
        <Radix.RadioItem key={o.value} value={o.value} className={item}>
          <span className="size-4 shrink-0">
            <Radix.ItemIndicator><Check size={14} aria-hidden className="text-accent" /></Radix.ItemIndicator>
          </span>
          {o.label}
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  );
}

export const MenuLabel = ({ children }: { children: ReactNode }) => (
  <Radix.Label className="px-2 py-1 text-xs text-dim">{children}</Radix.Label>
);

export const MenuLine = () => <Radix.Separator className="my-1 border-t" />;

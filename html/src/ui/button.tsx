import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { LoaderCircle } from 'lucide-react';
import { cx } from '@/lib/cx';

type Look = 'plain' | 'primary' | 'quiet' | 'danger';

const LOOKS: Record<Look, string> = {
  plain: 'border-line bg-bg hover:border-strong',
  primary: 'border-accent bg-accent text-on-accent font-medium hover:opacity-90',
  quiet: 'border-transparent text-dim hover:bg-sunk hover:text-text',
  danger: 'border-bad bg-bg text-bad hover:bg-bad-tint',
};

export const buttonClass = (look: Look = 'plain', size: 'sm' | 'md' = 'md', icon = false) => cx(
  'inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md',
  'border text-sm transition-colors disabled:opacity-50 aria-disabled:opacity-50',
  size === 'sm' ? 'h-7 min-w-7' : 'h-8 min-w-8',
  icon ? 'px-1.5' : size === 'sm' ? 'px-2' : 'px-3',
  LOOKS[look],
);

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  size?: 'sm' | 'md';
  icon?: ReactNode;
  /** What it does is under way: it cannot be pressed again. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** A button.  One without text has an `aria-label`, which is its tooltip too. */
export function Button({ look, size, icon, busy, children, className, ...rest }: Props) {
  return (
    <button
      type="button"
      title={children ? undefined : rest['aria-label']}
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={cx(buttonClass(look, size, !children), className)}
    >
      {busy ? <LoaderCircle size={15} className="animate-spin" aria-hidden /> : icon}
      {children}
    </button>
  );
}

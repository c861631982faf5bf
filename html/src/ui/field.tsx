import {
  type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes,
  type TextareaHTMLAttributes, useEffect, useId, useRef, useState,
} from 'react';
import { Search, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';

const inputClass = 'h-8 min-w-0 rounded-md border border-line bg-bg px-2.5 text-sm '
  + 'hover:border-strong focus-visible:border-accent aria-invalid:border-bad';

interface FieldProps {
  label: string;
  hint?: ReactNode;
  /** What is wrong with the value, in a sentence. */
  error?: string | null;
  children(props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }): ReactNode;
}

/** A label, what it labels, and what is to be said about it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;

  return (
    <div className="grid gap-1">
      <label htmlFor={id} className="text-sm font-medium">{label}</label>
      {children({
        id,
        ...(note ? { 'aria-describedby': `${id}-note` } : {}),
        ...(error ? { 'aria-invalid': true as const } : {}),
      })}
      {note && (
        <p id={`${id}-note`} role={error ? 'alert' : undefined}
          className={cx('text-xs', error ? 'text-bad' : 'text-dim')}
        >
          {note}
        </p>
      )}
    </div>
  );
}

export function Input({ className, ...rest }:
  InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return <input spellCheck={false} {...rest} className={cx(inputClass, 'w-full', className)} />;
}

export function Textarea({ className, ...rest }:
  TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return (
    <textarea spellCheck={false} {...rest}
      className={cx(inputClass, 'w-full h-auto min-h-20 py-1.5 font-mono text-xs', className)}
    />
  );
}

export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select {...rest} className={cx(inputClass, 'pr-1.5', className)} />;
}

interface SearchProps {
  label: string;
  value: string;
  onChange(value: string): void;
  className?: string;
  ref?: Ref<HTMLInputElement>;
}

/** Values on their way that are remembered. */
const MOST_TOLD = 200;

/** A field to search with; Esc empties it. */
export function SearchInput({ label, value, onChange, className, ref }: SearchProps) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(value);
  const told = useRef<string[]>([]);

  // the value comes back late when it goes by the address: what was typed since is not undone
  useEffect(() => {
    const at = told.current.indexOf(value);

    told.current = told.current.slice(at + 1);
    if (at < 0) {
      told.current = [];
      setTyped(value);
    }
  }, [value]);

  const change = (to: string) => {
    told.current = [...told.current.slice(-MOST_TOLD), to];
    setTyped(to);
    onChange(to);
  };

  return (
    <div role="search" className={cx('relative min-w-0', className)}>
      <Search size={15} aria-hidden className="pointer-events-none absolute left-2.5 top-2 text-dim" />
      <input
        ref={ref} type="text" value={typed} aria-label={label} placeholder={label}
        spellCheck={false} autoComplete="off" enterKeyHint="search"
        className={cx(inputClass, 'w-full px-8')}
        // what an input method has not finished is not sought yet
        onChange={(e) => {
          if ((e.nativeEvent as InputEvent).isComposing) {
            setTyped(e.target.value);
          } else {
            change(e.target.value);
          }
        }}
        onCompositionEnd={(e) => change(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === 'Escape' && !e.nativeEvent.isComposing) {
            if (typed === '') {
              e.currentTarget.blur();
            }
            change('');
          }
        }}
      />
      {typed !== '' && (
        <button type="button" aria-label={t('clear')} title={t('clear')}
          className="absolute right-1 top-1 rounded-sm p-1 text-dim hover:text-text"
          onClick={() => change('')}
        >
          <X size={15} aria-hidden />
        </button>
      )}
    </div>
  );
}

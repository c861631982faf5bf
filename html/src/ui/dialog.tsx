import { type ReactNode, useRef, useState } from 'react';
import { X } from 'lucide-react';
import { Dialog as Radix } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { Button } from './button';
import { ErrorNote } from './error-note';
import { Field, Input } from './field';
import { typeable } from './plain-text';

interface Props {
  open: boolean;
  onOpenChange(open: boolean): void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** Buttons; the first of them is on the left. */
  footer?: ReactNode;
  wide?: boolean;
}

/** Who has the keyboard now, and will be there later: of a menu it is what opened it. */
function whoHasIt(): Element | null {
  const menu = document.activeElement?.closest('[role="menu"]');

  return menu ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '') : document.activeElement;
}

/**
 * What gives the keyboard back when it closes, to who had it when it opened: a
 * field that takes it at once would be remembered in its place.
 */
export function useGiveBack(open: boolean): (e: Event) => void {
  const opener = useRef<Element | null>(null);
  const was = useRef(false);

  if (open && !was.current) {
    opener.current = whoHasIt();
  }
  was.current = open;

  return (e) => {
    if (opener.current instanceof HTMLElement && opener.current.isConnected && opener.current !== document.body) {
      e.preventDefault();
      opener.current.focus();
    }
  };
}

export function Dialog({ open, onOpenChange, title, description, children, footer, wide }: Props) {
  const { t } = useTranslation();
  const giveBack = useGiveBack(open);

  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[#0008]" />
        <Radix.Content
          {...(description ? {} : { 'aria-describedby': undefined })}
          onCloseAutoFocus={giveBack}
          className={cx(
            'fixed left-1/2 top-1/2 z-50 flex max-h-[90dvh] w-[calc(100vw-24px)] -translate-x-1/2',
            '-translate-y-1/2 flex-col rounded-md border border-line bg-bg',
            wide ? 'max-w-3xl' : 'max-w-lg',
          )}
        >
          <div className="flex items-start gap-2 border-b px-4 py-3">
            <Radix.Title className="min-w-0 flex-1 text-lg font-semibold [overflow-wrap:anywhere]">{title}</Radix.Title>
            <Radix.Close asChild>
              <Button look="quiet" size="sm" aria-label={t('close')} icon={<X size={16} aria-hidden />} />
            </Radix.Close>
          </div>
          <div className="grid min-h-0 gap-3 overflow-y-auto px-4 py-3">
            {description && <Radix.Description className="text-dim">{description}</Radix.Description>}
            {children}
          </div>
          {footer && <div className="flex justify-end gap-2 border-t px-4 py-3">{footer}</div>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ConfirmProps {
  open: boolean;
  onOpenChange(open: boolean): void;
  title: string;
  description: ReactNode;
  /** What has to be typed before it can be done, if it can be typed. */
  name?: string | undefined;
  /** What the button says, and does. */
  action: string;
  onConfirm(): Promise<unknown>;
  children?: ReactNode;
}

/** Asks before something is destroyed; closes once it is done, stays with the reason when it is not. */
export function ConfirmDialog({ open, onOpenChange, title, description, name: called, action, onConfirm, children }: ConfirmProps) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const name = called !== undefined && typeable(called) ? called : undefined;
  const right = name === undefined || typed.trim() === name;

  const change = (to: boolean) => {
    if (!busy) {
      setTyped('');
      setError(null);
      onOpenChange(to);
    }
  };

  const confirm = async () => {
    setBusy(true);
    setError(null);

    try {
      await onConfirm();
      setTyped('');
      onOpenChange(false);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      open={open} onOpenChange={change} title={title} description={description}
      footer={(
        <>
          <Button disabled={busy} onClick={() => change(false)}>{t('cancel')}</Button>
          <Button look="danger" busy={busy} disabled={!right} onClick={() => void confirm()}>{action}</Button>
        </>
      )}
    >
      {children}
      {name !== undefined && (
        <form onSubmit={(e) => { e.preventDefault(); if (right && !busy) void confirm(); }}>
          <Field label={t('typeToConfirm', { name })}>
            {(p) => <Input {...p} autoFocus autoComplete="off" value={typed}
              onChange={(e) => setTyped(e.target.value)} />}
          </Field>
        </form>
      )}
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}

/** A pane that comes from the right edge; all of the width on a phone. */
export function Sheet({ open, onOpenChange, title, children }:
  Pick<Props, 'open' | 'onOpenChange' | 'title' | 'children'>) {
  const giveBack = useGiveBack(open);

  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[#0008]" />
        <Radix.Content aria-describedby={undefined} onCloseAutoFocus={giveBack}
          className="fixed inset-y-0 right-0 z-50 flex w-full flex-col border-l border-line bg-bg sm:max-w-xl"
        >
          <Radix.Title className="sr-only">{title}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

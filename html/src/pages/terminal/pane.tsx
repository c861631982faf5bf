import { useCallback, useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react';
import { LoaderCircle } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { useMedia } from '@/lib/media';
import { Button } from '@/ui/button';
import { copyText } from '@/ui/copy';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';
import { followable, LinkDialog, PasteDialog } from './asking';
import { type ConnectionState, PtyConnection } from './connection';
import { Find } from './find';
import { cleanPaste, risky } from './paste';
import type { Screen } from './screen';

export interface PaneHandle {
  focus(): void;
  find(): void;
}

interface Props {
  sandbox: string;
  pty: string;
  /** Is it the one that is seen? */
  shown: boolean;
  copyOnSelect: boolean;
  readOut: boolean;
  label: string;
  onNew(): void;
  onClose(): void;
  /** Has it ended by itself? */
  onEnded(ended: boolean): void;
  /** The keyboard wants out of the terminal. */
  onLeave(): void;
  ref?: Ref<PaneHandle>;
}

// keys that a phone's keyboard does not have
const KEYS = [
  ['Esc', '\x1b'], ['Tab', '\t'], ['Ctrl+C', '\x03'], ['Ctrl+D', '\x04'], ['↑', '\x1b[A'], ['↓', '\x1b[B'],
] as const;

const LINE = 'flex flex-wrap items-center gap-2 border-t px-3 py-1.5 text-sm';

/** One terminal: what it shows, and what is to be said about its line. */
export function Pane({ sandbox, pty, shown, copyOnSelect, readOut, label, onNew, onClose, onEnded, onLeave, ref }: Props) {
  const { t } = useTranslation('terminal');
  const { bytes } = useFormat();
  const host = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null);
  const connection = useRef<PtyConnection | null>(null);
  const [state, setState] = useState<ConnectionState>({ is: 'connecting' });
  const [failed, setFailed] = useState<unknown>(null);
  const [finding, setFinding] = useState(false);
  const [sought, setSought] = useState('');
  const [found, setFound] = useState({ index: -1, count: 0 });
  const [paste, setPaste] = useState<{ text: string; runs: boolean } | null>(null);
  const [link, setLink] = useState<URL | null>(null);

  const touched = useMedia('(pointer: coarse)');

  const focus = useCallback(() => screen.current?.focus(), []);

  // what the screen calls, as it is now
  const now = useRef({ shown, copyOnSelect, readOut, label, onLeave, onEnded, t, bytes });
  useEffect(() => { now.current = { shown, copyOnSelect, readOut, label, onLeave, onEnded, t, bytes }; });

  useEffect(() => screen.current?.setReadOut(readOut), [readOut]);

  useEffect(() => {
    let gone = false;

    import('./screen').then(({ Screen: Made }) => {
      if (gone || !host.current) {
        return;
      }

      const made = new Made(host.current, {
        label: now.current.label, tooMuch: now.current.t('tooMuchToRead'),
        onInput: (b) => {
          if (connection.current?.type(b) === false) {
            toast(now.current.t('tooMuchTyped'));
          }
        },
        onLink: (url) => setLink(followable(url)),
        onSelect: (text) => {
          if (now.current.copyOnSelect) {
            copyText(text).catch(() => {}).finally(() => made.focus());
          }
        },
        onFound: setFound,
        onSize: () => connection.current?.resize(),
        onKey: (e) => {
          const ours = e.ctrlKey && e.shiftKey && !e.altKey && !e.metaKey
            && ['KeyF', 'KeyC', 'ArrowUp'].includes(e.code);

          if (!ours) {
            // as browsers paste as text
            return e.ctrlKey && e.shiftKey && e.code === 'KeyV';
          }

          e.preventDefault();

          if (e.type === 'keydown') {
            if (e.code === 'KeyF') {
              setFinding(true);
            } else if (e.code === 'ArrowUp') {
              now.current.onLeave();
            } else if (made.terminal.hasSelection()) {
              copyText(made.terminal.getSelection()).catch(toastError).finally(() => made.focus());
            }
          }
          return true;
        },
      });

      made.onSkipped = (n) => made.note(now.current.t('skipped', { size: now.current.bytes(n) }));
      made.setReadOut(now.current.readOut);
      screen.current = made;
      connection.current = new PtyConnection({
        sandbox, pty,
        size: () => made.size(),
        fit: () => made.fitNow(),
        onOutput: (o) => {
          if (o.missing > 0) {
            made.modesUnknown = true;
            made.note(now.current.t('missing', { size: now.current.bytes(o.missing) }));
          }
          made.write(o.bytes, o.replay);
        },
        onState: (s) => {
          setState(s);
          now.current.onEnded(s.is === 'exited' || s.is === 'gone');
        },
      });

      if (now.current.shown && !document.querySelector('[role="dialog"]')) {
        made.focus();
      }
    }, setFailed);

    return () => {
      gone = true;
      connection.current?.close();
      screen.current?.dispose();
      connection.current = null;
      screen.current = null;
    };
  }, [sandbox, pty]);

  // before xterm has it
  useEffect(() => {
    const box = host.current!;
    const onPaste = (e: ClipboardEvent) => {
      const text = cleanPaste(e.clipboardData?.getData('text/plain') ?? '');

      e.preventDefault();
      e.stopPropagation();

      if (risky(text)) {
        const made = screen.current;
        setPaste({ text, runs: !made || made.modesUnknown || !made.terminal.modes.bracketedPasteMode });
      } else {
        screen.current?.paste(text);
      }
    };

    box.addEventListener('paste', onPaste, true);
    return () => box.removeEventListener('paste', onPaste, true);
  }, []);

  const find = useCallback(() => setFinding(true), []);
  useImperativeHandle(ref, () => ({ focus, find }), [focus, find]);

  const endFind = () => {
    setFinding(false);
    screen.current?.endFind();
    focus();
  };

  const again = (takeover = false) => {
    connection.current?.again(takeover);
    focus();
  };

  const endPaste = (text?: string) => {
    setPaste(null);
    if (text !== undefined) {
      screen.current?.paste(text);
    }
    // when the dialog has given the keyboard back
    setTimeout(focus);
  };

  const alone = state.is === 'held' || state.is === 'taken' || state.is === 'exited' || state.is === 'gone';

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {failed !== null && <div className="p-3"><ErrorNote error={failed} onRetry={() => location.reload()} /></div>}
      <div className="relative min-h-0 flex-1 bg-bg">
        <div ref={host} data-keys="own" data-state={state.is}
          className={cx('recorded absolute inset-0 overflow-hidden p-2', alone && 'opacity-60')}
        />
        {finding && (
          <Find text={sought} found={found} onClose={endFind}
            onText={(text) => { setSought(text); screen.current?.find(text, false); }}
            onStep={(back) => screen.current?.find(sought, back)}
          />
        )}
      </div>

      <div role="status">
        {(state.is === 'connecting' || state.is === 'waiting') && (
          <p className={cx(LINE, 'text-dim')}>
            <LoaderCircle size={15} aria-hidden className="animate-spin" />
            {t(state.is)}
          </p>
        )}
        {state.is === 'held' && (
          <div className={cx(LINE, 'bg-warn-tint')}>
            <p className="min-w-0 flex-1">{state.by ? t('heldBy', { who: harmless(state.by) }) : t('held')}</p>
            <Button size="sm" onClick={onNew}>{t('another')}</Button>
            <Button size="sm" look="primary" onClick={() => again(true)}>{t('takeOver')}</Button>
          </div>
        )}
        {state.is === 'taken' && (
          <div className={cx(LINE, 'bg-warn-tint')}>
            <p className="min-w-0 flex-1">{state.by ? t('takenBy', { who: harmless(state.by) }) : t('taken')}</p>
            <Button size="sm" onClick={onNew}>{t('another')}</Button>
            <Button size="sm" look="primary" onClick={() => again(true)}>{t('takeBack')}</Button>
          </div>
        )}
        {state.is === 'exited' && (
          <div className={cx(LINE, 'bg-raised')}>
            <p className="min-w-0 flex-1">{state.code === null ? t('exited') : t('exitedWith', { code: state.code })}</p>
            <Button size="sm" onClick={onClose}>{t('closeTab')}</Button>
            <Button size="sm" look="primary" onClick={() => again()}>{t('restart')}</Button>
          </div>
        )}
        {state.is === 'gone' && (
          <div className={cx(LINE, 'bg-raised')}>
            <p className="min-w-0 flex-1">{t('gone')}</p>
            <Button size="sm" onClick={onClose}>{t('closeTab')}</Button>
            <Button size="sm" look="primary" onClick={onNew}>{t('another')}</Button>
          </div>
        )}
      </div>
      {touched && state.is === 'open' && (
        <div role="group" aria-label={t('touchKeys')} className="flex gap-1 overflow-x-auto border-t bg-raised px-2 py-1">
          {KEYS.map(([name, data]) => (
            <Button key={name} size="sm" onClick={() => { screen.current?.terminal.input(data); focus(); }}>{name}</Button>
          ))}
        </div>
      )}
      {state.is === 'refused' && (
        <div className="border-t p-2"><ErrorNote error={state.error} onRetry={() => again()} /></div>
      )}

      <PasteDialog text={paste?.text ?? null} runs={paste?.runs ?? true} onPaste={endPaste} onClose={() => endPaste()} />
      <LinkDialog url={link} onClose={() => { setLink(null); setTimeout(focus); }} />
    </div>
  );
}

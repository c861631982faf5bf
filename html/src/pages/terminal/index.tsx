import { useCallback, useEffect, useRef, useState } from 'react';
import { Accessibility, Copy, CopyCheck, Pause, Plus, Search, ShieldX, TerminalSquare, Trash2 } from 'lucide-react';
import { Tabs } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { useOutletContext, useParams } from 'react-router';
import { endPty, openPty } from '@/api/pty';
import { ApiError } from '@/api/errors';
import { useSession } from '@/api/session';
import type { Sandbox } from '@/api/types';
import { cx } from '@/lib/cx';
import { useStored } from '@/lib/stored';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { toastError } from '@/ui/toast';
import { Pane, type PaneHandle } from './pane';
import { keepTerminals, keptTerminals, useTerminals } from './sessions';

const MOST_TABS = 16;
const NOT_RUNNING = ['paused', 'pausing', 'deleted', 'terminated', 'stopping', 'failed'];

/** Terminals of a sandbox that can have some. */
function Terminals({ sandbox }: { sandbox: string }) {
  const { t } = useTranslation('terminal');
  const { t: common } = useTranslation();
  const [{ pty: open, at }, setOpen] = useTerminals();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [ending, setEnding] = useState(false);
  const [copying, setCopying] = useStored('terminal.copy', ['on', 'off'], 'on');
  const [readOut, setReadOut] = useStored('terminal.read', ['off', 'on'], 'off');
  const ended = useRef(new Set<string>());
  const panes = useRef(new Map<string, PaneHandle>());
  const list = useRef<HTMLDivElement>(null);
  const began = useRef(false);
  const current = open.includes(at) ? at : open[0] ?? '';

  const show = useCallback((all: string[], now: string, how: 'push' | 'replace') => {
    keepTerminals(sandbox, all);
    setOpen({ pty: all, at: now === all[0] ? '' : now }, how);
  }, [sandbox, setOpen]);

  const add = useCallback(async (beside: string[], how: 'push' | 'replace') => {
    setBusy(true);
    setError(null);

    try {
      const made = await openPty(sandbox);
      show([...beside, made], made, how);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  }, [sandbox, show]);

  // comes in with a terminal: that of the address, that of before, a new one
  useEffect(() => {
    if (open.length > 0) {
      keepTerminals(sandbox, open);
      began.current = true;
    } else if (!began.current) {
      const kept = keptTerminals(sandbox);

      began.current = true;
      kept.length > 0 ? show(kept, kept[0]!, 'replace') : void add([], 'replace');
    }
  }, [sandbox, open, show, add]);

  useEffect(() => { panes.current.get(current)?.focus(); }, [current]);

  // what only the line was in the way of
  useEffect(() => {
    if (!(error instanceof ApiError && error.passing)) {
      return undefined;
    }

    const retry = () => void add(open, 'replace');

    addEventListener('online', retry);
    return () => removeEventListener('online', retry);
  }, [error, open, add]);

  const drop = (pty: string) => {
    const rest = open.filter((one) => one !== pty);

    ended.current.delete(pty);
    show(rest, rest[Math.max(0, open.indexOf(pty) - 1)] ?? '', 'replace');
  };

  const end = async (pty: string) => {
    setEnding(false);

    try {
      await endPty(sandbox, pty);
    } catch (e) {
      if (!(e instanceof ApiError) || e.status !== 404) {
        toastError(e);
        return;
      }
    }
    drop(pty);
  };

  const many = open.length >= MOST_TABS;

  return (
    <Tabs.Root value={current} activationMode="manual" className="flex min-h-0 flex-1 flex-col"
      onValueChange={(v) => {
        show(open, v, 'replace');
        panes.current.get(v)?.focus();
      }}
    >
      <div className="flex h-9 shrink-0 items-center gap-1 border-b bg-raised pr-2 pl-3">
        <Tabs.List ref={list} aria-label={t('terminals')} className="flex h-full min-w-0 gap-1 overflow-x-auto [scrollbar-width:none]">
          {open.map((pty, i) => (
            <Tabs.Trigger key={pty} value={pty} className={cx(
              'inline-flex h-full items-center gap-1.5 border-b-2 px-2 text-sm whitespace-nowrap hover:text-text',
              pty === current ? 'border-accent font-medium' : 'border-transparent text-dim')}
            >
              <TerminalSquare size={14} aria-hidden />
              {t('tab', { n: i + 1 })}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Button look="quiet" size="sm" busy={busy} disabled={many} aria-label={many ? t('tooMany', { n: MOST_TABS }) : t('new')}
          icon={<Plus size={15} aria-hidden />} onClick={() => void add(open, 'push')}
        />
        <span className="flex-1" />
        <Button look="quiet" size="sm" aria-pressed={copying === 'on'} aria-label={t('copyOnSelect')}
          className={cx(copying === 'on' && 'bg-tint text-accent!')}
          icon={copying === 'on' ? <CopyCheck size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
          onClick={() => { setCopying(copying === 'on' ? 'off' : 'on'); panes.current.get(current)?.focus(); }}
        />
        <Button look="quiet" size="sm" aria-pressed={readOut === 'on'} aria-label={t('readOut')} className={cx(readOut === 'on' && 'bg-tint text-accent!')}
          icon={<Accessibility size={15} aria-hidden />} onClick={() => { setReadOut(readOut === 'on' ? 'off' : 'on'); panes.current.get(current)?.focus(); }}
        />
        <Button look="quiet" size="sm" disabled={current === ''} aria-label={t('find')} title={`${t('find')} (Ctrl+Shift+F)`}
          icon={<Search size={15} aria-hidden />} onClick={() => panes.current.get(current)?.find()}
        />
        <Button look="quiet" size="sm" disabled={current === ''} aria-label={t('end.action')}
          icon={<Trash2 size={15} aria-hidden />}
          onClick={() => (ended.current.has(current) ? void end(current) : setEnding(true))}
        />
      </div>

      {error !== null && <div className="p-3"><ErrorNote error={error} onRetry={() => void add(open, 'replace')} /></div>}
      {open.length === 0 && error === null && (busy || !began.current) && <Skeleton className="p-4" />}
      {open.length === 0 && error === null && !busy && began.current && (
        <Empty icon={TerminalSquare} title={t('none')}>
          <div><Button look="primary" onClick={() => void add([], 'push')}>{t('new')}</Button></div>
        </Empty>
      )}

      {open.map((pty, i) => (
        <Tabs.Content key={pty} value={pty} forceMount hidden={pty !== current} tabIndex={-1}
          className="flex min-h-0 flex-1 flex-col outline-none [&[hidden]]:hidden"
        >
          <Pane sandbox={sandbox} pty={pty} shown={pty === current} copyOnSelect={copying === 'on'} readOut={readOut === 'on'}
            label={t('tab', { n: i + 1 })}
            ref={(handle) => { if (handle) panes.current.set(pty, handle); else panes.current.delete(pty); }}
            onNew={() => void add(open, 'push')} onClose={() => void end(pty)}
            onEnded={(is) => { if (is) ended.current.add(pty); else ended.current.delete(pty); }}
            onLeave={() => list.current?.querySelector<HTMLElement>('[role="tab"][data-state="active"]')?.focus()}
          />
        </Tabs.Content>
      ))}
      <p className="shrink-0 border-t bg-raised px-3 py-1 text-2xs text-dim max-md:hidden">{t('keys')}</p>

      <Dialog open={ending} onOpenChange={setEnding} title={t('end.title')} description={t('end.hint')}
        footer={(
          <>
            <Button onClick={() => setEnding(false)}>{common('cancel')}</Button>
            <Button onClick={() => { setEnding(false); drop(current); }}>{t('end.leave')}</Button>
            <Button look="danger" onClick={() => void end(current)}>{t('end.action')}</Button>
          </>
        )}
      />
    </Tabs.Root>
  );
}

/** The terminals of a sandbox: one is open at once, and has the keyboard. */
export function Component() {
  const { t } = useTranslation('terminal');
  const id = useParams().id!;
  const sandbox = useOutletContext<Sandbox | undefined>();
  const { may } = useSession();

  if (!may('operator')) {
    return <Empty icon={ShieldX} title={t('mayNot')}><p>{t('mayNotHint')}</p></Empty>;
  }

  if (!sandbox) {
    return <Skeleton className="p-4" />;
  }

  if (NOT_RUNNING.includes(sandbox.state?.toLowerCase() ?? '')) {
    return <Empty icon={Pause} title={t('notRunning')}><p>{t('notRunningHint')}</p></Empty>;
  }

  return <Terminals key={id} sandbox={id} />;
}

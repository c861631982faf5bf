// Search or jump: pages, sandboxes by name or id, records by their id, or a
// full-text search for what was typed.

import { useDeferredValue, useState } from 'react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Box, type LucideIcon, Search, SquareTerminal, Workflow } from 'lucide-react';
import { Dialog } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { useNavigate } from 'react-router';
import { sandboxesQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import { AREAS } from '@/areas';
import { cx } from '@/lib/cx';
import { useGiveBack } from '@/ui/dialog';
import { Recorded } from '@/ui/plain-text';
import { StateBadge } from '@/ui/status';

interface Entry { key: string; to: string; icon: LucideIcon; label: React.ReactNode; note?: React.ReactNode }

const OPERATION_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function useEntries(typed: string): Entry[] {
  const { t } = useTranslation();
  const { may, limited } = useSession();
  const q = useDeferredValue(typed.trim());
  const { data } = useInfiniteQuery({ ...sandboxesQuery({ q, limit: 8 }), refetchInterval: false, enabled: !limited });
  const low = q.toLowerCase();

  const pages = AREAS
    .filter((a) => (!a.role || may(a.role)) && !(a.all && limited))
    .map((a) => ({ key: a.to, to: a.to, icon: a.icon, label: t(a.label) }))
    .filter((e) => e.label.toLowerCase().includes(low));

  const sandboxes = (data?.pages[0]?.items ?? []).map((s) => ({
    key: s.id, to: `/sandboxes/${encodeURIComponent(s.id)}/history`, icon: Box,
    label: <Recorded text={s.name} />, note: <StateBadge state={s.state} />,
  }));

  // who may not ask for a list opens a sandbox by its id
  if (limited) {
    return q === '' ? pages : [...pages, { key: q, to: `/sandboxes/${encodeURIComponent(q)}/history`, icon: Box, label: t('palette.sandbox', { q }) }];
  }

  if (q === '') {
    return [...pages, ...sandboxes];
  }

  const search = OPERATION_ID.test(q)
    ? { to: `/history?op=${q}`, label: t('palette.record'), icon: SquareTerminal }
    : { to: `/history?q=${encodeURIComponent(q)}`, label: t('palette.search', { q }), icon: Search };

  const run = { key: 'run', to: `/runs/${encodeURIComponent(q)}`, label: t('palette.run', { q }), icon: Workflow };

  return [...pages, ...sandboxes, { key: 'search', ...search }, ...(/\s/.test(q) || OPERATION_ID.test(q) ? [] : [run])];
}

function Finder({ onDone }: { onDone(): void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const entries = useEntries(typed);
  const active = Math.min(at, entries.length - 1);

  const go = (e: Entry | undefined) => {
    if (e) {
      onDone();
      void navigate(e.to);
    }
  };

  const onKey = (e: React.KeyboardEvent) => {
    if (e.nativeEvent.isComposing) {
      return;
    }

    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];

    if (step) {
      e.preventDefault();
      setAt((active + step + entries.length) % Math.max(entries.length, 1));
    } else if (e.key === 'Enter') {
      e.preventDefault();
      go(entries[active]);
    }
  };

  return (
    <>
      <input autoFocus role="combobox" aria-expanded aria-controls="palette-list" aria-label={t('palette.open')}
        aria-activedescendant={entries[active] && `palette-${active}`}
        placeholder={t('palette.hint')} value={typed} spellCheck={false} autoComplete="off"
        className="w-full border-b bg-transparent px-4 py-3 outline-none"
        onChange={(e) => { setTyped(e.target.value); setAt(0); }} onKeyDown={onKey}
      />
      <div id="palette-list" role="listbox" aria-label={t('palette.open')} className="max-h-80 overflow-y-auto p-1">
        {entries.map((e, i) => (
          <div key={e.key} id={`palette-${i}`} role="option" aria-selected={i === active}
            className={cx('flex h-8 cursor-pointer items-center gap-2 rounded-sm px-3 text-sm', i === active && 'bg-tint')}
            onMouseMove={() => setAt(i)} onClick={() => go(e)}
          >
            <e.icon size={15} aria-hidden className="shrink-0 text-dim" />
            <span className="min-w-0 flex-1 truncate">{e.label}</span>
            {e.note}
          </div>
        ))}
      </div>
    </>
  );
}

export function Palette({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }) {
  const { t } = useTranslation();
  const giveBack = useGiveBack(open);

  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-[#0008]" />
        <Dialog.Content aria-describedby={undefined} onCloseAutoFocus={giveBack}
          className="fixed left-1/2 top-[12dvh] z-50 w-[calc(100vw-24px)] max-w-xl -translate-x-1/2 overflow-hidden rounded-md border border-strong bg-bg"
        >
          <Dialog.Title className="sr-only">{t('palette.open')}</Dialog.Title>
          <Finder onDone={() => onOpenChange(false)} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useQueries } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  ChevronRight, File, FileCode, FileImage, FileText, Folder, FolderOpen, Link2, LoaderCircle, type LucideIcon,
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Entry, folderQuery } from '@/api/files';
import { cx } from '@/lib/cx';
import { errorText } from '@/ui/error-note';
import { Recorded } from '@/ui/plain-text';
import { baseName, parentOf, within } from './paths';
import { imageType } from './text';

const ROW = 28;
const MOST_OPEN = 200;
/** What is dragged out of the tree. */
export const DRAGGED = 'application/x-sandbox-path';

export type Line =
  | { kind: 'entry'; entry: Entry; depth: number; open: boolean; busy: boolean }
  | { kind: 'note'; path: string; depth: number; text: string; error: boolean };

const keyOf = (l: Line) => (l.kind === 'entry' ? l.entry.path : `${l.path}//note`);
const rowId = (path: string) => `file-${encodeURIComponent(path)}`;

function iconOf({ type, path }: Entry, open: boolean): LucideIcon {
  if (type === 'directory') {
    return open ? FolderOpen : Folder;
  }
  if (type === 'symlink') {
    return Link2;
  }
  if (imageType(path)) {
    return FileImage;
  }

  return /\.(?:md|txt|rst|log)$/i.test(path) ? FileText : /\.[a-z]+$/i.test(path) ? FileCode : File;
}

/** The tree below a folder, as far as it is open, one line for each row. */
export function useTree(id: string, root: string, opened: ReadonlySet<string>): Line[] {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const folders = useMemo(
    () => [root, ...[...opened].filter((p) => p !== root && within(p, root))].slice(0, MOST_OPEN),
    [root, opened],
  );
  const answers = useQueries({ queries: folders.map((path) => folderQuery(id, path)) });

  const lines: Line[] = [];

  const walk = (path: string, depth: number) => {
    const at = folders.indexOf(path);
    const { data, error, isPending } = answers[at] ?? {};

    if (error && !data) {
      lines.push({ kind: 'note', path, depth, text: errorText(common, error).text, error: true });
    } else if (data?.length === 0 && depth > 0) {
      lines.push({ kind: 'note', path, depth, text: t('emptyFolder'), error: false });
    }

    for (const entry of data ?? []) {
      const open = entry.type === 'directory' && opened.has(entry.path);

      lines.push({ kind: 'entry', entry, depth, open, busy: open && (answers[folders.indexOf(entry.path)]?.isPending ?? false) });

      if (open && !isPending) {
        walk(entry.path, depth + 1);
      }
    }
  };

  walk(root, 0);
  return lines;
}

interface Props {
  lines: Line[];
  root: string;
  selected: string;
  unsaved: string | null;
  onSelect(entry: Entry): void;
  onToggle(entry: Entry, open: boolean): void;
  /** F2, Delete: what the menu of an entry does. */
  onKey(entry: Entry, key: 'F2' | 'Delete'): void;
  /** Files from outside, or an entry of this tree, put into a folder. */
  onDrop(folder: string, data: DataTransfer): void;
  menu(entry: Entry): ReactNode;
}

/** Folders and files; only the rows that are seen are there. */
export function Tree({ lines, root, selected, unsaved, onSelect, onToggle, onKey, onDrop, menu }: Props) {
  const { t } = useTranslation('files');
  const box = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<string | null>(null);
  const [over, setOver] = useState<string | null>(null);
  const virtual = useVirtualizer({
    count: lines.length, getScrollElement: () => box.current, estimateSize: () => ROW,
    getItemKey: (i) => keyOf(lines[i]!), overscan: 12,
  });
  const active = pointed ?? selected;
  const at = lines.findIndex((l) => keyOf(l) === active);
  const shown = lines.findIndex((l) => keyOf(l) === selected);

  useEffect(() => setPointed(null), [selected]);

  // what an address leads to is seen
  useEffect(() => {
    if (shown >= 0) {
      virtual.scrollToIndex(shown, { align: 'auto' });
    }
  }, [virtual, selected, shown >= 0]);

  const go = (to: number) => {
    const line = lines[Math.min(Math.max(to, 0), lines.length - 1)];

    if (line) {
      setPointed(keyOf(line));
      virtual.scrollToIndex(lines.indexOf(line), { align: 'auto' });
    }
  };

  const onKeyDown = (e: KeyboardEvent) => {
    const line = lines[at];
    const entry = line?.kind === 'entry' ? line.entry : null;
    const open = line?.kind === 'entry' && line.open;
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at < 0 ? 0 : at - 1),
      Home: () => go(0),
      End: () => go(lines.length - 1),
      ArrowRight: () => {
        if (entry?.type === 'directory') {
          if (open) go(at + 1); else onToggle(entry, true);
        }
      },
      ArrowLeft: () => {
        if (entry && open) {
          onToggle(entry, false);
        } else if (line) {
          go(lines.findIndex((l) => l.kind === 'entry' && l.entry.path === (entry ? parentOf(entry.path) : keyOf(line).slice(0, -6))));
        }
      },
      Enter: () => entry && onSelect(entry),
      ' ': () => entry && onSelect(entry),
      F2: () => entry && onKey(entry, 'F2'),
      Delete: () => entry && onKey(entry, 'Delete'),
    };

    if (keys[e.key] && e.target === e.currentTarget && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      keys[e.key]!();
    }
  };

  const target = (e: React.DragEvent) => {
    const path = (e.target as Element).closest<HTMLElement>('[data-folder]')?.dataset.folder;
    return path ?? root;
  };

  return (
    <div
      ref={box} role="tree" tabIndex={0} aria-label={t('tree')} data-keys="own"
      aria-activedescendant={at >= 0 ? rowId(active) : undefined}
      className={cx('min-h-0 flex-1 overflow-y-auto py-1 [overflow-anchor:none]', over === root && 'bg-tint')}
      onKeyDown={onKeyDown}
      onDragOver={(e) => {
        if (e.dataTransfer.types.includes('Files') || e.dataTransfer.types.includes(DRAGGED)) {
          e.preventDefault();
          setOver(target(e));
        }
      }}
      onDragLeave={(e) => { if (!e.currentTarget.contains(e.relatedTarget as Node)) setOver(null); }}
      onDrop={(e) => {
        e.preventDefault();
        setOver(null);
        onDrop(target(e), e.dataTransfer);
      }}
    >
      <div role="presentation" className="relative w-full" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((v) => {
          const line = lines[v.index]!;
          const style = { height: ROW, transform: `translateY(${v.start}px)` };
          const indent = { paddingLeft: 8 + line.depth * 16 };

          if (line.kind === 'note') {
            return (
              <div key={v.key} id={rowId(keyOf(line))} role="treeitem" aria-level={line.depth + 1} style={style}
                className={cx('absolute inset-x-0 top-0 flex items-center truncate text-xs', line.error ? 'text-bad' : 'text-dim',
                  keyOf(line) === active && 'bg-raised')}
              >
                <span className="truncate" style={{ paddingLeft: 32 + line.depth * 16 }} title={line.text}>{line.text}</span>
              </div>
            );
          }

          const { entry, open, busy } = line;
          const folder = entry.type === 'directory';
          const Icon = iconOf(entry, open);
          const on = entry.path === selected;

          return (
            <div
              key={v.key} id={rowId(entry.path)} role="treeitem" aria-level={line.depth + 1} aria-selected={on}
              aria-expanded={folder ? open : undefined} draggable
              data-folder={folder ? entry.path : parentOf(entry.path)} style={{ ...style, ...indent }}
              className={cx(
                'group absolute inset-x-0 top-0 flex cursor-pointer items-center gap-1.5 pr-1 text-sm',
                on ? 'bg-tint' : 'hover:bg-raised',
                entry.path === pointed && 'outline-1 -outline-offset-1 outline-accent',
                folder && over === entry.path && 'bg-tint outline-2 -outline-offset-2 outline-accent',
              )}
              onClick={() => onSelect(entry)}
              onDragStart={(e) => {
                e.dataTransfer.setData(DRAGGED, entry.path);
                e.dataTransfer.effectAllowed = 'move';
              }}
            >
              {folder
                ? busy
                  ? <LoaderCircle size={14} aria-hidden className="shrink-0 animate-spin text-dim" />
                  : (
                    <ChevronRight size={14} aria-hidden className={cx('shrink-0 text-dim', open && 'rotate-90')}
                      onClick={(e) => { e.stopPropagation(); onToggle(entry, !open); }}
                    />
                  )
                : <span className="w-3.5 shrink-0" />}
              <Icon size={15} aria-hidden className={cx('shrink-0', folder ? 'text-accent' : 'text-dim')} />
              <Recorded text={baseName(entry.path)} className="min-w-0 flex-1 truncate" />
              {unsaved === entry.path && <span className="shrink-0 text-warn" title={t('unsaved')}>●<span className="sr-only">{t('unsaved')}</span></span>}
              <span
                className={cx('shrink-0 opacity-0 group-hover:opacity-100 has-data-[state=open]:opacity-100', on && 'opacity-100')}
                onClick={(e) => e.stopPropagation()} onKeyDown={(e) => e.stopPropagation()}
              >
                {menu(entry)}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

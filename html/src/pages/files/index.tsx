import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import {
  CornerLeftUp, Download, Ellipsis, FilePlus, FolderInput, FolderPlus, FolderRoot, FolderUp, History, PencilLine, Power, RefreshCw, SearchX, Trash2, Upload as UploadIcon,
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useNavigate, useOutletContext, useParams } from 'react-router';
import { type Entry, entryQuery, statPath } from '@/api/files';
import { ApiError } from '@/api/errors';
import { useSession } from '@/api/session';
import type { Sandbox } from '@/api/types';
import { cx } from '@/lib/cx';
import { useHotkeys } from '@/lib/hotkeys';
import { Button } from '@/ui/button';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Menu, MenuItem, MenuLine } from '@/ui/menu';
import { harmless, Recorded } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';
import { type Question, QuestionDialog } from './dialogs';
import { type Dropped, fromDrop, fromInput } from './drop';
import { FilePane } from './file-pane';
import { FolderDownload } from './folder-download';
import { FolderPane } from './folder-pane';
import { UnsavedGuard } from './guard';
import { useFollow } from './live';
import { baseName, crumbs, historyOf, normal, parentOf, within } from './paths';
import { useFilesSearch } from './search';
import type { Saver } from './text-file';
import { DRAGGED, Tree, useTree } from './tree';
import { Upload } from './upload';
import { Versions } from './versions';

const WORK = '/workspace';

/** Where people begin: the work directory, or the root where there is none. */
const useWorkFolder = (id: string, enabled: boolean) => useQuery({
  queryKey: ['files', id, 'work'],
  queryFn: async ({ signal }) => ((await statPath(id, WORK, signal))?.type === 'directory' ? WORK : '/'),
  staleTime: Infinity, enabled,
});

export function Component() {
  const { t } = useTranslation('files');
  const id = useParams().id!;
  const sandbox = useOutletContext<Sandbox | undefined>();
  const [search] = useFilesSearch();
  // where its state is not known, the sandbox itself is asked
  const running = !sandbox?.state || sandbox.state.toLowerCase() === 'running';
  const { data: work, error, refetch } = useWorkFolder(id, running);
  const [edited, setEdited] = useState(false);

  // what a file was is on record, whether the sandbox runs or not; what is typed is nowhere but here
  if (!running && !(edited && work !== undefined)) {
    return search.path
      ? <Versions id={id} path={search.path} running={false} mayWrite={false} exists={false} dirty={false} />
      : <Empty icon={Power} title={t('notRunning')}><p>{t('notRunningHint')}</p></Empty>;
  }
  if (error && work === undefined) {
    return <div className="p-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>;
  }
  if (work === undefined) {
    return <Skeleton lines={10} className="p-4" />;
  }

  return <Files key={id} id={id} work={work} running={running} onEdited={setEdited} />;
}

function Files({ id, work, running, onEdited }: { id: string; work: string; running: boolean; onEdited(edited: boolean): void }) {
  const { t } = useTranslation('files');
  const client = useQueryClient();
  const navigate = useNavigate();
  const { may } = useSession();
  const mayWrite = may('operator') && running;
  const [search, setSearch] = useFilesSearch();
  const wanted = search.path && normal(search.path);
  const root = search.root ? normal(search.root) : !wanted || within(wanted, work) ? work : parentOf(wanted);
  const path = wanted || root;
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [question, setQuestion] = useState<Question | null>(null);
  const [upload, setUpload] = useState<{ files: Dropped[]; folder: string } | null>(null);
  const [zip, setZip] = useState<string | null>(null);
  const [dirty, tellDirty] = useState(false);
  const edits = useRef(false);
  const saver = useRef<Saver | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const inputTo = useRef(path);
  const { data: stat, error, isPending, refetch } = useQuery(entryQuery(id, path));
  const last = useRef<Entry | null>(null);
  const lines = useTree(id, root, opened);

  const setDirty = useCallback((is: boolean) => {
    edits.current = is;
    tellDirty(is);
    onEdited(is);
  }, [onEdited]);

  useEffect(() => () => onEdited(false), [onEdited]);

  useFollow(id);

  // what was open and is gone stays until it is left, with edits or without
  if (stat) {
    last.current = stat;
  } else if (last.current?.path !== path) {
    last.current = null;
  }

  const entry = stat ?? last.current;
  const isFolder = entry?.type === 'directory';
  const folder = isFolder ? path : parentOf(path);
  const unsaved = dirty ? path : null;

  // the way to what is open is open
  useEffect(() => {
    const way = crumbs(path).map((c) => c.path).filter((p) => p !== path && within(p, root));

    setOpened((now) => (way.every((p) => now.has(p)) ? now : new Set([...now, ...way])));
  }, [path, root]);

  useEffect(() => setDirty(false), [path, setDirty]);

  useHotkeys({ 'mod+s': () => { if (running) void saver.current?.save(); } });

  const toggle = (e: Entry, open: boolean) => setOpened((now) => {
    const next = new Set(now);
    if (open) next.add(e.path); else next.delete(e.path);
    return next;
  });

  const select = (e: Entry) => {
    if (e.type === 'directory') {
      toggle(e, e.path !== path || !opened.has(e.path));
    }
    setSearch({ path: e.path, root: search.root || (root === work ? '' : root), view: 'file', version: '' });
  };

  const show = (to: string) => setSearch({ path: to, view: 'file', version: '' });
  const beginAt = (to: string) => setSearch({ root: to === work ? '' : to, path: to, view: 'file', version: '' });

  const choose = (to: string) => {
    inputTo.current = to;
    input.current?.click();
  };

  const drop = (to: string, data: DataTransfer) => {
    const dragged = data.getData(DRAGGED);

    if (!mayWrite) {
      return;
    }
    if (dragged) {
      const found = lines.find((l) => l.kind === 'entry' && l.entry.path === dragged);

      if (found?.kind === 'entry' && parentOf(dragged) !== to && !within(to, dragged) && !(dirty && within(path, dragged))) {
        setQuestion({ what: 'move', entry: found.entry, to });
      }
      return;
    }

    fromDrop(data).then((files) => { if (files.length > 0) setUpload({ files, folder: to }); }, toastError);
  };

  const done = (from: string | null, to: string | null, isDir: boolean) => {
    void client.invalidateQueries({ queryKey: ['files', id], predicate: (q) => q.queryKey[2] !== 'content' });

    if (to !== null && (from === null || within(path, from))) {
      show(from === null ? to : to + path.slice(from.length));
      if (isDir) {
        setOpened((now) => new Set([...now, to]));
      }
    } else if (to === null && from !== null && within(path, from)) {
      setDirty(false);
      last.current = null;
      show(within(parentOf(from), root) ? parentOf(from) : '');
    }
  };

  const ask = (what: 'rename' | 'move' | 'delete', e: Entry) => {
    if (dirty && what !== 'delete' && within(path, e.path)) {
      toast(t('saveFirst', { name: harmless(baseName(path)) }));
    } else if (mayWrite) {
      setQuestion({ what, entry: e });
    }
  };

  const menuOf = (e: Entry, inTree: boolean) => (
    <Menu trigger={(
      <Button look="quiet" size="sm" tabIndex={inTree ? -1 : 0} className={inTree ? 'h-6 min-w-6' : undefined}
        aria-label={t('actions', { name: harmless(baseName(e.path)) })} icon={<Ellipsis size={15} aria-hidden />}
      />
    )}
    >
      {e.type === 'directory' && mayWrite && (
        <>
          <MenuItem icon={<FilePlus size={15} aria-hidden />} onSelect={() => setQuestion({ what: 'newFile', folder: e.path })}>{t('newFile')}</MenuItem>
          <MenuItem icon={<FolderPlus size={15} aria-hidden />} onSelect={() => setQuestion({ what: 'newFolder', folder: e.path })}>{t('newFolder')}</MenuItem>
          <MenuItem icon={<UploadIcon size={15} aria-hidden />} onSelect={() => choose(e.path)}>{t('upload.here')}</MenuItem>
          <MenuLine />
        </>
      )}
      {e.type === 'directory' && (
        <>
          <MenuItem icon={<Download size={15} aria-hidden />} onSelect={() => setZip(e.path)}>{t('zip.do')}</MenuItem>
          <MenuItem icon={<FolderRoot size={15} aria-hidden />} onSelect={() => beginAt(e.path)}>{t('beginHere')}</MenuItem>
        </>
      )}
      <MenuItem icon={<History size={15} aria-hidden />} onSelect={() => void navigate(historyOf(id, e.path, e.type === 'directory'))}>{t('inHistory')}</MenuItem>
      {mayWrite && e.path !== '/' && (
        <>
          <MenuItem icon={<PencilLine size={15} aria-hidden />} onSelect={() => ask('rename', e)}>{t('do.rename')}…</MenuItem>
          <MenuItem icon={<FolderInput size={15} aria-hidden />} onSelect={() => ask('move', e)}>{t('do.move')}…</MenuItem>
          <MenuLine />
          <MenuItem danger icon={<Trash2 size={15} aria-hidden />} onSelect={() => ask('delete', e)}>{t('do.delete')}…</MenuItem>
        </>
      )}
    </Menu>
  );

  const trail = useMemo(() => crumbs(root), [root]);
  const fileOpen = entry !== null && !isFolder;

  const pane = () => {
    if (error && !entry && !(error instanceof ApiError && error.code === 'FILE_NOT_FOUND')) {
      return <div className="p-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>;
    }
    if (!entry) {
      return isPending ? <Skeleton lines={10} className="p-4" /> : (
        <Empty icon={SearchX} title={t('missing')}>
          <p><Recorded text={path} /></p>
          <div><Button onClick={() => beginAt(work)}>{t('toWork')}</Button></div>
        </Empty>
      );
    }
    if (isFolder) {
      return <FolderPane id={id} folder={path} onOpen={select} onDrop={drop} menu={menuOf(entry, false)} />;
    }

    return (
      <FilePane key={path} id={id} entry={entry} running={running} gone={stat === null} mayWrite={may('operator')} dirty={dirty} onDirty={setDirty}
        saver={saver} onBack={() => show(parentOf(path))} menu={menuOf(entry, false)}
      />
    );
  };

  return (
    <div className="flex min-h-0 flex-1">
      <section aria-label={t('title')}
        className={cx('flex min-h-0 w-full flex-col md:w-72 md:shrink-0 md:border-r xl:w-80', (fileOpen || (!entry && !isPending)) && 'max-md:hidden')}
      >
        <div className="flex h-10 shrink-0 items-center gap-0.5 border-b px-1.5">
          <nav aria-label={t('way')} className="flex min-w-0 flex-1 items-center overflow-x-auto text-sm [scrollbar-width:none]">
            {trail.map((c, i) => (
              <span key={c.path} className="flex items-center">
                {i > 1 && <span aria-hidden className="text-dim">/</span>}
                <button type="button" aria-current={i === trail.length - 1 ? 'page' : undefined}
                  className={cx('max-w-40 truncate rounded-sm px-1 py-0.5 hover:bg-sunk', i === trail.length - 1 ? 'font-medium' : 'text-dim')}
                  onClick={() => beginAt(c.path)}
                >
                  <Recorded text={c.name} />
                </button>
              </span>
            ))}
          </nav>
          {root !== '/' && (
            <Button look="quiet" size="sm" aria-label={t('up')} icon={<CornerLeftUp size={15} aria-hidden />} onClick={() => beginAt(parentOf(root))} />
          )}
          {mayWrite && (
            <>
              <Button look="quiet" size="sm" aria-label={t('newFile')} icon={<FilePlus size={15} aria-hidden />}
                onClick={() => setQuestion({ what: 'newFile', folder })}
              />
              <Button look="quiet" size="sm" aria-label={t('newFolder')} icon={<FolderPlus size={15} aria-hidden />}
                onClick={() => setQuestion({ what: 'newFolder', folder })}
              />
              <Button look="quiet" size="sm" aria-label={t('upload.here')} icon={<FolderUp size={15} aria-hidden />} onClick={() => choose(folder)} />
            </>
          )}
          <Button look="quiet" size="sm" aria-label={t('refresh')} icon={<RefreshCw size={14} aria-hidden />}
            onClick={() => void client.invalidateQueries({ queryKey: ['files', id] })}
          />
        </div>
        <Tree lines={lines} root={root} selected={path} unsaved={unsaved} onSelect={select} onToggle={toggle}
          onKey={(e, key) => ask(key === 'F2' ? 'rename' : 'delete', e)} onDrop={drop} menu={(e) => menuOf(e, true)}
        />
        {mayWrite && <p className="border-t px-3 py-1 text-xs text-dim max-md:hidden">{t('dropHint')}</p>}
      </section>
      <div className={cx('flex min-h-0 min-w-0 flex-1 flex-col', !fileOpen && (entry || isPending) && 'max-md:hidden')}>{pane()}</div>

      <input ref={input} type="file" multiple hidden aria-hidden tabIndex={-1}
        onChange={(e) => {
          if (e.target.files?.length) setUpload({ files: fromInput(e.target.files), folder: inputTo.current });
          e.target.value = '';
        }}
      />
      {question && <QuestionDialog id={id} question={question} onClose={() => setQuestion(null)} onDone={done} />}
      {upload && <Upload id={id} files={upload.files} folder={upload.folder} onClose={() => setUpload(null)} />}
      {zip !== null && <FolderDownload id={id} folder={zip} onClose={() => setZip(null)} />}
      <UnsavedGuard path={path} running={running} dirty={dirty} edits={edits} saver={saver} />
    </div>
  );
}

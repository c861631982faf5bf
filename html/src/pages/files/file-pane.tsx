import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ArrowLeft, Copy, Download, History, Lock as LockIcon, Save, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { contentQuery, type Entry, readFile } from '@/api/files';
import { locksQuery } from '@/api/locks';
import { useFormat } from '@/lib/format';
import { save as saveBlob } from '@/lib/save';
import { Button } from '@/ui/button';
import { CopyButton, copyText } from '@/ui/copy';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';
import { toast, toastError } from '@/ui/toast';
import { baseName, within } from './paths';
import { BinaryView, ImageView, LargeView } from './preview';
import { useFilesSearch } from './search';
import { imageType, textOf } from './text';
import { type Saver, TextFile } from './text-file';
import { Versions } from './versions';

const EDITED = 4 * 1024 * 1024;
const PICTURED = 32 * 1024 * 1024;
// what has grown while it is edited is read up to here, to be compared
const COMPARED = 2 * EDITED;

/** Somebody works on this path: who, and since when. */
function LockNotice({ id, path }: { id: string; path: string }) {
  const { t } = useTranslation('files');
  const { data } = useQuery(locksQuery(id));
  const lock = data?.items.find((l) => l.state === 'held'
    && l.keys.some((k) => k.mode === 'write' && (within(path, k.path) || within(k.path, path))));

  if (!lock) {
    return null;
  }

  return (
    <p role="status" className="flex flex-wrap items-center gap-x-2 border-b border-warn bg-warn-tint px-3 py-1.5 text-sm">
      <LockIcon size={15} aria-hidden className="shrink-0 text-warn" />
      <span>{t('locked', { actor: harmless(lock.actor), what: harmless(lock.type) })}</span>
      <Time at={lock.since} as="relative" className="text-dim" />
    </p>
  );
}

interface Props {
  id: string;
  entry: Entry;
  /** False once the sandbox has stopped while this was edited. */
  running: boolean;
  /** It was there when it was opened, and is not any more. */
  gone: boolean;
  mayWrite: boolean;
  dirty: boolean;
  onDirty(dirty: boolean): void;
  saver: RefObject<Saver | null>;
  onBack(): void;
  menu: ReactNode;
}

export function FilePane({ id, entry, running, gone, mayWrite, dirty, onDirty, saver, onBack, menu }: Props) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const { bytes } = useFormat();
  const client = useQueryClient();
  const [search, setSearch] = useFilesSearch();
  const [busy, setBusy] = useState<'save' | 'download' | null>(null);
  const [asText, setAsText] = useState(false);
  const { path } = entry;
  const image = imageType(path);
  const limit = image && !asText ? PICTURED : EDITED;
  // what is edited stays in the editor, however much somebody else has added to it
  const large = entry.size > limit && !dirty;
  const grown = dirty && entry.size > COMPARED;
  const versions = search.view === 'versions';
  const { data: content, error, refetch } = useQuery({ ...contentQuery(id, path), enabled: !large && !grown && entry.type !== 'other' });

  // written by somebody: by whom does not matter, what stands there is read again
  const stamp = `${entry.modified_at} ${entry.size}`;
  const seen = useRef(stamp);

  useEffect(() => {
    if (seen.current !== stamp) {
      seen.current = stamp;
      void client.invalidateQueries({ queryKey: contentQuery(id, path).queryKey });
    }
  }, [client, id, path, stamp]);

  const text = content ? textOf(content.bytes) : null;
  const editing = content && !large && (text !== null || dirty) && (!image || asText);

  const save = async () => {
    setBusy('save');
    await saver.current?.save();
    setBusy(null);
  };

  const copyAll = async () => {
    try {
      await copyText(saver.current?.text() ?? '');
      toast(common('copied'));
    } catch (e) {
      toastError(e);
    }
  };

  const download = async () => {
    setBusy('download');

    try {
      saveBlob(new Blob([content?.bytes ?? await readFile(id, path)]), harmless(baseName(path)));
    } catch (e) {
      toastError(e);
    } finally {
      setBusy(null);
    }
  };

  const body = () => {
    if (entry.type === 'other') {
      return <p className="p-4 text-sm text-dim">{t('special')}</p>;
    }
    if (large) {
      return <LargeView id={id} entry={entry} limit={limit} />;
    }
    if (error && !content) {
      return (
        <div className="grid gap-2 p-3">
          {entry.type === 'symlink' && <p className="text-sm text-dim">{t('link')}</p>}
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      );
    }
    if (!content) {
      return <Skeleton lines={12} className="p-3" />;
    }
    if (editing) {
      return (
        <TextFile id={id} path={path} content={content} gone={gone} readOnly={!mayWrite} dirty={dirty} onDirty={onDirty}
          onLeave={onBack} saver={saver}
        />
      );
    }

    return image ? <ImageView bytes={content.bytes} type={image} path={path} /> : <BinaryView bytes={content.bytes} />;
  };

  return (
    <section aria-label={t('file')} className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex min-h-10 flex-wrap items-center gap-x-2 gap-y-1 border-b px-2 py-1">
        <Button look="quiet" size="sm" className="md:hidden" aria-label={t('back')} icon={<ArrowLeft size={16} aria-hidden />} onClick={onBack} />
        <h2 className="flex min-w-0 items-center gap-1 font-medium">
          <Recorded text={baseName(path)} className="truncate" />
          <CopyButton text={path} label={t('copyPath')} />
        </h2>
        {dirty && <Tag tone="warn">{t('unsaved')}</Tag>}
        {!mayWrite && <Tag>{t('readOnly')}</Tag>}
        <span className="min-w-0 flex-1 truncate text-xs text-dim max-lg:hidden">
          {bytes(entry.size)} · {harmless(entry.owner)}:{harmless(entry.group)} · {String(entry.mode).padStart(3, '0')} · <Time at={entry.modified_at} as="relative" />
        </span>
        <span className="ml-auto flex items-center gap-1">
          {image === 'image/svg+xml' && !versions && (
            <Button size="sm" look="quiet" disabled={dirty} onClick={() => setAsText(!asText)}>{asText ? t('image.show') : t('image.source')}</Button>
          )}
          {editing && mayWrite && !versions && (
            <Button size="sm" look={dirty ? 'primary' : 'plain'} busy={busy === 'save'} disabled={!dirty || !running}
              icon={<Save size={14} aria-hidden />} onClick={() => void save()}
            >
              {t('save')}
            </Button>
          )}
          <Button size="sm" look={versions ? 'plain' : 'quiet'} aria-pressed={versions} icon={<History size={14} aria-hidden />}
            onClick={() => setSearch({ view: versions ? 'file' : 'versions', version: '' })}
          >
            <span className="max-sm:sr-only">{t('versions.title')}</span>
          </Button>
          <Button size="sm" look="quiet" busy={busy === 'download'} aria-label={t('download')} icon={<Download size={15} aria-hidden />}
            onClick={() => void download()}
          />
          {menu}
        </span>
      </div>
      <LockNotice id={id} path={path} />
      {dirty && (!running || grown) && (
        <div role="alert" className="flex flex-wrap items-center gap-2 border-b border-warn bg-warn-tint px-3 py-1.5 text-sm">
          <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />
          <p className="min-w-0 flex-1">{running ? t('grown', { size: bytes(entry.size) }) : t('stopped')}</p>
          <Button size="sm" icon={<Copy size={14} aria-hidden />} onClick={() => void copyAll()}>{t('copyAll')}</Button>
        </div>
      )}
      {gone && !dirty && <p role="alert" className="border-b border-warn bg-warn-tint px-3 py-1.5 text-sm">{t('gone')}</p>}
      <div className={versions ? 'hidden' : 'flex min-h-0 flex-1 flex-col'}>{body()}</div>
      {versions && <Versions id={id} path={path} running={running} mayWrite={mayWrite && running} exists={!gone} dirty={dirty} />}
    </section>
  );
}

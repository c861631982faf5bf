// What a file was, who made it so, what is between any of it and now, and a way
// back: which is a version too.

import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { FileClock, Undo2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { contentQuery, type Version, versionContent, versionsQuery, writeFile } from '@/api/files';
import { ApiError } from '@/api/errors';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { operationLink } from '@/lib/operation';
import { save as saveBlob } from '@/lib/save';
import { Button } from '@/ui/button';
import { DiffViewer } from '@/ui/diff-viewer';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Select } from '@/ui/field';
import { harmless, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';
import { toast } from '@/ui/toast';
import { baseName, historyOf } from './paths';
import { useFilesSearch } from './search';
import { textOf } from './text';

const keyOf = (v: Version) => `${v.id}.${v.n}`;

const useVersion = (id: string, v: Version | undefined, which: 'before' | 'after', enabled: boolean) => useQuery({
  queryKey: ['version', v?.id, v?.n, which],
  queryFn: ({ signal }) => versionContent(id, v!.id, v!.n, which, signal),
  enabled: enabled && v !== undefined,
  staleTime: Infinity, gcTime: 30_000, structuralSharing: false,
  retry: (n, e) => e instanceof ApiError && e.passing && n < 3,
});

interface Props {
  id: string;
  path: string;
  /** What stands there can be read and written: the sandbox runs. */
  running: boolean;
  mayWrite: boolean;
  /** Is there something there now? */
  exists: boolean;
  /** There are edits that are not saved. */
  dirty: boolean;
}

export function Versions({ id, path, running, mayWrite, exists, dirty }: Props) {
  const { t } = useTranslation('files');
  const [search, setSearch] = useFilesSearch();
  const { data, error, isPending, refetch } = useQuery(versionsQuery(id, path));

  if (error) {
    return <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>;
  }
  if (isPending) {
    return <Skeleton lines={8} className="p-3" />;
  }
  if (data.items.length === 0) {
    return (
      <Empty icon={FileClock} title={t('versions.none')}>
        <p>{t('versions.noneHint')}</p>
        <p><Link to={historyOf(id, path)} className="text-accent hover:underline">{t('versions.history')}</Link></p>
      </Empty>
    );
  }

  const chosen = data.items.find((v) => keyOf(v) === search.version) ?? data.items[0]!;

  return (
    <div className="@container flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-0 flex-1 flex-col @2xl:flex-row">
        <div className="shrink-0 overflow-y-auto max-h-44 border-b @2xl:max-h-none @2xl:w-64 @2xl:border-r @2xl:border-b-0">
          <ol aria-label={t('versions.list')}>
            {data.items.map((v) => <VersionRow key={keyOf(v)} version={v} on={v === chosen} onOpen={() => setSearch({ version: keyOf(v) }, 'replace')} />)}
          </ol>
          <p className="px-3 py-1.5 text-xs">
            {data.next !== null && <span className="text-dim">{t('versions.older')} </span>}
            <Link to={historyOf(id, path)} className="text-accent hover:underline">{t('versions.history')}</Link>
          </p>
        </div>
        <VersionView key={keyOf(chosen)} id={id} path={path} version={chosen} running={running && exists}
          mayRestore={running && mayWrite} dirty={dirty}
        />
      </div>
    </div>
  );
}

function VersionRow({ version: v, on, onOpen }: { version: Version; on: boolean; onOpen(): void }) {
  const { t } = useTranslation('files');
  const { bytes } = useFormat();

  return (
    <li>
      <button type="button" aria-current={on || undefined} onClick={onOpen}
        className={cx('grid w-full gap-0.5 border-b px-3 py-1.5 text-left text-sm', on ? 'bg-tint' : 'hover:bg-raised')}
      >
        <span className="flex items-center gap-2">
          <Time at={v.started_at} as="relative" className="min-w-0 flex-1 truncate" />
          <span className="text-xs tabular-nums text-dim">{v.size === null ? '' : bytes(v.size)}</span>
        </span>
        <span className="flex items-center gap-2 text-xs text-dim">
          <Recorded text={v.actor_id ?? v.actor_type} className="min-w-0 flex-1 truncate" />
          {v.restored_from && <Tag tone="accent">{t('versions.restored')}</Tag>}
          <span>{v.type === 'file.read' ? t('versions.seen') : harmless(v.type)}</span>
        </span>
      </button>
    </li>
  );
}

function VersionView({ id, path, version: v, running, mayRestore, dirty }: {
  id: string; path: string; version: Version; running: boolean; mayRestore: boolean; dirty: boolean;
}) {
  const { t } = useTranslation('files');
  const client = useQueryClient();
  const [against, setAgainst] = useState<'before' | 'now'>('before');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const after = useVersion(id, v, 'after', v.kept);
  const before = useVersion(id, v, 'before', against === 'before' && v.before_sha256 !== null);
  const now = useQuery({ ...contentQuery(id, path), enabled: running });
  const other = against === 'now' ? now.data?.bytes : v.before === 'absent' ? new Uint8Array() : before.data;
  const otherFailed = against === 'now' ? now.error : before.error ?? v.before_sha256 === null;
  const name = harmless(baseName(path));
  const isNow = running && now.data?.hash === v.sha256;
  // what is offered for another one does not go away again under who reaches for it
  const isOther = !isNow && !(running && now.isPending);

  const restore = async () => {
    setBusy(true);
    setError(null);

    try {
      const bytes = after.data!;

      await writeFile(id, path, bytes, { restoredFrom: v.id, ...(now.data ? { ifHash: now.data.hash } : { ifNew: true }) });
      await client.invalidateQueries({ queryKey: ['files', id] });
      toast(t('versions.restoredToast', { name }));
    } catch (e) {
      setError(e);
      if (e instanceof ApiError && e.status === 412) {
        await client.invalidateQueries({ queryKey: ['files', id] });
      }
    } finally {
      setBusy(false);
    }
  };

  const content = () => {
    if (!v.kept) {
      return <p className="p-3 text-sm text-dim">{t('versions.notKept')}</p>;
    }
    if (after.error) {
      return <div className="p-3"><ErrorNote error={after.error} /></div>;
    }
    if (!after.data || (!other && !otherFailed)) {
      return <Skeleton lines={8} className="p-3" />;
    }

    const right = textOf(after.data);
    const left = other ? textOf(other) : '';

    if (right === null || left === null) {
      return <p className="p-3 text-sm text-dim">{t('versions.binary')}</p>;
    }

    return (
      <>
        {!other && <p className="border-b bg-raised px-3 py-1 text-xs text-dim">{t('versions.noBefore')}</p>}
        {against === 'now'
          ? <DiffViewer before={right} after={left} path={path} names={{ before: t('versions.this'), after: t('versions.now') }} />
          : <DiffViewer before={left} after={right} path={path} names={{ before: t('versions.before'), after: t('versions.this') }} />}
      </>
    );
  };

  return (
    <section aria-label={t('versions.one')} className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b px-3 py-1.5">
        <Time at={v.started_at} className="text-sm" />
        <Link to={operationLink({ id: v.id, sandbox_id: id })} className="text-sm text-accent hover:underline">{t('versions.record')}</Link>
        <span className="flex-1" />
        {running && isOther && (
          <Select aria-label={t('versions.against')} value={against} onChange={(e) => setAgainst(e.target.value as 'before' | 'now')}>
            <option value="before">{t('versions.againstBefore')}</option>
            <option value="now">{t('versions.againstNow')}</option>
          </Select>
        )}
        {after.data && <Button size="sm" onClick={() => saveBlob(new Blob([after.data!]), name)}>{t('download')}</Button>}
        {isNow && <Tag tone="good">{t('versions.isNow')}</Tag>}
        {mayRestore && isOther && (
          <Button size="sm" look="primary" busy={busy} disabled={!after.data || dirty} icon={<Undo2 size={14} aria-hidden />}
            title={dirty ? t('versions.saveFirst') : undefined} onClick={() => void restore()}
          >
            {t('versions.restore')}
          </Button>
        )}
      </div>
      {error !== null && <div className="border-b p-2"><ErrorNote error={error} onRetry={() => void restore()} /></div>}
      {content()}
    </section>
  );
}

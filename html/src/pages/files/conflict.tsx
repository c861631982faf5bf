import { useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { type Content, versionsQuery } from '@/api/files';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { DiffViewer, type DiffViewerHandle } from '@/ui/diff-viewer';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { Time } from '@/ui/time';
import { baseName } from './paths';
import { textOf } from './text';

interface Props {
  id: string;
  path: string;
  mine: string;
  /** What stands there now; null when nothing does. */
  theirs: Content | null;
  busy: boolean;
  error: unknown;
  onKeep(text: string): void;
  onTake(): void;
  onClose(): void;
}

/** Somebody else has written it meanwhile: mine, theirs, or both by hand. */
export function Conflict({ id, path, mine, theirs, busy, error, onKeep, onTake, onClose }: Props) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const [merging, setMerging] = useState(false);
  const diff = useRef<DiffViewerHandle>(null);
  const { data } = useQuery(versionsQuery(id, path));
  const last = data?.items[0];
  const left = theirs ? textOf(theirs.bytes) : '';

  return (
    <Dialog open wide onOpenChange={(open) => { if (!open && !busy) onClose(); }}
      title={t('conflict.title', { name: harmless(baseName(path)) })}
      description={(
        <>
          {theirs === null ? t('conflict.gone') : t('conflict.hint')}
          {theirs && last?.sha256 === theirs.hash && last.type !== 'file.read' && (
            <> {t('conflict.by', { actor: harmless(last.actor_id ?? last.actor_type) })} <Time at={last.started_at} as="relative" /></>
          )}
        </>
      )}
      footer={merging ? (
        <>
          <Button disabled={busy} onClick={() => setMerging(false)}>{t('conflict.back')}</Button>
          <Button look="primary" busy={busy} onClick={() => onKeep(diff.current?.read() ?? mine)}>{t('conflict.saveMerged')}</Button>
        </>
      ) : (
        <div className="flex flex-1 flex-wrap justify-end gap-2">
          <Button disabled={busy} onClick={onClose}>{common('cancel')}</Button>
          <Button disabled={busy} onClick={onTake}>{theirs === null ? t('conflict.drop') : t('conflict.take')}</Button>
          {theirs !== null && left !== null && <Button disabled={busy} onClick={() => setMerging(true)}>{t('conflict.merge')}</Button>}
          <Button look="primary" busy={busy} onClick={() => onKeep(mine)}>{t('conflict.keep')}</Button>
        </div>
      )}
    >
      {error !== null && <ErrorNote error={error} />}
      {merging && <p className="text-sm text-dim">{t('conflict.mergeHint')}</p>}
      {left === null
        ? <p className="text-sm text-dim">{t('conflict.binary')}</p>
        : (
          <div className="flex h-[min(50dvh,420px)] flex-col rounded-md border">
            <DiffViewer key={String(merging)} ref={diff} before={left} after={mine} path={path} editable={merging}
              names={{ before: t('conflict.theirs'), after: t('conflict.mine') }}
            />
          </div>
        )}
    </Dialog>
  );
}

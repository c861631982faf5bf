import { useState } from 'react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Camera, RotateCcw, Trash2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import {
  changeSandbox, deleteSnapshot, type Snapshot, snapshotsQuery, takeSnapshot, upstreamQuery,
} from '@/api/lifecycle';
import type { Sandbox } from '@/api/types';
import CreateDialog from '@/pages/create';
import { NAME_KEY } from '@/pages/create/request';
import { Button } from '@/ui/button';
import { ConfirmDialog, Dialog } from '@/ui/dialog';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Input } from '@/ui/field';
import { harmless, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';

const STATES = ['Creating', 'Deleting', 'Ready', 'Failed'] as const;

const called = (s: Snapshot) => harmless(s.name ?? s.id);

/** Snapshots of a sandbox: made, deleted, and gone back to. */
export default function SnapshotsDialog({ sandbox, onClose }: { sandbox: Sandbox; onClose(): void }) {
  const { t } = useTranslation('lifecycle');
  const client = useQueryClient();
  const query = snapshotsQuery(sandbox.id);
  const { data, error } = useQuery(query);
  const { data: upstream } = useQuery(upstreamQuery(sandbox.id));
  const [name, setName] = useState('');
  const [deleting, setDeleting] = useState<Snapshot | null>(null);
  const [back, setBack] = useState<Snapshot | null>(null);
  const changed = () => client.invalidateQueries({ queryKey: ['snapshots'] });
  const take = useMutation({
    mutationFn: () => takeSnapshot(sandbox.id, name.trim()),
    onSuccess: () => { setName(''); return changed(); },
  });

  if (back) {
    const { [NAME_KEY]: _, ...metadata } = upstream?.metadata ?? {};

    return (
      <CreateDialog
        onClose={() => setBack(null)} title={t('backTitle', { name: called(back) })}
        note={t('backHint', { name: harmless(sandbox.name) })}
        initial={{
          snapshot: back.id, entrypoint: '', name: sandbox.name === sandbox.id ? '' : sandbox.name,
          metadata: Object.entries(metadata).map(([k, v]) => `${k}=${v}`).join('\n'),
        }}
        after={async () => {
          if (sandbox.state?.toLowerCase() === 'running') {
            await changeSandbox(client, sandbox.id, 'pause');
          }
        }}
      />
    );
  }

  return (
    <Dialog open wide onOpenChange={(open) => { if (!open) onClose(); }} title={t('snapshots')} description={t('snapshotsHint')}>
      <form className="flex gap-2" onSubmit={(e) => { e.preventDefault(); if (!take.isPending) take.mutate(); }}>
        <Input aria-label={t('snapshotName')} placeholder={t('snapshotName')} autoComplete="off" value={name} onChange={(e) => setName(e.target.value)} />
        <Button type="submit" look="primary" busy={take.isPending} icon={<Camera size={14} aria-hidden />}>{t('take')}</Button>
      </form>
      {take.error && <ErrorNote error={take.error} />}
      {error && <ErrorNote error={error} />}
      {!data && !error && <Skeleton lines={3} />}
      {data?.length === 0 && <p className="text-sm text-dim">{t('noSnapshots')}</p>}
      {data && data.length > 0 && (
        <ul className="rounded-md border" aria-label={t('snapshots')}>
          {data.map((s) => (
            <li key={s.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t px-3 py-2 text-sm first:border-t-0">
              <Recorded text={s.name ?? s.id} className="min-w-0 truncate font-medium" />
              <Tag tone={s.status.state === 'Ready' ? 'good' : s.status.state === 'Failed' ? 'bad' : 'accent'}>
                {t(`snapshotState.${STATES.find((one) => one === s.status.state) ?? 'Creating'}`)}
              </Tag>
              <Time at={s.createdAt} as="relative" className="flex-1 text-dim" />
              <Button size="sm" disabled={s.status.state !== 'Ready' || !upstream} icon={<RotateCcw size={14} aria-hidden />} onClick={() => setBack(s)}>{t('back')}</Button>
              <Button size="sm" look="quiet" aria-label={t('deleteSnapshot', { name: called(s) })} icon={<Trash2 size={14} aria-hidden />} onClick={() => setDeleting(s)} />
            </li>
          ))}
        </ul>
      )}
      <ConfirmDialog
        open={deleting !== null} onOpenChange={(open) => { if (!open) setDeleting(null); }}
        title={deleting ? t('deleteSnapshot', { name: called(deleting) }) : ''} description={t('deleteSnapshotHint')} action={t('delete')}
        onConfirm={async () => { await deleteSnapshot(deleting!.id); await changed(); }}
      />
    </Dialog>
  );
}

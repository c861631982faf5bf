// What can be done with a sandbox as a whole; only what its state and the role
// of who looks permit is offered.

import { lazy, Suspense, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { Camera, CalendarClock, Ellipsis, ExternalLink, Pause, Play, Trash2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { changeSandbox, renewSandbox } from '@/api/lifecycle';
import { useSession } from '@/api/session';
import type { Sandbox } from '@/api/types';
import { texts } from '@/i18n';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { ConfirmDialog } from '@/ui/dialog';
import { Menu, MenuItem, MenuLabel, MenuLine } from '@/ui/menu';
import { harmless, typeable } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';

// going back to one makes a sandbox, in the same place
const SnapshotsDialog = lazy(() => Promise.all([import('@/pages/snapshots'), texts('create')]).then(([made]) => made));
const PortDialog = lazy(() => import('./port'));

const HOURS = [1, 8, 24, 168] as const;

export function SandboxActions({ sandbox }: { sandbox: Sandbox }) {
  const { t } = useTranslation('lifecycle');
  const { may } = useSession();
  const { moment, duration } = useFormat();
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [asks, setAsks] = useState<'delete' | 'snapshots' | 'port' | null>(null);
  const state = sandbox.state?.toLowerCase();

  if (!may('operator') || state === 'deleted' || state === 'terminated') {
    return null;
  }

  const done = async (what: Promise<unknown>, said: (answer: unknown) => string) => {
    setBusy(true);
    try {
      toast(said(await what));
    } catch (e) {
      toastError(e);
    } finally {
      setBusy(false);
    }
  };

  const change = (to: 'pause' | 'resume') => void done(changeSandbox(client, sandbox.id, to), () => t(`done.${to}`));
  const renew = (hours: number) => void done(renewSandbox(client, sandbox.id, hours * 3_600_000),
    (at) => t('done.renew', { at: moment(at as string) }));

  return (
    <div className="ml-auto flex items-center gap-1.5" aria-label={t('actions')} role="group">
      {state === 'running' && (
        <Button size="sm" busy={busy} icon={<Pause size={14} aria-hidden />} onClick={() => change('pause')}>{t('pause')}</Button>
      )}
      {state === 'paused' && (
        <Button size="sm" busy={busy} icon={<Play size={14} aria-hidden />} onClick={() => change('resume')}>{t('resume')}</Button>
      )}
      <Menu trigger={<Button size="sm" disabled={busy} icon={<CalendarClock size={14} aria-hidden />}>{t('renew')}</Button>}>
        <MenuLabel>{t('renewHint')}</MenuLabel>
        {HOURS.map((h) => <MenuItem key={h} onSelect={() => renew(h)}>{duration(h * 3_600_000)}</MenuItem>)}
      </Menu>
      <Menu trigger={<Button size="sm" look="quiet" aria-label={t('moreActions')} icon={<Ellipsis size={16} aria-hidden />} />}>
        <MenuItem icon={<ExternalLink size={15} aria-hidden />} disabled={state !== 'running'} onSelect={() => setAsks('port')}>{t('openPort')}</MenuItem>
        <MenuItem icon={<Camera size={15} aria-hidden />} onSelect={() => setAsks('snapshots')}>{t('snapshots')}</MenuItem>
        <MenuLine />
        <MenuItem danger icon={<Trash2 size={15} aria-hidden />} onSelect={() => setAsks('delete')}>{t('delete')}</MenuItem>
      </Menu>
      <ConfirmDialog
        open={asks === 'delete'} onOpenChange={(open) => { if (!open) setAsks(null); }}
        title={t('deleteTitle', { name: harmless(sandbox.name) })} description={t('deleteHint')}
        name={typeable(sandbox.name) ? sandbox.name : sandbox.id} action={t('delete')}
        onConfirm={async () => {
          await changeSandbox(client, sandbox.id, 'delete');
          toast(t('done.delete'));
        }}
      />
      <Suspense>
        {asks === 'snapshots' && <SnapshotsDialog sandbox={sandbox} onClose={() => setAsks(null)} />}
        {asks === 'port' && <PortDialog sandbox={sandbox} onClose={() => setAsks(null)} />}
      </Suspense>
    </div>
  );
}

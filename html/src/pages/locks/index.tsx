import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { LockOpen } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, useParams } from 'react-router';
import { useLive } from '@/api/live';
import { breakLock, type Lock, locksQuery, useLocksFollowed } from '@/api/locks';
import { liveRoute } from '@/api/queries';
import { useSession } from '@/api/session';
import { useFormat } from '@/lib/format';
import { operationLink } from '@/lib/operation';
import { Button } from '@/ui/button';
import { ConfirmDialog } from '@/ui/dialog';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';
import { toast } from '@/ui/toast';

const isLease = (lock: Lock) => lock.fence !== undefined;

function Row({ lock, sandbox, onBreak }: { lock: Lock; sandbox: string; onBreak?: () => void }) {
  const { t } = useTranslation('locks');
  const { duration, count } = useFormat();

  return (
    <li className="grid gap-1 border-t px-4 py-2 text-sm first:border-t-0" data-lock={lock.state}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Tag tone={lock.state === 'held' ? 'accent' : 'warn'}>{t(`state.${lock.state}`)}</Tag>
        {isLease(lock)
          ? <span className="font-medium">{t('lease', { fence: lock.fence })}</span>
          : <Link to={operationLink({ id: lock.id, sandbox_id: sandbox })} className="font-medium text-accent hover:underline"><Recorded text={lock.type} /></Link>}
        <Recorded text={lock.actor} />
        {lock.owner && <span className="text-dim"><Recorded text={lock.owner} /></span>}
        {lock.detached && <Tag>{t('detached')}</Tag>}
        <span className="flex-1 text-dim">
          {t('since')} <Time at={lock.since} as="relative" />
          {lock.waited_ms > 0 && ` · ${t('waited', { time: duration(lock.waited_ms) })}`}
          {lock.expires_at && <> · {t('expires')} <Time at={lock.expires_at} as="relative" /></>}
        </span>
        {onBreak && <Button size="sm" look="danger" onClick={onBreak}>{t(lock.state === 'held' ? 'break' : 'endWait')}</Button>}
      </div>
      <ul className="flex min-w-0 flex-wrap gap-x-4 gap-y-0.5 text-xs" aria-label={t('keys', { count: lock.keys.length, n: count(lock.keys.length) })}>
        {lock.keys.map((key) => (
          <li key={`${key.mode} ${key.path}`} className="min-w-0 [overflow-wrap:anywhere]">
            <span className="text-dim">{t(`mode.${key.mode}`)}</span> <Recorded text={key.path} />
          </li>
        ))}
      </ul>
    </li>
  );
}

export function Component() {
  const { t } = useTranslation('locks');
  const { may } = useSession();
  const client = useQueryClient();
  const id = useParams().id!;
  const { data, error, refetch } = useQuery(locksQuery(id));
  const [breaking, setBreaking] = useState<Lock | null>(null);

  useLive({ route: liveRoute(id), params: { output: 0 }, ...useLocksFollowed(id) });

  const doBreak = async (lock: Lock) => {
    await breakLock(id, lock.id);
    await client.invalidateQueries({ queryKey: ['locks', id] });
    toast(t('broken'));
  };

  const groups = [
    { title: t('holding'), items: data?.items.filter((l) => l.state === 'held') ?? [] },
    { title: t('waiting'), items: data?.items.filter((l) => l.state !== 'held') ?? [] },
  ].filter((g) => g.items.length > 0);

  return (
    <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-y-auto p-4">
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton lines={6} />}
      {data?.items.length === 0 && <Empty icon={LockOpen} title={t('empty')}><p>{t('emptyHint')}</p></Empty>}
      {groups.map((group) => (
        <section key={group.title} aria-label={group.title} className="rounded-md border">
          <h2 className="border-b bg-raised px-4 py-2 text-sm font-medium">{group.title} · {group.items.length}</h2>
          <ul>
            {group.items.map((lock) => (
              <Row key={`${lock.id} ${lock.state}`} lock={lock} sandbox={id} onBreak={may('admin') ? () => setBreaking(lock) : undefined} />
            ))}
          </ul>
        </section>
      ))}
      {data?.more && <p className="text-sm text-dim">{t('more')}</p>}
      <ConfirmDialog
        open={breaking !== null} onOpenChange={(open) => { if (!open) setBreaking(null); }}
        title={t('breakTitle')}
        description={breaking && t(isLease(breaking) ? 'breakLease' : breaking.state === 'held' ? 'breakHeld' : 'breakWaiting',
          { actor: harmless(breaking.actor), type: harmless(breaking.type) })}
        action={t(breaking?.state === 'held' ? 'break' : 'endWait')}
        onConfirm={() => doBreak(breaking!)}
      />
    </div>
  );
}

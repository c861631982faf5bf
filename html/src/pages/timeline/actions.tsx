import { useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Copy, Link2Off, LocateFixed, RotateCcw, ShieldCheck, ShieldQuestionMark } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { commandBody } from '@/api/commands';
import { api, execdUrl, path, request } from '@/api/request';
import { useSession } from '@/api/session';
import type { Operation, OperationWhole, Verified } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { mount } from '@/lib/mount';
import { operationLink } from '@/lib/operation';
import { lacks, requestOf } from '@/lib/recorded';
import { Button } from '@/ui/button';
import { copyText } from '@/ui/copy';
import { ConfirmDialog } from '@/ui/dialog';
import { Menu, MenuItem } from '@/ui/menu';
import { harmless, PlainText } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';
import { type Copied, curlOf } from './call';
import { sdkOf } from './call-sdk';
import type { SetTimelineSearch, TimelineSearch } from './filters';

const plain = (text: string): Copied => ({ text, files: false, values: [] });

const icon = { size: 14, 'aria-hidden': true } as const;

export function CopyAs({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const ways = [
    ['link', plain(new URL(`.${operationLink(o)}`, mount).href)],
    ['curl', curlOf(o)],
    ['sdk', sdkOf(o)],
    ['json', plain(JSON.stringify(o, null, 2))],
  ] as const;

  const copy = async ({ text, files, values }: Copied) => {
    try {
      await copyText(text);
      toast([
        common('copied'), files && t('copy.files'), values.length > 0 && t('copy.values', { names: values.join(', ') }),
      ].filter(Boolean).join(' '));
    } catch (e) {
      toastError(e);
    }
  };

  return (
    <Menu trigger={<Button size="sm" icon={<Copy {...icon} />}>{t('copyAs')}</Button>}>
      {ways.map(([way, what]) => (lacks(what) ? (
        <MenuItem key={way} disabled onSelect={() => undefined}>
          <span className="grid">{t(`copy.${way}`)}<span className="text-xs">{common(`lack.${what.why}`, { names: harmless(what.names) })}</span></span>
        </MenuItem>
      ) : <MenuItem key={way} onSelect={() => void copy(what)}>{t(`copy.${way}`)}</MenuItem>))}
    </Menu>
  );
}

/** Does a command once more, after a question when not all of it is on record. */
export function RunAgain({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { duration } = useFormat();
  const { may } = useSession();
  const [asks, setAsks] = useState(false);
  const { t: common } = useTranslation();

  if (o.type !== 'command.execute' || !o.sandbox_id || !may('operator')) {
    return null;
  }

  const asked = requestOf(o);

  if (lacks(asked)) {
    return (
      <Button size="sm" icon={<RotateCcw {...icon} />} disabled title={common(`lack.${asked.why}`, { names: harmless(asked.names) })}>
        {t('again.run')}
      </Button>
    );
  }

  const { what: command, missing: env } = asked;

  const run = async () => {
    // it ends when it ends: that it began is what is waited for, the rest is on record
    const response = await request(execdUrl(o.sandbox_id!, 'command'), {
      json: commandBody(command), headers: { 'X-Parent-Operation-Id': o.id },
    });

    toast(t('again.started'));
    void response.text().catch(() => undefined);
  };

  return (
    <>
      <Button size="sm" icon={<RotateCcw {...icon} />} onClick={() => setAsks(true)}>{t('again.run')}</Button>
      <ConfirmDialog open={asks} onOpenChange={setAsks} title={t('again.title')}
        description={env.length > 0 ? t('again.env', { names: env.join(', ') }) : t('again.where', { cwd: command.cwd ?? '–' })}
        action={t('again.run')} onConfirm={run}
      >
        <PlainText text={command.command} label={t('again.command')} className="max-h-48 rounded-md border bg-raised" />
        {(command.timeout !== undefined || command.uid !== undefined || command.background) && (
          <p className="text-xs text-dim">
            {[
              command.timeout !== undefined && t('again.timeout', { time: duration(command.timeout) }),
              command.uid !== undefined && t('again.user', { user: [command.uid, command.gid].filter((n) => n !== undefined).join(':') }),
              command.background && t('again.background'),
            ].filter(Boolean).join(' · ')}
          </p>
        )}
      </ConfirmDialog>
    </>
  );
}

/** What else happened then, without the filters, which stay in the address. */
export function Around({ operation: o, search, setSearch }:
  { operation: Operation; search: TimelineSearch; setSearch: SetTimelineSearch }) {
  const { t } = useTranslation('timeline');

  return search.around !== o.id && (
    <Button size="sm" icon={<LocateFixed {...icon} />} onClick={() => setSearch({ around: o.id })}>{t('around')}</Button>
  );
}

/** Is the history that this record stands in what was recorded? */
export function VerifiedMark({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { moment } = useFormat();
  const client = useQueryClient();
  const of = o.sandbox_id ?? '_gateway';
  const { data, isFetching, refetch } = useQuery({
    queryKey: ['verify', of],
    // what others wrote beside us has no number, and is no fault of what we recorded
    queryFn: () => api<Verified>(path`sandboxes/${of}/verify?allow_foreign=1`, { method: 'POST' }),
    enabled: false,
    staleTime: Infinity,
  });

  if (o.seq === null) {
    return null;
  }

  const seq = o.seq;
  const at = client.getQueryState(['verify', of])?.dataUpdatedAt ?? 0;
  // what was recorded behind the last look is not said anything about
  const covered = data && at > Date.parse(o.completed_at ?? o.started_at);
  const broken = data?.ok === false && (data.fault?.seq == null || seq >= data.fault.seq);
  const good = covered && (data.ok === true || (data.ok === false && !broken));
  const Icon = good ? ShieldCheck : broken ? Link2Off : ShieldQuestionMark;
  const said = isFetching ? t('verify.asking') : broken ? t('verify.broken', { seq: data.fault?.seq ?? '–' })
    : good ? t('verify.ok') : covered ? t('verify.unknown') : t('verify.ask');

  return (
    <button type="button" disabled={isFetching} onClick={() => void refetch().then((r) => { if (r.error) toastError(r.error); })}
      title={[o.chain?.hash, at > 0 && covered && moment(new Date(at).toISOString())].filter(Boolean).join('\n')}
      className={cx('inline-flex items-center gap-1 text-xs hover:underline', good ? 'text-good' : broken ? 'text-bad' : 'text-accent')}
    >
      <Icon {...icon} />{said}<span className="text-dim">· seq {seq}</span>
    </button>
  );
}

import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import type { Operation, OperationWhole } from '@/api/types';
import { useFormat } from '@/lib/format';
import { operationLink, operationTitle } from '@/lib/operation';
import { PlainText, Recorded } from '@/ui/plain-text';
import { denied, StatusBadge } from '@/ui/status';
import { Time } from '@/ui/time';

/** Members of a recorded object, one to a line; what is nested as JSON. */
export function Members({ of, shown = {} }: {
  of: Record<string, unknown> | null | undefined;
  /** How a member is drawn that is more than its text. */
  shown?: Record<string, ReactNode>;
}) {
  const { t } = useTranslation('timeline');
  const members = Object.entries(of ?? {}).filter(([, v]) => v !== null && v !== undefined);

  if (members.length === 0) {
    return <p className="px-3 py-4 text-sm text-dim">{t('nothing')}</p>;
  }

  return (
    <dl className="text-sm">
      {members.map(([name, value]) => (
        <div key={name} className="grid grid-cols-[minmax(90px,30%)_1fr] gap-3 border-b px-3 py-1.5">
          <dt className="text-dim [overflow-wrap:anywhere]"><Recorded text={name} /></dt>
          <dd className="min-w-0">
            {shown[name] ?? (typeof value === 'object'
              ? <PlainText text={JSON.stringify(value, null, 2)} bare />
              : <PlainText text={String(value)} bare />)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What was asked for; of an upload, which stands in no parameter, its files. */
export function Requested({ operation: o }: { operation: OperationWhole }) {
  const { bytes } = useFormat();
  const { t } = useTranslation('timeline');
  const files = o.request?.paths === undefined && o.request?.path === undefined ? o.files ?? [] : [];

  if (files.length === 0) {
    return <Members of={{ ...o.request, ...o.command }} />;
  }

  return (
    <>
      {o.request && Object.keys(o.request).length > 0 && <Members of={o.request} />}
      <List title={t('files', { count: files.length })}>
        {files.map((f) => (
          <li key={f.n} className="flex min-h-8 items-center gap-3 border-b px-3 py-1">
            <Recorded text={f.old_path ? `${f.old_path} → ${f.path}` : f.path} className="min-w-0 flex-1 [overflow-wrap:anywhere]" />
            {f.sha256 && <Recorded text={f.sha256.slice(0, 12)} title={f.sha256} className="shrink-0 text-xs text-dim max-sm:hidden" />}
            {f.size !== null && <span className="w-16 shrink-0 text-right text-xs text-dim tabular-nums">{bytes(f.size)}</span>}
          </li>
        ))}
      </List>
    </>
  );
}

const List = ({ title, children }: { title: string; children: ReactNode }) => (
  <section aria-label={title}>
    <h3 className="bg-raised px-3 py-1 text-xs text-dim">{title}</h3>
    <ul>{children}</ul>
  </section>
);

function Line({ operation: o }: { operation: Operation }) {
  return (
    <li className="flex h-8 items-center gap-2 border-b px-3">
      <StatusBadge status={o.status} exitCode={o.exit_code} refused={denied(o)} className="w-24 shrink-0" />
      <Link to={operationLink(o)} className="min-w-0 flex-1 truncate hover:underline"><Recorded text={operationTitle(o)} /></Link>
      <Time at={o.started_at} as="clock" className="shrink-0 text-xs text-dim" />
    </li>
  );
}

export function Links({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { links } = o;
  const groups = links ? ([
    ['parent', links.parent], ['children', links.children], ['correlation', links.correlation],
  ] as const).filter(([, all]) => all.length > 0) : [];
  const reruns = links ? [['rerun_of', [links.rerun_of ?? []].flat()], ['reruns', links.reruns]] as const : [];

  if (groups.length === 0 && reruns.every(([, ids]) => ids.length === 0)) {
    return <p className="px-3 py-4 text-sm text-dim">{t('noLinks')}</p>;
  }

  return (
    <>
      {reruns.map(([name, ids]) => ids.length > 0 && (
        <List key={name} title={t(`link.${name}`)}>
          {ids.map((id) => (
            <li key={id} className="flex h-8 items-center border-b px-3">
              <Link to={operationLink({ id, sandbox_id: o.sandbox_id })} className="truncate hover:underline"><Recorded text={id} /></Link>
            </li>
          ))}
        </List>
      ))}
      {groups.map(([name, all]) => (
        <List key={name} title={t(`link.${name}`)}>{all.map((one) => <Line key={one.id} operation={one} />)}</List>
      ))}
      {links && !links.complete && <p className="px-3 py-2 text-xs text-dim">{t('moreLinks')}</p>}
    </>
  );
}

import { useEffect, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Braces, Link2, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { operationQuery, operationsRoute } from '@/api/queries';
import { apiUrl, request } from '@/api/request';
import type { Operation, OperationWhole } from '@/api/types';
import { useFormat } from '@/lib/format';
import { mount } from '@/lib/mount';
import { operationLink, operationTitle } from '@/lib/operation';
import { Button } from '@/ui/button';
import { CopyButton } from '@/ui/copy';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, PlainText, Recorded } from '@/ui/plain-text';
import { StatusBadge, Tag } from '@/ui/status';
import { Tabs } from '@/ui/tabs';
import { Time } from '@/ui/time';
import { Output } from './output';

const TABS = ['output', 'diff', 'request', 'result', 'actor', 'wire', 'links'] as const;
type Tab = (typeof TABS)[number];

/** Members of a recorded object, one to a line; what is nested as JSON. */
function Members({ of }: { of: Record<string, unknown> | null | undefined }) {
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
            {typeof value === 'object'
              ? <PlainText text={JSON.stringify(value, null, 2)} bare />
              : <PlainText text={String(value)} bare />}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Diff({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { data, error, isPending } = useQuery({
    queryKey: ['diff', o.id],
    queryFn: async ({ signal }) =>
      (await request(apiUrl(`${operationsRoute(o.sandbox_id ?? undefined)}/${o.id}/diff`), { signal })).text(),
  });

  if (error) {
    return <div className="p-3"><ErrorNote error={error} /></div>;
  }

  if (isPending) {
    return <Skeleton className="p-3" />;
  }

  return (
    <div role="region" aria-label={t('tabs.diff')} tabIndex={0} className="overflow-x-auto py-2">
      {data.split('\n').map((line, i) => (
        <div key={i} className={`recorded whitespace-pre-wrap px-3 [overflow-wrap:anywhere] ${
          line.startsWith('+') ? 'bg-good-tint' : line.startsWith('-') ? 'bg-bad-tint' : line.startsWith('@@') ? 'text-dim' : ''}`}
        >
          {harmless(line) || ' '}
        </div>
      ))}
    </div>
  );
}

function Links({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const { links } = o;
  const groups = links && ([
    ['parent', links.parent], ['children', links.children], ['correlation', links.correlation],
  ] as const).filter(([, all]) => all.length > 0);

  if (!groups || groups.length === 0) {
    return <p className="px-3 py-4 text-sm text-dim">{t('noLinks')}</p>;
  }

  return (
    <>
      {groups.map(([name, all]) => (
        <section key={name} aria-label={t(`link.${name}`)}>
          <h3 className="bg-raised px-3 py-1 text-xs text-dim">{t(`link.${name}`)}</h3>
          <ul>
            {all.map((one) => (
              <li key={one.id} className="flex h-8 items-center gap-2 border-b px-3">
                <StatusBadge status={one.status} exitCode={one.exit_code} className="w-24 shrink-0" />
                <Link to={operationLink(one)} className="min-w-0 truncate hover:underline">
                  <Recorded text={operationTitle(one)} />
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function Body({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const has: Record<Tab, boolean> = {
    output: o.output !== null,
    diff: !!o.file?.has_diff,
    request: true, result: true, actor: true, wire: o.wire !== null,
    links: true,
  };
  const open = TABS.filter((tab) => has[tab]);
  const [wanted, setWanted] = useState<Tab | null>(null);
  const tab = wanted && has[wanted] ? wanted : open[0]!;

  const content: Record<Tab, () => React.ReactNode> = {
    output: () => <Output operation={o} />,
    diff: () => <Diff operation={o} />,
    request: () => <Members of={{ ...o.request, ...o.command }} />,
    result: () => <Members of={{ ...o.result, http_status: o.http_status, error_code: o.error_code, reason: o.reason,
      verdict: o.verdict, lock: o.lock }}
    />,
    actor: () => <Members of={{ ...o.actor }} />,
    wire: () => <Members of={{ ...o.wire, source: o.source, bytes_in: o.bytes_in, bytes_out: o.bytes_out }} />,
    links: () => <Links operation={o} />,
  };

  return (
    <Tabs<Tab> label={t('detail')} value={tab} onChange={setWanted}
      tabs={open.map((value) => ({ value, label: t(`tabs.${value}`), content: content[value] }))}
    />
  );
}

interface Props {
  id: string;
  sandbox: string | undefined;
  /** What the list knows of it: shown until all is there. */
  known: Operation | undefined;
  onClose(): void;
}

/** One record whole, beside the list. */
export function Detail({ id, sandbox, known, onClose }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { duration } = useFormat();
  const { data, error, refetch } = useQuery(operationQuery(id, sandbox));
  const o = data ?? known;
  const status = known?.status;

  // it has ended since
  useEffect(() => void refetch(), [status, refetch]);

  const cwd = data?.command?.cwd ?? data?.request?.cwd;

  return (
    <section aria-label={t('detail')} className="flex min-h-0 flex-1 flex-col">
      <div className="grid gap-1 border-b px-3 py-2">
        <div className="flex items-center gap-1">
          <Tag>{o ? harmless(o.type) : '…'}</Tag>
          <span className="flex-1" />
          <CopyButton text={new URL(`.${operationLink({ id, sandbox_id: o?.sandbox_id ?? null })}`, mount).href} label={t('copyLink')}
            icon={Link2}
          />
          {data && <CopyButton text={JSON.stringify(data, null, 2)} label={t('copyJson')} icon={Braces} />}
          <Button look="quiet" size="sm" aria-label={common('close')} icon={<X size={16} aria-hidden />} onClick={onClose} />
        </div>
        {o && (
          <>
            <h2 tabIndex={0} className="max-h-24 overflow-y-auto font-medium"><PlainText text={operationTitle(o)} bare /></h2>
            <p className="flex flex-wrap items-center gap-x-3 text-xs text-dim">
              <StatusBadge status={data?.status ?? o.status} exitCode={o.exit_code} />
              {o.duration_ms !== null && <span>{duration(o.duration_ms)}</span>}
              {typeof cwd === 'string' && cwd && <Recorded text={cwd} />}
              <Time at={o.started_at} />
              {data?.seq != null && <span>seq {data.seq}</span>}
            </p>
          </>
        )}
      </div>
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!data && !error && <Skeleton lines={6} className="p-3" />}
      {data && <Body key={id} operation={data} />}
    </section>
  );
}

import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import type { Sandbox } from '@/api/types';
import { useFormat } from '@/lib/format';
import { CopyButton } from '@/ui/copy';
import { harmless, Recorded } from '@/ui/plain-text';
import { StateBadge, Tag } from '@/ui/status';
import { Time } from '@/ui/time';

const head = 'h-8 px-3 text-left text-xs font-medium text-dim whitespace-nowrap';
const cell = 'h-9 px-3 text-sm whitespace-nowrap';
const number = 'text-right tabular-nums';

const to = (s: Sandbox, tab = 'history') => `/sandboxes/${encodeURIComponent(s.id)}/${tab}`;

function Row({ sandbox: s }: { sandbox: Sandbox }) {
  const { t } = useTranslation('sandboxes');
  const { count, bytes } = useFormat();

  return (
    <tr className="border-t hover:bg-raised">
      <td className={`${cell} max-w-72`}>
        <div className="flex items-center gap-2">
          <Link to={to(s)} title={harmless(s.name)} className="min-w-0 truncate font-medium hover:underline">
            <Recorded text={s.name} />
          </Link>
          {!!s.gaps && <Tag tone="warn">{t('gaps', { count: s.gaps })}</Tag>}
          {s.history === 'unreadable' && <Tag tone="bad">{t('unreadable')}</Tag>}
        </div>
      </td>
      <td className={cell}><StateBadge state={s.state} /></td>
      <td className={`${cell} max-w-56 truncate max-lg:hidden`}>{s.image && <Recorded text={s.image} />}</td>
      <td className={`${cell} max-xl:hidden`}>
        <span className="flex items-center gap-1">
          <Recorded text={s.id.length > 14 ? `${s.id.slice(0, 13)}…` : s.id} className="text-dim" />
          <CopyButton text={s.id} label={t('copyId')} />
        </span>
      </td>
      <td className={`${cell} text-dim max-md:hidden`}>{s.created_at && <Time at={s.created_at} as="relative" />}</td>
      <td className={`${cell} text-dim max-md:hidden`}>{s.last_activity_at && <Time at={s.last_activity_at} as="relative" />}</td>
      <td className={`${cell} ${number}`}>{s.operations !== null && count(s.operations)}</td>
      <td className={`${cell} ${number}`}>
        {!!s.failures && (
          <Link to={`${to(s)}?status=failed&status=timeout`} className="text-bad hover:underline"
            aria-label={t('failuresOf', { count: s.failures, name: harmless(s.name) })}
          >
            {count(s.failures)}
          </Link>
        )}
        {s.failures === 0 && <span className="text-dim">0</span>}
      </td>
      <td className={`${cell} ${number} text-dim max-lg:hidden`}>{s.history_bytes !== null && bytes(s.history_bytes)}</td>
    </tr>
  );
}

export function SandboxTable({ items }: { items: Sandbox[] }) {
  const { t } = useTranslation('sandboxes');

  return (
    <div className="overflow-x-auto border-y">
      <table className="w-full border-collapse">
        <thead className="bg-raised">
          <tr>
            <th scope="col" className={head}>{t('name')}</th>
            <th scope="col" className={head}>{t('state')}</th>
            <th scope="col" className={`${head} max-lg:hidden`}>{t('image')}</th>
            <th scope="col" className={`${head} max-xl:hidden`}>{t('id')}</th>
            <th scope="col" className={`${head} max-md:hidden`}>{t('created')}</th>
            <th scope="col" className={`${head} max-md:hidden`}>{t('lastActivity')}</th>
            <th scope="col" className={`${head} text-right`}>{t('operations')}</th>
            <th scope="col" className={`${head} text-right`}>{t('failures')}</th>
            <th scope="col" className={`${head} text-right max-lg:hidden`}>{t('historySize')}</th>
          </tr>
        </thead>
        <tbody>{items.map((s) => <Row key={s.id} sandbox={s} />)}</tbody>
      </table>
    </div>
  );
}

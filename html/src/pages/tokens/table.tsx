import { useTranslation } from 'react-i18next';
import { useSession } from '@/api/session';
import type { Token } from '@/api/tokens';
import { Button } from '@/ui/button';
import { Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';

const head = 'h-8 px-3 text-left text-xs font-medium text-dim whitespace-nowrap first:pl-4 last:pr-4';
const cell = 'h-9 px-3 py-1.5 text-sm first:pl-4 last:pr-4';

const ROLE_TONES = { viewer: 'dim', operator: 'accent', admin: 'warn' } as const;

function Sandboxes({ token }: { token: Token }) {
  const { t } = useTranslation('tokens');

  return token.sandboxes.length === 0
    ? <span className="text-dim">{t('all')}</span>
    : <span className="[overflow-wrap:anywhere]"><Recorded text={token.sandboxes.join(', ')} className="whitespace-normal" /></span>;
}

function Expiry({ token }: { token: Token }) {
  const { t } = useTranslation('tokens');

  if (token.expires_at === null) {
    return <span className="text-dim">{t('never')}</span>;
  }

  const over = Date.parse(token.expires_at) <= Date.now();

  return <Time at={token.expires_at} className={over ? 'text-bad' : undefined} />;
}

function Row({ token, onRevoke }: { token: Token; onRevoke?: () => void }) {
  const { t } = useTranslation('tokens');
  const { t: common } = useTranslation();
  const actor = [token.actor?.type, token.actor?.id].filter(Boolean).join('/');

  return (
    <tr className="border-t hover:bg-raised" data-token={token.id}>
      <td className={cell}>
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <Recorded text={token.id} className="font-medium" />
          {token.self && <Tag tone="accent">{t('self')}</Tag>}
        </div>
        <div className="mt-1 grid gap-0.5 text-xs md:hidden">
          {actor && <span><span className="text-dim">{t('actor')}</span> <Recorded text={actor} /></span>}
          <span><span className="text-dim">{t('sandboxes')}</span> <Sandboxes token={token} /></span>
          <span><span className="text-dim">{t('expires')}</span> <Expiry token={token} /></span>
        </div>
      </td>
      <td className={cell}>
        <div className="flex flex-wrap gap-1">
          <Tag tone={ROLE_TONES[token.role]}>{common(`role.${token.role}`)}</Tag>
          {token.states_actors && <Tag>{t('states')}</Tag>}
        </div>
      </td>
      <td className={`${cell} min-w-32 max-md:hidden [overflow-wrap:anywhere]`}>{actor && <Recorded text={actor} className="whitespace-normal" />}</td>
      <td className={`${cell} min-w-32 max-w-72 max-md:hidden`}><Sandboxes token={token} /></td>
      <td className={`${cell} whitespace-nowrap text-dim max-xl:hidden`}>{token.created_at && <Time at={token.created_at} as="relative" />}</td>
      <td className={`${cell} whitespace-nowrap max-md:hidden`}><Expiry token={token} /></td>
      <td className={`${cell} text-right`}>
        {onRevoke && (
          <Button size="sm" look="danger" aria-label={t('revokeOne', { id: token.id })} onClick={onRevoke}>{t('revoke')}</Button>
        )}
      </td>
    </tr>
  );
}

export function TokenTable({ items, onRevoke }: { items: Token[]; onRevoke(token: Token): void }) {
  const { t } = useTranslation('tokens');
  const { may } = useSession();

  return (
    <div className="overflow-x-auto border-y">
      <table className="w-full border-collapse">
        <thead className="bg-raised">
          <tr>
            <th scope="col" className={head}>{t('id')}</th>
            <th scope="col" className={head}>{t('role')}</th>
            <th scope="col" className={`${head} max-md:hidden`}>{t('actor')}</th>
            <th scope="col" className={`${head} max-md:hidden`}>{t('sandboxes')}</th>
            <th scope="col" className={`${head} max-xl:hidden`}>{t('created')}</th>
            <th scope="col" className={`${head} max-md:hidden`}>{t('expires')}</th>
            <th scope="col" className={head}><span className="sr-only">{t('revoke')}</span></th>
          </tr>
        </thead>
        <tbody>
          {items.map((token) => (
            <Row key={token.id} token={token} onRevoke={may('admin') ? () => onRevoke(token) : undefined} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

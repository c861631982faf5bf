import { useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus, SearchX } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useSession } from '@/api/session';
import { type MadeToken, revokeToken, type Token, tokensQuery } from '@/api/tokens';
import { useHotkeys } from '@/lib/hotkeys';
import { defineSearch, text } from '@/lib/search';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { ConfirmDialog } from '@/ui/dialog';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { SearchInput } from '@/ui/field';
import { toast } from '@/ui/toast';
import { MakeDialog } from './make';
import { Made } from './made';
import { TokenTable } from './table';

const useSearch = defineSearch({ q: text() });

/** Is what is sought in anything that the list shows of a token? */
function matches(token: Token, role: string, q: string): boolean {
  const low = q.trim().toLowerCase();
  const actor = [token.actor?.type, token.actor?.id].filter(Boolean).join('/');

  return low === '' || [token.id, token.role, role, actor, ...token.sandboxes].some((v) => v.toLowerCase().includes(low));
}

export function Component() {
  const { t } = useTranslation('tokens');
  const { t: common } = useTranslation();
  const [{ q }, setSearch] = useSearch();
  const field = useRef<HTMLInputElement>(null);
  const { may } = useSession();
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(tokensQuery());
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<MadeToken | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const changed = () => client.invalidateQueries({ queryKey: ['tokens'] });

  const items = data?.items.filter((one) => matches(one, common(`role.${one.role}`), q));

  useTitle(t('title'));
  useHotkeys({ '/': () => field.current?.focus() });

  const revoke = async (token: Token) => {
    await revokeToken(token.id);
    setMade((one) => (one?.id === token.id ? null : one));
    toast(t('revoked'));
    await changed();
  };

  return (
    <div className="flex min-h-0 flex-col gap-3 py-4">
      <div className="flex flex-wrap items-start gap-3 px-4">
        <div className="min-w-0 flex-1">
          <h1 className="text-xl font-semibold">{t('title')}</h1>
          <p className="text-sm text-dim">{t('about')}</p>
        </div>
        <SearchInput ref={field} label={t('search')} value={q} className="w-80 max-md:order-1 max-md:w-full"
          onChange={(v) => setSearch({ q: v }, 'replace')}
        />
        {may('admin') && (
          <Button look="primary" icon={<Plus size={15} aria-hidden />} onClick={() => setMaking(true)}>{t('new')}</Button>
        )}
      </div>
      {made && <Made made={made} onDone={() => setMade(null)} />}
      {error && !data && <div className="px-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!data && !error && <Skeleton lines={6} className="px-4" />}
      {items?.length === 0 && q !== '' && (
        <Empty icon={SearchX} title={t('noMatch')}>
          <div><Button onClick={() => setSearch({ q: '' })}>{t('clear')}</Button></div>
        </Empty>
      )}
      {items && items.length > 0 && <TokenTable items={items} onRevoke={setRevoking} />}
      {making && (
        <MakeDialog onClose={() => setMaking(false)}
          onMade={(token) => { setMade(token); setMaking(false); void changed(); }}
        />
      )}
      <ConfirmDialog
        open={revoking !== null} onOpenChange={(open) => { if (!open) setRevoking(null); }}
        title={t('revokeTitle', { id: revoking?.id })} description={t(revoking?.self ? 'revokeSelf' : 'revokeHint')}
        action={t('revoke')} onConfirm={() => revoke(revoking!)}
      />
    </div>
  );
}

import { lazy, Suspense, useDeferredValue, useRef, useState } from 'react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Box, Plus, SearchX, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { metadataQuery } from '@/api/lifecycle';
import { sandboxesQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import { useHotkeys } from '@/lib/hotkeys';
import { pairs } from '@/lib/pairs';
import { choice, defineSearch, text } from '@/lib/search';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { ConnectSnippet } from '@/ui/connect';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Input, SearchInput, Select } from '@/ui/field';
import { SandboxTable } from './table';

const STATES = ['', 'Running', 'Paused', 'Pending', 'Failed', 'Deleted'] as const;

const CreateDialog = lazy(() => import('@/pages/create'));

const useSearch = defineSearch({ q: text(), state: choice(STATES), metadata: text() });

/** What one answer may have: all that can be compared with upstream's. */
const MOST = 1_000;

export function Component() {
  const { t } = useTranslation('sandboxes');
  const { may } = useSession();
  const [{ q, state, metadata }, setSearch] = useSearch();
  const [creating, setCreating] = useState(false);
  const [labels, setLabels] = useState(metadata);
  const field = useRef<HTMLInputElement>(null);
  const asked = useDeferredValue(q);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } =
    useInfiniteQuery(sandboxesQuery({ q: asked, state, ...(metadata ? { limit: MOST } : {}) }));
  const wanted = pairs(metadata.replace(/[\s,]+/g, '\n'));
  const having = useQuery(metadataQuery(wanted.values));
  const all = data?.pages.flatMap((p) => p.items);
  const items = metadata === '' ? all : having.data && all?.filter((s) => having.data.has(s.id));
  const page = data?.pages.at(-1);

  useTitle(t('title'));
  useHotkeys({ '/': () => field.current?.focus() });

  return (
    <div className="flex min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-3">
        <h1 className="mr-2 text-xl font-semibold">{t('title')}</h1>
        <span className="flex-1 text-sm text-dim">{page && t('count', { count: metadata && items ? items.length : page.total })}</span>
        <SearchInput ref={field} label={t('search')} value={q} className="w-44 xl:w-72 max-md:order-1 max-md:w-full"
          onChange={(v) => setSearch({ q: v }, 'replace')}
        />
        <Select aria-label={t('state')} value={state} className="max-md:order-2 max-md:flex-1"
          onChange={(e) => setSearch({ state: e.target.value as (typeof STATES)[number] })}
        >
          {STATES.map((s) => <option key={s} value={s}>{t(s === '' ? 'states.all' : `states.${s}`)}</option>)}
        </Select>
        <form className="max-md:order-2 max-md:flex-1" onSubmit={(e) => { e.preventDefault(); setSearch({ metadata: labels.trim() }); }}>
          <Input aria-label={t('metadata')} aria-invalid={wanted.wrong !== null || undefined} title={t('metadataHint')} placeholder="team=data"
            autoComplete="off" className="md:w-32! xl:w-44!" value={labels} onChange={(e) => setLabels(e.target.value)}
            onBlur={() => { if (labels.trim() !== metadata) setSearch({ metadata: labels.trim() }); }}
          />
        </form>
        {may('operator') && (
          <Button look="primary" icon={<Plus size={15} aria-hidden />} onClick={() => setCreating(true)}>{t('new')}</Button>
        )}
      </div>
      {wanted.wrong !== null && <p role="alert" className="px-4 pb-3 text-sm text-bad">{t('metadataHint')}</p>}
      <Suspense>{creating && <CreateDialog onClose={() => setCreating(false)} />}</Suspense>

      {page && (page.upstream === 'unreachable' || page.upstream === 'partial') && (
        <p role="alert" className="mx-4 mb-3 flex items-center gap-2 rounded-md border border-warn bg-warn-tint px-3 py-2 text-sm">
          <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />{t(`upstream.${page.upstream}`)}
        </p>
      )}
      {error && !items && <div className="px-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {having.error && <div className="px-4"><ErrorNote error={having.error} onRetry={() => void having.refetch()} /></div>}
      {!items && !error && !having.error && wanted.wrong === null && <Skeleton lines={8} className="px-4" />}
      {items?.length === 0 && (q || state || metadata ? (
        <Empty icon={SearchX} title={t('noMatch')}>
          <div><Button onClick={() => { setLabels(''); setSearch({ q: '', state: '', metadata: '' }); }}>{t('clearFilters')}</Button></div>
        </Empty>
      ) : (
        <Empty icon={Box} title={t('empty')}>
          <p>{t('emptyHint')}</p>
          <ConnectSnippet />
        </Empty>
      ))}
      {items && items.length > 0 && <SandboxTable items={items} />}
      {hasNextPage && (
        <div className="p-4 text-center">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('more')}</Button>
        </div>
      )}
    </div>
  );
}

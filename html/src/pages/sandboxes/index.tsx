import { useDeferredValue, useRef } from 'react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Box, SearchX, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { sandboxesQuery } from '@/api/queries';
import { useHotkeys } from '@/lib/hotkeys';
import { choice, defineSearch, text } from '@/lib/search';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { ConnectSnippet } from '@/ui/connect';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { SearchInput, Select } from '@/ui/field';
import { SandboxTable } from './table';

const STATES = ['', 'Running', 'Paused', 'Pending', 'Failed', 'Deleted'] as const;

const useSearch = defineSearch({ q: text(), state: choice(STATES) });

export function Component() {
  const { t } = useTranslation('sandboxes');
  const [{ q, state }, setSearch] = useSearch();
  const field = useRef<HTMLInputElement>(null);
  const asked = useDeferredValue(q);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } =
    useInfiniteQuery(sandboxesQuery({ q: asked, state }));
  const items = data?.pages.flatMap((p) => p.items);
  const page = data?.pages.at(-1);

  useTitle(t('title'));
  useHotkeys({ '/': () => field.current?.focus() });

  return (
    <div className="flex min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-3">
        <h1 className="mr-2 text-xl font-semibold">{t('title')}</h1>
        <span className="flex-1 text-sm text-dim">{page && t('count', { count: page.total })}</span>
        <SearchInput ref={field} label={t('search')} value={q} className="w-72 max-md:order-1 max-md:w-full"
          onChange={(v) => setSearch({ q: v }, 'replace')}
        />
        <Select aria-label={t('state')} value={state}
          onChange={(e) => setSearch({ state: e.target.value as (typeof STATES)[number] })}
        >
          {STATES.map((s) => <option key={s} value={s}>{t(s === '' ? 'states.all' : `states.${s}`)}</option>)}
        </Select>
      </div>

      {page && (page.upstream === 'unreachable' || page.upstream === 'partial') && (
        <p role="alert" className="mx-4 mb-3 flex items-center gap-2 rounded-md border border-warn bg-warn-tint px-3 py-2 text-sm">
          <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />{t(`upstream.${page.upstream}`)}
        </p>
      )}
      {error && !items && <div className="px-4"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!items && !error && <Skeleton lines={8} className="px-4" />}
      {items?.length === 0 && (q || state ? (
        <Empty icon={SearchX} title={t('noMatch')}>
          <div><Button onClick={() => setSearch({ q: '', state: '' })}>{t('clearFilters')}</Button></div>
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

import { useEffect, useMemo, useRef, useState } from 'react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { SearchX, Workflow } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { useFormat } from '@/lib/format';
import { useHotkeys } from '@/lib/hotkeys';
import { defineSearch, text } from '@/lib/search';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { SearchInput } from '@/ui/field';
import { harmless, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';
import { type Run, runsOf, runsQuery } from './runs';

const head = 'h-8 px-3 text-left text-xs font-medium text-dim whitespace-nowrap first:pl-4 last:pr-4';
const cell = 'h-9 px-3 text-sm whitespace-nowrap first:pl-4 last:pr-4';
const number = 'text-right tabular-nums';

/** Pages that are read without being asked for, while there is nothing to show. */
const LOOKS = 10;

const useSearch = defineSearch({ q: text() });

/** How to say in a request which run it belongs to. */
const HEADER = 'X-Run-Id: nightly-31';

function Row({ run, more }: { run: Run; more: boolean }) {
  const { t } = useTranslation('runs');
  const { count } = useFormat();
  const to = `/runs/${encodeURIComponent(run.name)}`;
  const actors = run.actors.slice(0, 3);

  return (
    <tr className="border-t hover:bg-raised">
      <td className={`${cell} max-w-72`}>
        <div className="flex items-center gap-2">
          <Link to={to} title={harmless(run.name)} className="min-w-0 truncate font-medium hover:underline"><Recorded text={run.name} /></Link>
          {run.running && <Tag tone="accent">{t('running')}</Tag>}
        </div>
      </td>
      <td className={`${cell} max-w-64 truncate max-md:hidden`}>
        {actors.map((one, i) => <span key={one}>{i > 0 && ', '}<Recorded text={one} /></span>)}
        {run.actors.length > actors.length && <span className="text-dim"> {t('others', { count: run.actors.length - actors.length })}</span>}
      </td>
      <td className={`${cell} ${number} max-lg:hidden`}>{count(run.sandboxes.length)}</td>
      <td className={`${cell} text-dim max-lg:hidden`}><Time at={run.first} as="relative" />{more && '…'}</td>
      <td className={`${cell} text-dim`}><Time at={run.last} as="relative" /></td>
      <td className={`${cell} ${number}`}>{count(run.operations)}{more && '+'}</td>
      <td className={`${cell} ${number}`}>
        {run.failures > 0 ? (
          <Link to={`${to}?status=failed&status=timeout`} className="text-bad hover:underline"
            aria-label={t('failuresOf', { count: run.failures, name: harmless(run.name) })}
          >
            {count(run.failures)}
          </Link>
        ) : <span className="text-dim">0</span>}
      </td>
    </tr>
  );
}

export function Component() {
  const { t } = useTranslation('runs');
  const { count } = useFormat();
  const [{ q }, setSearch] = useSearch();
  const field = useRef<HTMLInputElement>(null);
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isFetchNextPageError } = useInfiniteQuery(runsQuery());
  const records = useMemo(() => data?.pages.flatMap((p) => p.items) ?? [], [data]);
  const all = useMemo(() => runsOf(records), [records]);
  const low = q.trim().toLowerCase();
  const runs = all.filter((r) => low === '' || [r.name, ...r.actors, ...r.sandboxes].some((v) => v.toLowerCase().includes(low)));

  // that there is none can be said at the end only
  const [looks, setLooks] = useState(LOOKS);
  const nothing = data !== undefined && runs.length === 0;
  const seeking = nothing && hasNextPage && !isFetchNextPageError && data.pages.length < looks;

  useEffect(() => {
    if (seeking && !isFetchingNextPage) {
      void fetchNextPage();
    }
  }, [seeking, isFetchingNextPage, fetchNextPage]);

  const further = () => {
    setLooks((data?.pages.length ?? 0) + LOOKS);
    void fetchNextPage();
  };

  useTitle(t('title'));
  useHotkeys({ '/': () => field.current?.focus() });

  return (
    <div className="flex min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-3">
        <h1 className="mr-2 text-xl font-semibold">{t('title')}</h1>
        <span className="flex-1 text-sm text-dim">{data && t('count', { count: runs.length })}</span>
        <SearchInput ref={field} label={t('search')} value={q} className="w-80 max-md:order-1 max-md:w-full"
          onChange={(v) => setSearch({ q: v }, 'replace')}
        />
      </div>

      {error && (!data || isFetchNextPageError) && (
        <div className="px-4"><ErrorNote error={error} onRetry={() => void (data ? fetchNextPage() : refetch())} /></div>
      )}
      {!data && !error && <Skeleton lines={8} className="px-4" />}
      {seeking && <p role="status" className="px-4 py-12 text-center text-dim">{t('seeking', { count: records.length, n: count(records.length) })}</p>}
      {nothing && !seeking && low === '' && (
        <Empty icon={Workflow} title={hasNextPage ? t('noneSoFar', { count: records.length, n: count(records.length) }) : t('empty')}>
          <p>{t('emptyHint')}</p>
          <p><code className="recorded rounded-sm border px-2 py-1">{HEADER}</code></p>
        </Empty>
      )}
      {nothing && !seeking && low !== '' && (
        <Empty icon={SearchX} title={hasNextPage ? t('noMatchSoFar', { count: records.length, n: count(records.length) }) : t('noMatch')}>
          <div><Button onClick={() => setSearch({ q: '' })}>{t('clear')}</Button></div>
        </Empty>
      )}
      {runs.length > 0 && (
        <div className="overflow-x-auto border-y">
          <table className="w-full border-collapse">
            <thead className="bg-raised">
              <tr>
                <th scope="col" className={head}>{t('run')}</th>
                <th scope="col" className={`${head} max-md:hidden`}>{t('actors')}</th>
                <th scope="col" className={`${head} text-right max-lg:hidden`}>{t('sandboxes')}</th>
                <th scope="col" className={`${head} max-lg:hidden`}>{t('first')}</th>
                <th scope="col" className={head}>{t('last')}</th>
                <th scope="col" className={`${head} text-right`}>{t('operations')}</th>
                <th scope="col" className={`${head} text-right`}>{t('failures')}</th>
              </tr>
            </thead>
            <tbody>{runs.map((r) => <Row key={r.name} run={r} more={hasNextPage} />)}</tbody>
          </table>
        </div>
      )}
      {nothing && low !== '' && (
        <p className="px-4 pb-4 text-center">
          <Link to={`/runs/${encodeURIComponent(q.trim())}`} className="text-accent hover:underline">{t('openRun', { name: harmless(q.trim()) })}</Link>
        </p>
      )}
      {data && hasNextPage && !seeking && (
        <div className="flex flex-wrap items-center justify-center gap-3 p-4 text-sm text-dim">
          <span>{t('read', { count: records.length, n: count(records.length) })}</span>
          <Button busy={isFetchingNextPage} onClick={further}>{t('more')}</Button>
        </div>
      )}
    </div>
  );
}

import { useCallback, useRef, useState } from 'react';
import { ArrowUp, FilterX, History, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';
import type { Operation } from '@/api/types';
import { useHotkeys } from '@/lib/hotkeys';
import { useMedia } from '@/lib/media';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { ConnectSnippet } from '@/ui/connect';
import { Sheet } from '@/ui/dialog';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { VirtualList, type VirtualListHandle } from '@/ui/virtual-list';
import { Detail } from './detail';
import { FilterBar } from './filter-bar';
import { FILTERS, filtersOf, NO_FILTERS, useTimelineSearch } from './filters';
import { useRecords } from './records';
import { Row, rowHeight } from './row';

const key = (o: Operation) => o.id;

/** The timeline: of a sandbox, of a run, or of all. */
export function Component() {
  const { t } = useTranslation('timeline');
  const { id: sandbox, run } = useParams();
  const [search, setSearch] = useTimelineSearch();
  const filters = filtersOf(search, run);
  const [top, setTop] = useState(true);
  const records = useRecords(sandbox, filters, !search.still, !top);
  const list = useRef<VirtualListHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [pointed, setPointed] = useState<string | null>(null);
  const wide = useMedia('(min-width: 1024px)');
  const { items } = records;
  const active = search.op || pointed;
  const named = sandbox === undefined;
  const filtered = search.q !== '' || FILTERS.some((f) => search[f].length > 0);

  useTitle(run ? `${t('run')} ${harmless(run)}` : sandbox ? `${t('title')} · ${harmless(sandbox)}` : t('title'));

  const open = useCallback((o: Operation) => {
    setPointed(o.id);
    setSearch({ op: o.id }, search.op ? 'replace' : 'push');
  }, [setSearch, search.op]);

  const close = () => {
    setPointed(search.op || null);
    setSearch({ op: '' });
  };

  const move = (by: number) => {
    const at = items.findIndex((o) => o.id === active);
    const to = at < 0 ? 0 : Math.min(Math.max(at + by, 0), items.length - 1);
    const o = items[to];

    if (o) {
      list.current?.scrollTo(to);
      if (search.op) {
        open(o);
      } else {
        setPointed(o.id);
      }
    }
  };

  useHotkeys({
    'j': () => move(1), 'ArrowDown': () => move(1),
    'k': () => move(-1), 'ArrowUp': () => move(-1),
    'Enter': () => {
      const o = items.find((one) => one.id === pointed);
      if (o) open(o);
    },
    'Escape': () => search.op && close(),
    '/': () => field.current?.focus(),
    'l': () => setSearch({ still: !search.still }, 'replace'),
  });

  const detail = search.op && (
    <Detail key={search.op} id={search.op} sandbox={sandbox} known={items.find((o) => o.id === search.op)} onClose={close} />
  );

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {named && (
        <h1 className="px-3 pt-2.5 text-lg font-semibold">{run ? <>{t('run')} <bdi>{harmless(run)}</bdi></> : t('title')}</h1>
      )}
      <FilterBar sandbox={sandbox} filters={filters} search={search} setSearch={setSearch} live={records.live} searchRef={field} />
      {!records.complete && (
        <p role="alert" className="flex items-center gap-2 border-b border-warn bg-warn-tint px-3 py-1 text-sm">
          <TriangleAlert size={15} aria-hidden className="text-warn" />{t('incomplete')}
        </p>
      )}
      <div className="flex min-h-0 flex-1">
        <div className="relative flex min-w-0 flex-1 flex-col">
          {records.error && items.length === 0 && (
            <div className="p-3"><ErrorNote error={records.error} onRetry={records.retry} /></div>
          )}
          {records.loading && !records.error && <Skeleton lines={12} className="p-3" />}
          {!records.loading && !records.error && items.length === 0 && (filtered ? (
            <Empty icon={FilterX} title={t('noMatch')}>
              <div><Button onClick={() => setSearch(NO_FILTERS)}>{t('clear')}</Button></div>
            </Empty>
          ) : (
            <div className="overflow-y-auto">
              <Empty icon={History} title={t('empty')}>
                <p>{t('emptyHint')}</p>
                <ConnectSnippet />
              </Empty>
            </div>
          ))}
          {items.length > 0 && (
            <VirtualList
              ref={list} items={items} height={rowHeight} itemKey={key} label={t('list')} active={active}
              onEnd={records.loadMore} onTop={setTop}
              render={(o) => <Row operation={o} active={o.id === active} named={named} onOpen={open} />}
            />
          )}
          {records.fresh > 0 && (
            <Button look="primary" size="sm" className="absolute top-2 left-1/2 -translate-x-1/2"
              icon={<ArrowUp size={14} aria-hidden />}
              onClick={() => { records.catchUp(); list.current?.scrollTo(0); }}
            >
              {t('fresh', { count: records.fresh })}
            </Button>
          )}
        </div>
        {detail && wide && <div className="flex w-[min(46%,640px)] shrink-0 flex-col border-l">{detail}</div>}
      </div>
      {!wide && (
        <Sheet open={!!detail} onOpenChange={(o) => { if (!o) close(); }} title={t('detail')}>{detail}</Sheet>
      )}
    </div>
  );
}

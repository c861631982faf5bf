import { lazy, Suspense, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { ArrowDown, FilterX, History, LocateFixed, Play, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';
import { useSandboxNames } from '@/api/names';
import { facetsQuery } from '@/api/queries';
import type { Operation } from '@/api/types';
import { ahead } from '@/lib/ahead';
import { useFormat } from '@/lib/format';
import { useHotkeys } from '@/lib/hotkeys';
import { useMedia } from '@/lib/media';
import { useTitle } from '@/lib/title';
import { Boundary } from '@/ui/boundary';
import { Button } from '@/ui/button';
import { ConnectSnippet } from '@/ui/connect';
import { Sheet } from '@/ui/dialog';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { WindowList, type WindowListHandle } from '@/ui/window-list';
import { entriesOf, type Entry, ENTRY_HEIGHT, entryKey, wentWrong } from './entries';
import { FilterBar } from './filter-bar';
import { FILTERS, filtersOf, NO_FILTERS, useTimelineSearch } from './filters';
import { TimelineHistogram } from './histogram';
import { useRecords } from './records';
import { Day, Group, Row } from './row';
import { useRowView } from './view';

// not before a record is opened, or may be soon: the list is there without it
const detailPart = () => import('./detail');
const Detail = lazy(detailPart);
const Stepper = lazy(() => import('./stepper'));

const NONE: readonly Operation[] = [];
const NOTHING_LEFT_OUT: readonly string[] = [];
// less is not worth a word: it is over at once
const SOUGHT_LONG = 1_000;

/** The timeline: of a sandbox, of a run, or of all. */
export function Component() {
  const { t } = useTranslation('timeline');
  const { day, moment } = useFormat();
  const { id: sandbox, run } = useParams();
  const [search, setSearch] = useTimelineSearch();
  const filters = filtersOf(search, run);
  const not = search.around ? NOTHING_LEFT_OUT : search.not;
  const records = useRecords({
    sandbox, filters, not, follow: !search.still, at: search.around || search.op || undefined,
  });
  const list = useRef<WindowListHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const beside = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<string | null>(null);
  const [stepping, setStepping] = useState(false);
  // what lies ahead is looked through: what was behind is not asked for again
  const seeking = useRef(false);
  const wide = useMedia('(min-width: 1024px)');
  const items = records?.items ?? NONE;
  const { view, density } = useRowView();
  const active = search.op || pointed;
  const named = sandbox === undefined;
  const nameOf = useSandboxNames();
  const filtered = search.q !== '' || search.not.length > 0 || FILTERS.some((f) => search[f].length > 0);
  const loading = !records || records.loading;
  const error = records?.error ?? null;
  const sought = records?.sought ?? null;
  const entries = useMemo(() => entriesOf(items, search.group, day, view.columns.has('output')), [items, search.group, day, view]);

  useTitle(run ? `${t('run')} ${harmless(run)}` : sandbox ? null : t('title'));

  const open = useCallback((o: Operation) => {
    setPointed(o.id);
    setSearch({ op: o.id }, search.op ? 'replace' : 'push');
  }, [setSearch, search.op]);

  const close = () => {
    setPointed(search.op || null);
    setSearch({ op: '' });
    // where one goes on from, once it is gone
    if (beside.current?.contains(document.activeElement)) {
      list.current?.focus();
    }
  };

  // whoever comes to a run comes for what went wrong in it
  const [came, setCame] = useState<string | null>(null);

  useEffect(() => {
    if (!run || came === run || loading) {
      return;
    }

    setCame(run);

    const wrong = items.findLast((o) => o.status === 'failed' || o.status === 'timeout');

    if (wrong && wide && !search.op) {
      setSearch({ op: wrong.id }, 'replace');
      list.current?.reveal(wrong.id);
    }
  }, [run, came, loading, items, wide, search.op, setSearch]);

  const at = items.findIndex((o) => o.id === active);

  // a run is gone through from its first record on, however long it is
  const { data: counted } = useQuery({ ...facetsQuery(sandbox, filters), enabled: stepping });
  const total = search.not.length === 0 && counted?.facets?.exact ? counted.facets.total : null;
  const base = records?.base ?? (total !== null && records?.newer === false ? total - items.length : null);
  const known = (base ?? 0) + items.length;
  const all = total !== null && total >= known ? String(total) : `${known}${records?.newer !== false ? '+' : ''}`;

  const stepTo = (o: Operation | undefined) => {
    if (o) {
      open(o);
    }
  };

  const toFirst = async () => {
    if (records?.older !== false) {
      await records?.window.first();
    }
    stepTo(records?.window.get().items[0]);
  };

  const toLast = async () => {
    if (records?.newer !== false) {
      await records?.window.show();
    }
    stepTo(records?.window.get().items.at(-1));
  };

  const toWrong = async () => {
    const from = items[at]?.cursor ?? 0;

    seeking.current = true;

    for (;;) {
      const held = records!.window.get();
      const wrong = held.items.find((o) => o.cursor > from && wentWrong(o));

      if (wrong || held.newer === false || held.error) {
        seeking.current = wrong !== undefined;
        stepTo(wrong);
        return;
      }
      await records!.window.more('newer');
    }
  };

  // once it is there, wherever the list was
  useEffect(() => {
    if (stepping && active) {
      list.current?.reveal(active);
      seeking.current = false;
    }
  }, [stepping, active, records?.epoch]);

  const goTo = (to: number) => {
    const o = items[Math.min(Math.max(to, 0), items.length - 1)];

    if (o) {
      list.current?.reveal(o.id);
      if (search.op) {
        open(o);
      } else {
        setPointed(o.id);
      }
    }
  };

  const move = (by: number) => goTo(at < 0 ? items.length - 1 : at + by);

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

  const listed = useDeferredValue(items).find((o) => o.id === search.op);
  const detail = search.op && (
    <Boundary of={search.op}>
      <Suspense fallback={<Skeleton lines={6} className="p-3" />}>
        <Detail key={search.op} id={search.op} sandbox={sandbox} known={listed} search={search} setSearch={setSearch} onClose={close} />
      </Suspense>
    </Boundary>
  );

  // where a record lies over all else, so does what goes on to the next one
  const stepper = stepping && run && at >= 0 && (
    <Suspense>
      <Stepper items={items} at={at} n={base === null ? null : base + at + 1} all={all} earlier={records?.older !== false}
        more={records?.newer !== false} onStep={(to) => stepTo(items[to])} onFirst={() => void toFirst()} onLast={() => void toLast()}
        onWrong={() => void toWrong()} onClose={() => setStepping(false)}
      />
    </Suspense>
  );

  const onNear = useCallback((end: 'older' | 'newer') => {
    if (end === 'newer' || !seeking.current) {
      void records?.window.more(end);
    }
  }, [records?.window]);
  const onFollow = useCallback((on: boolean) => records?.window.follow(on), [records?.window]);
  const render = useCallback((e: Entry) => {
    switch (e.kind) {
      case 'day': return <Day at={e.at} />;
      case 'group': return <Group name={e.name} value={e.value} />;
      default: return <Row entry={e} active={e.key === active} box={named && e.operation.sandbox_id ? nameOf(e.operation.sandbox_id) : ''} view={view} onOpen={open} />;
    }
  }, [active, named, nameOf, view, open]);

  const catchUp = () => {
    if (records?.newer !== false) {
      void records?.window.show();
    } else {
      list.current?.toEnd();
    }
  };

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {named && (
        <div className="flex items-center gap-3 px-3 pt-2.5">
          <h1 className="min-w-0 flex-1 truncate text-lg font-semibold">{run ? <>{t('run')} <bdi>{harmless(run)}</bdi></> : t('title')}</h1>
          {run && items.length > 0 && !stepping && (
            <Button size="sm" icon={<Play size={14} aria-hidden />} onClick={() => { setStepping(true); void toFirst(); }}>
              {t('step.through')}
            </Button>
          )}
        </div>
      )}
      <FilterBar sandbox={sandbox} filters={filters} not={not} search={search} setSearch={setSearch} live={records?.live ?? 'off'} searchRef={field} />
      {search.around && (
        <p role="status" className="flex items-center gap-2 border-b bg-tint px-3 py-1 text-sm">
          <LocateFixed size={15} aria-hidden className="text-accent" /><span className="flex-1">{t('aroundNow')}</span>
          <Button size="sm" onClick={() => setSearch({ around: '' })}>{t('aroundBack')}</Button>
        </p>
      )}
      {records && !records.complete && (
        <p role="alert" className="flex items-center gap-2 border-b border-warn bg-warn-tint px-3 py-1 text-sm">
          <TriangleAlert size={15} aria-hidden className="text-warn" />{t('incomplete')}
        </p>
      )}
      <TimelineHistogram sandbox={sandbox} filters={filters} not={not} search={search} setSearch={setSearch} />
      {(wide || !detail) && stepper}
      <div className="flex min-h-0 flex-1">
        <div className="relative flex min-w-0 flex-1 flex-col" onPointerEnter={() => ahead(detailPart)} onFocus={() => ahead(detailPart)}>
          {error && <div className="p-3"><ErrorNote error={error} onRetry={() => records?.window.retry()} /></div>}
          {sought && !error && (items.length === 0 || !sought.going || sought.records >= SOUGHT_LONG) && (
            <div role="status" className="flex flex-wrap items-center gap-2 border-b bg-raised px-3 py-1 text-sm">
              <span className="flex-1">
                {t(sought.going ? 'seeking' : items.length > 0 ? 'soughtMore' : 'sought', { count: sought.records, at: moment(sought.back) })}
              </span>
              {!sought.going && <Button size="sm" onClick={() => void records!.window.seek()}>{t('seek')}</Button>}
            </div>
          )}
          {(loading || (sought?.going && items.length === 0)) && !error && <Skeleton lines={12} className="p-3" />}
          {!loading && !error && !sought && items.length === 0 && (filtered ? (
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
          {items.length > 0 && records && (
            <WindowList
              ref={list} items={entries} height={ENTRY_HEIGHT[density]} itemKey={entryKey} label={t('list')} active={active}
              onNear={onNear} onFollow={onFollow} ended={records.newer === false} epoch={records.epoch} startAt={records.from ?? records.startAt}
              render={render}
            />
          )}
          {records && (records.fresh > 0 || records.newer === true) && (
            <Button look={records.fresh > 0 ? 'primary' : 'plain'} size="sm" className="absolute bottom-2 left-1/2 -translate-x-1/2"
              icon={<ArrowDown size={14} aria-hidden />} onClick={catchUp}
            >
              {records.fresh > 0 ? t('fresh', { count: records.fresh }) : t('newest')}
            </Button>
          )}
        </div>
        {detail && wide && <div ref={beside} className="flex w-[min(48%,720px)] shrink-0 flex-col border-l">{detail}</div>}
      </div>
      {!wide && (
        <Sheet open={!!detail} onOpenChange={(o) => { if (!o) close(); }} title={t('detail')}>{stepper}{detail}</Sheet>
      )}
    </div>
  );
}

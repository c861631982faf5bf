import { lazy, Suspense, useCallback, useMemo, useRef, useState } from 'react';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { SquareTerminal } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';
import type { CommandRequest } from '@/api/commands';
import { useLive } from '@/api/live';
import { liveRoute, operationQuery, operationsQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { Operation } from '@/api/types';
import { texts } from '@/i18n';
import { ahead } from '@/lib/ahead';
import { cx } from '@/lib/cx';
import { type Asked, lacks, requestOf } from '@/lib/recorded';
import { defineSearch, text } from '@/lib/search';
import { Boundary } from '@/ui/boundary';
import { Button } from '@/ui/button';
import { ConnectSnippet } from '@/ui/connect';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { SearchInput } from '@/ui/field';
import { harmless } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';
import { CommandForm, type FormHandle } from './form';
import { RecordRow, RunRow } from './rows';
import { start, useRuns } from './runs';

// not before a command is run or looked at; what it wrote is shown as in the timeline
const detailPart = () => Promise.all([import('./detail'), texts('timeline')]).then(([made]) => made);
const RunDetail = lazy(() => detailPart().then((made) => ({ default: made.RunDetail })));
const RecordDetail = lazy(() => detailPart().then((made) => ({ default: made.RecordDetail })));

const useAddress = defineSearch({ op: text(), q: text() });
const PAGE = 50;
const SETTLES = 400;

export function Component() {
  const { t } = useTranslation('commands');
  const { t: common } = useTranslation();
  const sandbox = useParams().id!;
  const client = useQueryClient();
  const { session, may } = useSession();
  const owner = session?.name ?? null;
  const [{ op, q }, setAddress] = useAddress();
  const [shown, setShown] = useState<string | null>(null);
  const form = useRef<FormHandle>(null);
  const runs = useRuns(sandbox, owner);
  const mayRun = may('operator');

  const options = operationsQuery(sandbox, { type: ['command.execute'], q }, PAGE);
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery(options);
  const records = useMemo(() => (data?.pages ?? []).flatMap((p) => p.items), [data]);

  const wanted = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useLive({
    route: liveRoute(sandbox),
    params: { type: 'command.execute', output: 0 },
    onEvent: () => {
      wanted.current ??= setTimeout(() => {
        wanted.current = undefined;
        void client.invalidateQueries({ queryKey: ['operations', sandbox] });
      }, SETTLES);
    },
  });

  // a command of this page's is in the address as its record, once it has one
  const run = runs.find((r) => r.key === shown) ?? runs.find((r) => r.operation !== null && r.operation === op);
  const record = records.find((o) => o.id === op);
  const open = run !== undefined || op !== '';

  const recorded = new Set(records.map((o) => o.id));
  const fresh = runs.filter((r) => q === '' && (r.operation === null || !recorded.has(r.operation)));

  const begin = useCallback((what: CommandRequest, again: string | null = null) => {
    setShown(start(sandbox, owner, what, again));
    setAddress({ op: '' }, 'replace');
  }, [sandbox, owner, setAddress]);

  if (run && shown !== null && run.operation !== null && op !== run.operation) {
    // not while this is drawn
    queueMicrotask(() => setAddress({ op: run.operation! }, 'replace'));
  }

  const select = (id: string) => {
    setShown(null);
    setAddress({ op: id });
  };

  const withRecord = async (o: Operation, then: (r: Asked) => void) => {
    try {
      const asked = requestOf(await client.fetchQuery(operationQuery(o.id, sandbox)));

      if (lacks(asked)) {
        toast(t('notAgain', { reason: common(`lack.${asked.why}`, { names: harmless(asked.names) }) }));
      } else {
        then(asked);
      }
    } catch (e) {
      toastError(e);
    }
  };

  const again = (o: Operation) => {
    const known = runs.find((r) => r.operation === o.id);

    if (known) {
      begin(known.request, o.id);
      return;
    }

    void withRecord(o, ({ what, missing }) => {
      missing.length > 0 ? form.current?.fill(what, missing) : begin(what, o.id);
    });
  };

  const edit = (o: Operation) => void withRecord(o, ({ what, missing }) => form.current?.fill(what, missing));

  const recent = useMemo(() => [...new Set([
    ...runs.map((r) => r.request.command), ...records.map((o) => o.summary ?? ''),
  ])].filter(Boolean), [runs, records]);

  return (
    <div className="flex min-h-0 flex-1 flex-col" onInput={() => ahead(detailPart)}>
      {!mayRun && <p className="border-b bg-raised px-4 py-2 text-sm text-dim">{t('mayNot')}</p>}
      {mayRun && <CommandForm ref={form} recent={recent} disabled={false} onRun={(what) => begin(what)} />}

      <div className="flex min-h-0 flex-1">
        <section aria-label={t('history')} onPointerEnter={() => ahead(detailPart)} onFocus={() => ahead(detailPart)}
          className={cx('flex min-h-0 w-full flex-col md:w-80 md:border-r lg:w-96', open && 'max-md:hidden')}>
          <div className="border-b px-3 py-2">
            <SearchInput label={t('search')} value={q} onChange={(v) => setAddress({ q: v }, 'replace')} />
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto">
            {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
            {isPending && <Skeleton className="p-3" lines={6} />}
            {data && records.length === 0 && fresh.length === 0 && (
              <p className="px-4 py-6 text-sm text-dim">{q === '' ? t('none') : t('noMatch')}</p>
            )}
            <ul>
              {fresh.map((r) => (
                <RunRow key={r.key} run={r} selected={r === run} onSelect={() => { setShown(r.key); setAddress({ op: r.operation ?? '' }); }}
                  onAgain={mayRun ? () => begin(r.request, r.operation) : undefined}
                />
              ))}
              {records.map((o) => (
                <RecordRow key={o.id} operation={o} selected={o.id === op} onSelect={() => select(o.id)}
                  onAgain={mayRun ? () => again(o) : undefined}
                />
              ))}
            </ul>
            {hasNextPage && (
              <div className="p-3"><Button size="sm" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('more')}</Button></div>
            )}
          </div>
        </section>

        <section aria-label={t('detail')} className={cx('flex min-h-0 min-w-0 flex-1 flex-col', !open && 'max-md:hidden')}>
          <Boundary of={run?.key ?? op}>
            <Suspense fallback={<Skeleton className="p-3" lines={6} />}>
              {run && (
                <RunDetail key={run.key} run={run} mayRun={mayRun} onBack={() => select('')}
                  onAgain={() => begin(run.request, run.operation)} onEdit={() => form.current?.fill(run.request)}
                />
              )}
              {!run && op !== '' && (
                <RecordDetail key={op} id={op} sandbox={sandbox} listed={record} mayRun={mayRun}
                  onBack={() => select('')} onAgain={again} onEdit={edit}
                />
              )}
            </Suspense>
          </Boundary>
          {!open && (records.length > 0 || fresh.length > 0 || isPending
            ? <Empty icon={SquareTerminal} title={t('pick')} />
            : <Empty icon={SquareTerminal} title={t('none')}><p>{t('noneHint')}</p><ConnectSnippet /></Empty>)}
        </section>
      </div>
    </div>
  );
}

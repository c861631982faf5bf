import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { ApiError } from '@/api/errors';
import { operationsRoute } from '@/api/queries';
import { apiUrl, request, wholeOf } from '@/api/request';
import type { OperationWhole } from '@/api/types';
import { textOf } from '@/pages/files/text';
import { DiffViewer } from '@/ui/diff-viewer';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Select } from '@/ui/field';
import { harmless } from '@/ui/plain-text';

/** A larger file is not fetched twice for what changed in it. */
const LARGEST = 1024 * 1024;

const TINT: Record<string, string> = { '+': 'bg-good-tint', '-': 'bg-bad-tint', '@': 'bg-sunk text-dim' };

const again = (n: number, e: Error) => e instanceof ApiError && e.passing && n < 3;

/** The gateway's own difference, where the whole text is not there to be shown. */
function Unified({ text }: { text: string }) {
  // the names of the file in the first two lines are said above
  const lines = text.split('\n').filter((line, i) => i > 1 || !/^(?:---|\+\+\+) /.test(line));

  return (
    <div className="py-2">
      {lines.map((line, i) => (
        <div key={i} className={`recorded flex whitespace-pre-wrap px-3 [overflow-wrap:anywhere] ${TINT[line[0] ?? ''] ?? ''}`}>
          <span aria-hidden className="w-4 shrink-0 select-none text-dim">{'+-'.includes(line[0] ?? ' ') ? line[0] : ''}</span>
          <span className="min-w-0">{harmless('+- '.includes(line[0] ?? '@') ? line.slice(1) : line) || ' '}</span>
        </div>
      ))}
    </div>
  );
}

/** Is there something that it changed in a file?  Of further files the difference is made when it is asked for. */
export const mayDiffer = (o: OperationWhole) => !!o.file?.has_diff
  || ((o.files?.length ?? 0) > 1 && /(?:^|\.)file\.(?:write|replace|move|delete)$/.test(o.type) && o.status === 'succeeded');

/** What an operation changed in its files: before and after, side by side. */
export function Diff({ operation: o }: { operation: OperationWhole }) {
  const { t } = useTranslation('timeline');
  const files = o.files ?? [];
  const [n, setN] = useState(o.file?.has_diff ? 0 : files[1]?.n ?? 0);
  const file = files.find((f) => f.n === n);
  const route = `${operationsRoute(o.sandbox_id ?? undefined)}/${o.id}`;
  const { data: unified, error, isPending, refetch } = useQuery({
    queryKey: ['diff', o.id, n],
    queryFn: async ({ signal }) => wholeOf((await request(apiUrl(`${route}/diff`, { n }), { signal })).text(), signal),
    retry: again,
  });
  const small = Math.max(file?.size ?? 0, n === 0 ? o.file?.before_size ?? 0 : 0, n === 0 ? o.file?.after_size ?? 0 : 0) <= LARGEST;

  // a side that was not there is named by the difference; one that is not kept, or no text, is null
  const { data: whole, isPending: waits } = useQuery({
    queryKey: ['diff-sides', o.id, n],
    queryFn: async ({ signal }) => {
      const heads = unified!.split('\n', 2);
      const side = async (version: 'before' | 'after', mark: string) => {
        if (heads.includes(`${mark} /dev/null`)) {
          return '';
        }

        try {
          const answer = await request(apiUrl(`${route}/content`, { version, n }), { signal });
          return textOf(new Uint8Array(await wholeOf(answer.arrayBuffer(), signal)));
        } catch (e) {
          if (e instanceof ApiError && e.status === 404) {
            return null;
          }
          throw e;
        }
      };

      const [before, after] = await Promise.all([side('before', '---'), side('after', '+++')]);
      return { before, after };
    },
    enabled: unified !== undefined && small,
    staleTime: Infinity, gcTime: 30_000, retry: again,
  });

  const sides = whole && whole.before !== null && whole.after !== null ? whole as { before: string; after: string } : null;

  return (
    <div role="region" aria-label={t('tabs.diff')} tabIndex={sides ? undefined : 0} className="flex h-full min-h-60 flex-col overflow-y-auto">
      {files.length > 1 && (
        <div className="border-b px-3 py-1.5">
          <Select aria-label={t('file')} value={n} onChange={(e) => setN(Number(e.target.value))} className="max-w-full">
            {files.map((f) => <option key={f.n} value={f.n}>{harmless(f.path)}</option>)}
          </Select>
        </div>
      )}
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {(isPending || (unified !== undefined && small && waits)) && <Skeleton className="p-3" />}
      {sides && <DiffViewer before={sides.before} after={sides.after} path={file?.path ?? o.file?.path ?? ''} />}
      {unified !== undefined && !sides && !(small && waits) && <Unified text={unified} />}
    </div>
  );
}

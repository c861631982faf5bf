// The files that a run had touched by some moment, as they stood then: what its
// operations did to them, one after the other.

import { useState } from 'react';
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { FileX2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';
import { versionContent } from '@/api/files';
import { operationQuery, operationsRoute } from '@/api/queries';
import { api, apiUrl } from '@/api/request';
import type { Operation, OperationPage, OperationWhole } from '@/api/types';
import { useFormat } from '@/lib/format';
import { operationLink } from '@/lib/operation';
import { normal, within } from '@/pages/files/paths';
import { hexDump, textOf } from '@/pages/files/text';
import { Button, buttonClass } from '@/ui/button';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { PlainText, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';
import { Time } from '@/ui/time';

const MOST_OPERATIONS = 500;
const AT_ONCE = 6;
// how much of a content is drawn
const MOST_SHOWN = 64 * 1024;
const CHANGES = ['file.write', 'file.replace', 'file.move', 'file.delete', 'dir.delete'];

/** What is known of a path: the operation that said it last, and whose content stands there. */
interface Stood {
  path: string;
  by: Operation;
  gone: boolean;
  size: number | null;
  content: { of: string; n: number } | null;
}

/** One operation after the other, the oldest first. */
export function stoodAfter(operations: readonly OperationWhole[]): Map<string, Stood> {
  const files = new Map<string, Stood>();

  for (const o of operations) {
    const kind = o.type.replace(/^isolated\./, '');

    for (const f of o.files ?? []) {
      const path = normal(f.path, '/');
      const fresh: Stood = { path, by: o, gone: false, size: f.size, content: f.sha256 === null ? null : { of: o.id, n: f.n } };

      if (kind === 'file.delete' || kind === 'dir.delete') {
        for (const known of [...files.keys()].filter((p) => within(p, path))) {
          files.set(known, { ...files.get(known)!, by: o, gone: true, size: null, content: null });
        }
        if (kind === 'file.delete') {
          files.set(path, { ...fresh, gone: true, size: null, content: null });
        }
      } else if (kind === 'file.move' && f.old_path !== null) {
        const from = normal(f.old_path, '/');
        const moved = [...files.values()].filter((s) => !s.gone && within(s.path, from));

        for (const s of moved) {
          const to = path + s.path.slice(from.length);

          files.set(s.path, { ...s, by: o, gone: true, size: null, content: null });
          files.set(to, { ...s, path: to, by: o });
        }
        if (moved.length === 0) {
          files.set(from, { ...fresh, path: from, gone: true, size: null, content: null });
          files.set(path, fresh);
        }
      } else {
        files.set(path, fresh);
      }
    }
  }

  return files;
}

/** The records of a run that changed files, whole, with whether there were more. */
async function changesOf(client: QueryClient, o: Operation, signal: AbortSignal): Promise<{ all: OperationWhole[]; more: boolean }> {
  const page = await api<OperationPage>(operationsRoute(o.sandbox_id!), {
    params: {
      run: o.actor.run, before: o.cursor + 1, limit: MOST_OPERATIONS, status: 'succeeded',
      type: CHANGES.flatMap((type) => [type, `isolated.${type}`]),
    },
    signal,
  });
  const items = page.items.reverse();
  const all: OperationWhole[] = new Array(items.length);
  let next = 0;

  // a list has the first file of each only
  const worker = async () => {
    for (let i = next++; i < items.length && !signal.aborted; i = next++) {
      all[i] = await client.fetchQuery({ ...operationQuery(items[i]!.id, o.sandbox_id!), staleTime: Infinity });
    }
  };

  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { all, more: page.next !== null };
}

/** What stood in a file then. */
function Contents({ sandbox, of, n }: { sandbox: string; of: string; n: number }) {
  const { t } = useTranslation('timeline');
  const { data, error, isPending } = useQuery({
    queryKey: ['content-then', of, n],
    queryFn: ({ signal }) => versionContent(sandbox, of, n, 'after', signal),
    staleTime: Infinity, gcTime: 30_000, retry: false,
  });

  if (error) {
    return <div className="p-3"><ErrorNote error={error} /></div>;
  }

  if (isPending) {
    return <Skeleton className="p-3" lines={2} />;
  }

  const shown = data.subarray(0, MOST_SHOWN);

  return (
    <div className="border-b bg-raised">
      <PlainText text={textOf(data) === null ? hexDump(shown) : new TextDecoder().decode(shown)} label={t('filesThen.contents')} className="max-h-72" />
      <a className={buttonClass('quiet', 'sm')} download
        href={apiUrl(`${operationsRoute(sandbox)}/${encodeURIComponent(of)}/content`, { version: 'after', n })}
      >
        {t('download')}
      </a>
    </div>
  );
}

export function FilesThen({ operation: o }: { operation: Operation }) {
  const { t } = useTranslation('timeline');
  const { bytes } = useFormat();
  const client = useQueryClient();
  const [open, setOpen] = useState<string | null>(null);
  const { data, error, isPending } = useQuery({
    queryKey: ['files-then', o.sandbox_id, o.actor.run, o.cursor],
    queryFn: ({ signal }) => changesOf(client, o, signal),
    staleTime: Infinity,
  });

  if (error) {
    return <div className="p-3"><ErrorNote error={error} /></div>;
  }

  if (isPending) {
    return <Skeleton className="p-3" />;
  }

  const files = [...stoodAfter(data.all).values()].sort((a, b) => a.path.localeCompare(b.path));

  if (files.length === 0) {
    return <Empty icon={FileX2} title={t('filesThen.none')} />;
  }

  return (
    <ul aria-label={t('tabs.files')}>
      {files.map((f) => (
        <li key={f.path}>
          <div className="flex min-h-8 items-center gap-2 border-b px-3">
            <Link to={operationLink(f.by)} className={`min-w-0 flex-1 truncate hover:underline ${f.gone ? 'text-dim line-through' : ''}`}>
              <Recorded text={f.path} />
            </Link>
            {f.by.id === o.id && <Tag tone="accent">{t('filesThen.now')}</Tag>}
            {f.content && (
              <Button size="sm" look="quiet" aria-expanded={open === f.path} onClick={() => setOpen(open === f.path ? null : f.path)}>
                {t('filesThen.contents')}
              </Button>
            )}
            <span className="w-16 shrink-0 text-right text-xs text-dim tabular-nums">
              {f.gone ? t('filesThen.gone') : f.size !== null ? bytes(f.size) : '–'}
            </span>
            <Time at={f.by.started_at} as="clock" className="w-24 shrink-0 text-right text-xs text-dim max-sm:hidden" />
          </div>
          {open === f.path && f.content && <Contents sandbox={o.sandbox_id!} {...f.content} />}
        </li>
      ))}
      {data.more && <li className="px-3 py-2 text-xs text-dim">{t('filesThen.more', { count: MOST_OPERATIONS })}</li>}
    </ul>
  );
}

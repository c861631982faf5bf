import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { File, Folder, FolderOpen, Link2, UploadCloud } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Entry, folderQuery } from '@/api/files';
import { useFormat } from '@/lib/format';
import { CopyButton, Snippet } from '@/ui/copy';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, Recorded } from '@/ui/plain-text';
import { Time } from '@/ui/time';
import { baseName, join } from './paths';

const SHOWN = 500;

const ICONS = { file: File, directory: Folder, symlink: Link2, other: File };

interface Props {
  id: string;
  folder: string;
  onOpen(entry: Entry): void;
  onDrop(folder: string, data: DataTransfer): void;
  menu: ReactNode;
}

/** What is in a folder: sizes and times, and a place to drop files on. */
export function FolderPane({ id, folder, onOpen, onDrop, menu }: Props) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const { bytes, count } = useFormat();
  const { data, error, refetch } = useQuery(folderQuery(id, folder));

  return (
    <section aria-label={t('folder')} className="flex min-h-0 min-w-0 flex-1 flex-col"
      onDragOver={(e) => { if (e.dataTransfer.types.includes('Files')) e.preventDefault(); }}
      onDrop={(e) => { e.preventDefault(); onDrop(folder, e.dataTransfer); }}
    >
      <div className="flex min-h-10 items-center gap-2 border-b px-3 py-1">
        <FolderOpen size={16} aria-hidden className="shrink-0 text-accent" />
        <h2 className="flex min-w-0 items-center gap-1 font-medium">
          <Recorded text={folder} className="truncate" />
          <CopyButton text={folder} label={t('copyPath')} />
        </h2>
        <span className="flex-1 text-xs text-dim">{data && t('count', { count: data.length, n: count(data.length) })}</span>
        {menu}
      </div>
      {error && !data && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!data && !error && <Skeleton lines={8} className="p-3" />}
      {data?.length === 0 && (
        <div className="overflow-y-auto">
          <Empty icon={UploadCloud} title={t('empty')}>
            <p>{t('emptyHint')}</p>
            <Snippet label="Python" text={`sandbox.files.write_file(${JSON.stringify(join(folder, 'hello.py'))}, "print('hello')")`} />
          </Empty>
        </div>
      )}
      {data && data.length > 0 && (
        <div className="min-h-0 flex-1 overflow-y-auto">
          <table className="w-full table-fixed text-sm">
            <thead>
              <tr className="h-8 border-b text-left text-xs text-dim">
                <th scope="col" className="px-3 font-normal">{t('column.name')}</th>
                <th scope="col" className="w-24 px-3 text-right font-normal">{t('column.size')}</th>
                <th scope="col" className="w-36 px-3 font-normal max-lg:hidden">{t('column.modified')}</th>
                <th scope="col" className="w-28 px-3 font-normal max-xl:hidden">{t('column.owner')}</th>
                <th scope="col" className="w-16 px-3 font-normal max-xl:hidden">{t('column.mode')}</th>
              </tr>
            </thead>
            <tbody>
              {data.slice(0, SHOWN).map((e) => {
                const Icon = ICONS[e.type] ?? File;

                return (
                  <tr key={e.path} className="h-8 border-b hover:bg-raised">
                    <td className="px-3">
                      <button type="button" className="flex max-w-full items-center gap-2 hover:underline" onClick={() => onOpen(e)}>
                        <Icon size={15} aria-hidden className={e.type === 'directory' ? 'shrink-0 text-accent' : 'shrink-0 text-dim'} />
                        <Recorded text={baseName(e.path)} className="truncate" />
                      </button>
                    </td>
                    <td className="px-3 text-right tabular-nums text-dim">{e.type === 'directory' ? '' : bytes(e.size)}</td>
                    <td className="truncate px-3 text-dim max-lg:hidden"><Time at={e.modified_at} as="relative" /></td>
                    <td className="truncate px-3 text-dim max-xl:hidden">{harmless(e.owner)}</td>
                    <td className="px-3 font-mono text-xs text-dim max-xl:hidden">{String(e.mode).padStart(3, '0')}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {data.length > SHOWN && <p className="px-3 py-1.5 text-xs text-dim">{common('others', { count: data.length - SHOWN })}</p>}
        </div>
      )}
    </section>
  );
}

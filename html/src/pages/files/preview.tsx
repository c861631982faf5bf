// What an editor is not for: images, bytes, and files that are too large.

import { useEffect, useMemo, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Binary, FileWarning } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Entry, readFile } from '@/api/files';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, PlainText } from '@/ui/plain-text';
import { baseName } from './paths';
import { hexDump, textOf } from './text';

const HEX = 2_048;
const HEAD = 256 * 1024;

/** An image; as a picture an SVG runs nothing. */
export function ImageView({ bytes, type, path }: { bytes: Uint8Array<ArrayBuffer>; type: string; path: string }) {
  const { t } = useTranslation('files');
  const { count } = useFormat();
  const [url, setUrl] = useState<string | null>(null);
  const [size, setSize] = useState<{ width: number; height: number } | null>(null);
  const [broken, setBroken] = useState(false);

  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));

    setUrl(made);
    setBroken(false);
    setSize(null);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);

  if (broken) {
    return <BinaryView bytes={bytes} note={t('image.broken')} />;
  }

  return (
    <figure className="flex min-h-0 flex-1 flex-col">
      <div className="checkered flex min-h-0 flex-1 items-center justify-center overflow-auto p-4">
        {url && (
          <img src={url} alt={t('image.alt', { name: harmless(baseName(path)) })} className="max-h-full max-w-full object-contain"
            onLoad={(e) => setSize({ width: e.currentTarget.naturalWidth, height: e.currentTarget.naturalHeight })}
            onError={() => setBroken(true)}
          />
        )}
      </div>
      <figcaption className="border-t bg-raised px-3 py-1 text-xs text-dim">
        {size ? t('image.size', { width: count(size.width), height: count(size.height) }) : '…'}
      </figcaption>
    </figure>
  );
}

/** Bytes that are no text. */
export function BinaryView({ bytes, note }: { bytes: Uint8Array; note?: string }) {
  const { t } = useTranslation('files');
  const { bytes: size } = useFormat();
  const dump = useMemo(() => hexDump(bytes.subarray(0, HEX)), [bytes]);

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div role="note" className="flex items-start gap-2 border-b bg-raised px-3 py-2 text-sm">
        <Binary size={16} aria-hidden className="mt-0.5 shrink-0 text-dim" />
        <p>{note ?? t('binary')} {bytes.length > HEX && <span className="text-dim">{t('binaryHead', { size: size(HEX) })}</span>}</p>
      </div>
      <PlainText text={dump} wrap={false} label={t('bytes')} className="min-h-0 flex-1" />
    </div>
  );
}

/** Too large for an editor: its beginning, if one wants to see it. */
export function LargeView({ id, entry, limit }: { id: string; entry: Entry; limit: number }) {
  const { t } = useTranslation('files');
  const { bytes } = useFormat();
  const [wanted, setWanted] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ['files', id, 'head', entry.path],
    queryFn: ({ signal }) => readFile(id, entry.path, signal, HEAD),
    enabled: wanted, gcTime: 0,
  });
  // a character may be cut at the end
  const text = data && textOf(data.subarray(0, data.findLastIndex((b) => b < 128) + 1));

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div role="note" className="flex flex-wrap items-center gap-2 border-b bg-raised px-3 py-2 text-sm">
        <FileWarning size={16} aria-hidden className="shrink-0 text-warn" />
        <p className="min-w-0 flex-1">{t('large', { size: bytes(entry.size), limit: bytes(limit) })}</p>
        {!wanted && <Button size="sm" onClick={() => setWanted(true)}>{t('largeHead', { size: bytes(HEAD) })}</Button>}
      </div>
      {wanted && !data && !error && <Skeleton lines={8} className="p-3" />}
      {error && <div className="p-3"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {data && (text === null ? <BinaryView bytes={data} />
        : <PlainText text={text ?? ''} label={t('largeLabel')} className="min-h-0 flex-1" />)}
    </div>
  );
}

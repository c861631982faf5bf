import { useEffect, useRef, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, CircleDashed } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '@/api/errors';
import { listFolder, uploadFile } from '@/api/files';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { errorText } from '@/ui/error-note';
import { Field, Input, Select } from '@/ui/field';
import { harmless, Recorded } from '@/ui/plain-text';
import { Progress } from '@/ui/progress';
import { Tag } from '@/ui/status';
import { toast } from '@/ui/toast';
import { type Dropped, MOST_DROPPED } from './drop';
import { join, normal, parentOf } from './paths';

const AT_ONCE = 2;
const SHOWN = 200;

type State = { state: 'waiting' | 'sending' | 'done' | 'skipped' | 'clash'; sent: number } | { state: 'failed'; sent: number; error: unknown };

/** Which of these paths are taken: each folder that they go to is asked once. */
async function takenOf(id: string, paths: string[], signal: AbortSignal): Promise<Set<string>> {
  const taken = new Set<string>();

  for (const folder of new Set(paths.map(parentOf))) {
    try {
      (await listFolder(id, folder, 1, signal)).forEach((e) => taken.add(e.path));
    } catch {
      // it is not there yet, or may not be seen: nothing is taken that one knows of
    }
  }

  return taken;
}

interface Props {
  id: string;
  files: Dropped[];
  folder: string;
  onClose(): void;
}

/** Where the files go, what they would replace, and how far they are. */
export function Upload({ id, files, folder, onClose }: Props) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const { bytes, count } = useFormat();
  const client = useQueryClient();
  const [target, setTarget] = useState(folder);
  const [existing, setExisting] = useState<'replace' | 'skip'>('replace');
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const [states, setStates] = useState<State[] | null>(null);
  const [running, setRunning] = useState(false);
  const stop = useRef(new AbortController());
  const to = normal(target.trim() || '/', folder);
  const paths = files.map((f) => join(to, f.name));
  const total = files.reduce((n, f) => n + f.file.size, 0);
  const clashes = paths.filter((p) => taken.has(p)).length;
  const key = paths.join('\n');

  useEffect(() => {
    const asked = new AbortController();
    const timer = setTimeout(() => {
      takenOf(id, key.split('\n'), asked.signal).then((found) => { if (!asked.signal.aborted) setTaken(found); }, () => {});
    }, 200);

    return () => { clearTimeout(timer); asked.abort(); };
  }, [id, key]);

  useEffect(() => () => stop.current.abort(), []);

  const asks = states?.some((s) => s.state === 'clash') ?? false;

  const begin = async () => {
    const now: State[] = states?.map((s): State => (s.state === 'failed' ? { state: 'waiting', sent: 0 }
      : s.state === 'clash' ? { state: existing === 'skip' ? 'skipped' : 'waiting', sent: 0 } : s))
      ?? paths.map((p) => ({ state: existing === 'skip' && taken.has(p) ? 'skipped' : 'waiting', sent: 0 }));
    const found = new Set(taken);
    const set = (i: number, s: State) => { now[i] = s; setStates([...now]); };

    stop.current = new AbortController();
    setStates(now);
    setRunning(true);

    const worker = async () => {
      for (;;) {
        const i = now.findIndex((s) => s.state === 'waiting');

        if (i < 0 || stop.current.signal.aborted) {
          return;
        }

        set(i, { state: 'sending', sent: 0 });

        try {
          await uploadFile(id, paths[i]!, files[i]!.file, !found.has(paths[i]!), (sent) => set(i, { state: 'sending', sent }), stop.current.signal);
          set(i, { state: 'done', sent: files[i]!.file.size });
        } catch (error) {
          // somebody was there first: whether that is replaced is asked, unless it was said
          if (error instanceof ApiError && error.status === 412 && !found.has(paths[i]!)) {
            found.add(paths[i]!);
            set(i, { state: existing === 'skip' && clashes > 0 ? 'skipped' : 'clash', sent: 0 });
            continue;
          }
          set(i, stop.current.signal.aborted ? { state: 'waiting', sent: 0 } : { state: 'failed', sent: 0, error });
        }
      }
    };

    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    setRunning(false);
    setTaken(found);
    void client.invalidateQueries({ queryKey: ['files', id] });

    if (now.every((s) => s.state === 'done' || s.state === 'skipped')) {
      const sent = now.filter((s) => s.state === 'done').length;

      toast(t('upload.done', { count: sent, folder: harmless(to) }));
      onClose();
    }
  };

  const sent = states?.reduce((n, s, i) => n + (s.state === 'skipped' ? files[i]!.file.size : s.sent), 0) ?? 0;
  const failures = states?.filter((s) => s.state === 'failed').length ?? 0;

  return (
    <Dialog open wide onOpenChange={(open) => { if (!open && !running) onClose(); }}
      title={t('upload.title', { count: files.length, n: count(files.length) })}
      footer={(
        <>
          <Button onClick={() => (running ? stop.current.abort() : onClose())}>{running ? t('upload.stop') : common('cancel')}</Button>
          <Button look="primary" busy={running} onClick={() => void begin()}>{failures > 0 && !asks ? common('retry') : t('upload.begin')}</Button>
        </>
      )}
    >
      <Field label={t('upload.target')} hint={t('upload.targetHint')}>
        {(p) => <Input {...p} value={target} disabled={states !== null} className="font-mono text-xs" onChange={(e) => setTarget(e.target.value)} />}
      </Field>
      {files.length >= MOST_DROPPED && <p role="alert" className="text-sm text-warn">{t('upload.cut', { n: count(MOST_DROPPED) })}</p>}
      {clashes > 0 && (
        <Field label={t('upload.existing', { count: clashes })}>
          {(p) => (
            <Select {...p} value={existing} disabled={states !== null && !asks} onChange={(e) => setExisting(e.target.value as 'replace' | 'skip')}>
              <option value="replace">{t('upload.replace')}</option>
              <option value="skip">{t('upload.skip')}</option>
            </Select>
          )}
        </Field>
      )}
      {asks && !running && <p role="alert" className="text-sm text-warn">{t('upload.clash')}</p>}
      {states && <Progress label={t('upload.progress')} value={sent} max={Math.max(total, 1)} />}
      <ul tabIndex={0} aria-label={t('upload.files')} className="max-h-72 min-h-0 overflow-y-auto rounded-md border">
        {files.slice(0, SHOWN).map((f, i) => {
          const s = states?.[i];

          return (
            <li key={f.name} className="flex min-h-8 items-center gap-2 px-3 py-1 text-sm not-first:border-t">
              {s?.state === 'done' ? <CircleCheck size={14} aria-hidden className="shrink-0 text-good" />
                : s?.state === 'failed' ? <CircleAlert size={14} aria-hidden className="shrink-0 text-bad" />
                  : <CircleDashed size={14} aria-hidden className="shrink-0 text-dim" />}
              <div className="min-w-0 flex-1">
                <Recorded text={f.name} className="block truncate" />
                {s?.state === 'failed' && <p className="text-xs text-bad [overflow-wrap:anywhere]">{errorText(common, s.error).text}</p>}
              </div>
              {taken.has(paths[i]!) && s?.state !== 'done' && (
                <Tag tone="warn">{existing === 'skip' ? t('upload.skips') : t('upload.replaces')}</Tag>
              )}
              {s?.state === 'sending'
                ? <div className="w-32"><Progress label={harmless(f.name)} value={s.sent} max={Math.max(f.file.size, 1)} /></div>
                : <span className="shrink-0 text-xs tabular-nums text-dim">{bytes(f.file.size)}</span>}
            </li>
          );
        })}
        {files.length > SHOWN && <li className="border-t px-3 py-1 text-xs text-dim">{common('others', { count: files.length - SHOWN })}</li>}
      </ul>
    </Dialog>
  );
}

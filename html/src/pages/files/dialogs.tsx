import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { deletePath, type Entry, makeFolder, movePath, statPath, writeFile } from '@/api/files';
import { ApiError } from '@/api/errors';
import { Button } from '@/ui/button';
import { ConfirmDialog, Dialog } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input } from '@/ui/field';
import { harmless, Recorded } from '@/ui/plain-text';
import { toast } from '@/ui/toast';
import { baseName, join, normal, parentOf, within } from './paths';

/** What is asked about an entry or a folder. */
export type Question =
  | { what: 'newFile' | 'newFolder'; folder: string }
  | { what: 'rename' | 'move' | 'delete'; entry: Entry; to?: string };

interface Props {
  id: string;
  question: Question;
  onClose(): void;
  /** Something is at `to` now (null: nothing), which was at `from` before (null: nowhere). */
  onDone(from: string | null, to: string | null, folder: boolean): void;
}

/** A name or a path is asked for; what is taken, or no name, is said before anything is done. */
function NameDialog({ id, question: q, onClose, onDone }: Props & { question: Exclude<Question, { what: 'delete' }> }) {
  const { t } = useTranslation('files');
  const { t: common } = useTranslation();
  const from = 'entry' in q ? q.entry.path : null;
  const [value, setValue] = useState(q.what === 'rename' ? baseName(q.entry.path)
    : q.what === 'move' ? join(q.to ?? parentOf(q.entry.path), baseName(q.entry.path)) : '');
  const [wrong, setWrong] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const folder = 'folder' in q ? q.folder : parentOf(q.entry.path);

  const check = (path: string): string | null => {
    const name = value.trim();

    if (name === '' || name.endsWith('/') || /^\.{1,2}$/.test(name)) {
      return t('name.empty');
    }
    if (q.what === 'rename' && name.includes('/')) {
      return t('name.slash');
    }
    if (/\p{Cc}/u.test(name)) {
      return t('name.control');
    }
    if (from !== null && q.what === 'move' && path !== from && within(path, from)) {
      return t('name.inside');
    }

    return null;
  };

  const submit = async () => {
    const path = normal(value.trim(), folder);
    const fault = check(path);

    setWrong(fault);
    setError(null);

    if (fault !== null) {
      return;
    }
    if (path === from) {
      onClose();
      return;
    }

    setBusy(true);

    try {
      if (await statPath(id, path)) {
        setWrong(t('name.taken', { path: harmless(path) }));
        return;
      }

      if (q.what === 'newFile') {
        await writeFile(id, path, new Uint8Array(), { ifNew: true });
      } else if (q.what === 'newFolder') {
        await makeFolder(id, path);
      } else {
        await movePath(id, from!, path);
        toast(t('moved', { path: harmless(path) }));
      }

      onDone(from, path, q.what === 'newFolder' || ('entry' in q && q.entry.type === 'directory'));
      onClose();
    } catch (e) {
      if (e instanceof ApiError && e.status === 412) {
        setWrong(t('name.taken', { path: harmless(path) }));
      } else {
        setError(e);
      }
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      open onOpenChange={(open) => { if (!open && !busy) onClose(); }}
      title={t(`ask.${q.what}`, { name: from === null ? '' : harmless(baseName(from)) })}
      footer={(
        <>
          <Button disabled={busy} onClick={onClose}>{common('cancel')}</Button>
          <Button look="primary" busy={busy} onClick={() => void submit()}>{t(`do.${q.what}`)}</Button>
        </>
      )}
    >
      <form onSubmit={(e) => { e.preventDefault(); if (!busy) void submit(); }}>
        <Field label={q.what === 'move' ? t('name.path') : t('name.name')} error={wrong}
          hint={q.what === 'move' ? t('name.pathHint') : <>{t('name.in')} <Recorded text={folder} /></>}
        >
          {(p) => (
            <Input {...p} autoFocus autoComplete="off" className="font-mono text-xs" value={value}
              onFocus={(e) => e.target.setSelectionRange(0,
                q.what === 'rename' && value.lastIndexOf('.') > 0 ? value.lastIndexOf('.') : value.length)}
              onChange={(e) => { setValue(e.target.value); setWrong(null); }}
            />
          )}
        </Field>
      </form>
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}

function DeleteDialog({ id, entry, onClose, onDone }: Omit<Props, 'question'> & { entry: Entry }) {
  const { t } = useTranslation('files');
  const name = baseName(entry.path);
  const folder = entry.type === 'directory';
  return (
    <ConfirmDialog
      open onOpenChange={(open) => { if (!open) onClose(); }} title={t('ask.delete', { name: harmless(name) })}
      description={folder ? t('delete.folder', { path: harmless(entry.path) }) : t('delete.file', { path: harmless(entry.path) })}
      name={folder ? name : undefined} action={t('do.delete')}
      onConfirm={async () => {
        await deletePath(id, entry);
        toast(t('deleted', { path: harmless(entry.path) }));
        onDone(entry.path, null, folder);
      }}
    />
  );
}

export function QuestionDialog({ question, ...rest }: Props) {
  return question.what === 'delete'
    ? <DeleteDialog {...rest} entry={question.entry} />
    : <NameDialog {...rest} question={question} />;
}

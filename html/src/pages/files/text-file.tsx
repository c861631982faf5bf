// A text in the editor: what stands there is known by its hash, so that nothing
// that somebody else wrote meanwhile is written over without a question.

import { type RefObject, useEffect, useImperativeHandle, useRef, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Content, contentQuery, hashOf, writeFile } from '@/api/files';
import { ApiError } from '@/api/errors';
import { Button } from '@/ui/button';
import { CodeEditor, type CodeEditorHandle } from '@/ui/code-editor';
import { ErrorNote } from '@/ui/error-note';
import { harmless } from '@/ui/plain-text';
import { toast } from '@/ui/toast';
import { Conflict } from './conflict';
import { baseName } from './paths';
import { bytesOf, mixedLineEnds, textOf, withOwnEnds } from './text';

export interface Saver {
  /** False when it has not been saved, and the page says why. */
  save(): Promise<boolean>;
  /** What stands in the editor. */
  text(): string;
}

interface Props {
  id: string;
  path: string;
  /** What stands there, as far as one knows. */
  content: Content;
  /** There is nothing any more. */
  gone: boolean;
  readOnly: boolean;
  dirty: boolean;
  onDirty(dirty: boolean): void;
  /** It is gone, and so are the edits: there is nothing here any more. */
  onLeave(): void;
  saver: RefObject<Saver | null>;
}

export function TextFile({ id, path, content, gone, readOnly, dirty, onDirty, onLeave, saver }: Props) {
  const { t } = useTranslation('files');
  const client = useQueryClient();
  const editor = useRef<CodeEditorHandle>(null);
  const [first] = useState(() => textOf(content.bytes) ?? '');
  const [base, setBase] = useState(content.hash);
  // the text of `base`: what its line ends are
  const stands = useRef(first);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [conflict, setConflict] = useState<string | null>(null);
  const changed = content.hash !== base;

  const take = (theirs: Content) => {
    stands.current = textOf(theirs.bytes) ?? '';
    editor.current?.replace(stands.current);
    setBase(theirs.hash);
    setConflict(null);
    setError(null);
  };

  // nothing of ours is in the way: what stands there is shown
  useEffect(() => {
    if (changed && !dirty && !gone && textOf(content.bytes) !== null) {
      take(content);
    }
  }, [changed, dirty, gone, content]);

  const put = async (text: string, ifHash: string | null): Promise<boolean> => {
    const bytes = bytesOf(text);

    setBusy(true);
    setError(null);

    try {
      await writeFile(id, path, bytes, ifHash === null ? { ifNew: true } : { ifHash });
    } catch (e) {
      if (e instanceof ApiError && e.status === 412) {
        await client.invalidateQueries({ queryKey: ['files', id] });
        setConflict(text);
      } else {
        setError(e);
      }
      return false;
    } finally {
      setBusy(false);
    }

    const stored = { bytes, hash: hashOf(bytes) };

    client.setQueryData(contentQuery(id, path).queryKey, stored);
    stands.current = text;
    setBase(stored.hash);
    setConflict(null);
    void client.invalidateQueries({ predicate: ({ queryKey: [area, of, what] }) => area === 'files' && of === id && what !== 'content' });
    toast(t('saved', { name: harmless(baseName(path)) }));
    return true;
  };

  /** What stands in the editor: each line with the end that it has in the file. */
  const mine = () => {
    const { text } = editor.current!.read();
    return mixedLineEnds(stands.current) ? withOwnEnds(stands.current, text) : text;
  };

  const save = async (): Promise<boolean> => {
    if (readOnly || busy || !editor.current) {
      return false;
    }

    const { version } = editor.current.read();
    const text = mine();

    if (changed || gone) {
      setConflict(text);
      return false;
    }

    const done = await put(text, base);

    if (done) {
      editor.current?.saved(version);
    }

    return done;
  };

  useImperativeHandle(saver, () => ({ save, text: () => (editor.current ? mine() : '') }));

  const keep = async (text: string) => {
    // what was merged by hand comes out of an editor too
    const own = conflict !== null && mixedLineEnds(conflict) ? withOwnEnds(conflict, text) : text;

    if (await put(own, gone ? null : content.hash)) {
      editor.current?.replace(own);
    }
  };

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {error !== null && <div className="border-b p-2"><ErrorNote error={error} onRetry={() => void save()} /></div>}
      {(changed || gone) && dirty && (
        <div role="alert" className="flex flex-wrap items-center gap-2 border-b border-warn bg-warn-tint px-3 py-1.5 text-sm">
          <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />
          <p className="min-w-0 flex-1">{gone ? t('conflict.goneBanner') : t('conflict.banner')}</p>
          <Button size="sm" onClick={() => setConflict(editor.current ? mine() : '')}>{t('conflict.decide')}</Button>
        </div>
      )}
      {!readOnly && mixedLineEnds(first) && (
        <p className="border-b bg-raised px-3 py-1 text-xs text-dim">{t('mixedLineEnds')}</p>
      )}
      <CodeEditor ref={editor} text={first} path={path} readOnly={readOnly} onDirty={onDirty}
        label={t('editorOf', { name: harmless(baseName(path)) })}
      />
      {conflict !== null && (
        <Conflict id={id} path={path} mine={conflict} theirs={gone ? null : content} busy={busy} error={error}
          onKeep={(text) => void keep(text)} onTake={() => { if (gone) { onDirty(false); onLeave(); } else { take(content); } }} onClose={() => setConflict(null)}
        />
      )}
    </div>
  );
}

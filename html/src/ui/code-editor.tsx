import { type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import { useStored } from '@/lib/stored';
import { Skeleton } from './empty';
import { ErrorNote } from './error-note';
import { type Monaco, useMonaco } from './monaco/load';

type Editor = ReturnType<Monaco['editor']['create']>;

export interface CodeEditorHandle {
  /** The text as it stands, with its byte order mark, and the version that this is. */
  read(): { text: string; version: number };
  /** That version is what is stored now. */
  saved(version: number): void;
  /** Another text in its place, as stored; the cursor stays where it is. */
  replace(text: string): void;
  focus(): void;
}

interface Props {
  /** What stands in it when it opens. */
  text: string;
  /** Its name says its language. */
  path: string;
  label: string;
  readOnly?: boolean;
  onDirty?(dirty: boolean): void;
  ref?: Ref<CodeEditorHandle>;
}

/** An editor for one text; another `key` for another text. */
export function CodeEditor({ text, path, label, readOnly = false, onDirty, ref }: Props) {
  const { monaco, error, retry } = useMonaco();
  const [wrap] = useStored('wrap', ['on', 'off'], 'on');
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const clean = useRef(0);
  const check = useRef(() => {});
  const now = useRef({ text, path, label, readOnly, onDirty });

  useEffect(() => { now.current = { text, path, label, readOnly, onDirty }; });

  useEffect(() => {
    if (!monaco || !box.current) {
      return undefined;
    }

    const { text: first, path: name, label: said, readOnly: fixed } = now.current;
    const model = monaco.makeModel(first, name);
    const made = monaco.editor.create(box.current, {
      ...monaco.OPTIONS, model, readOnly: fixed, domReadOnly: fixed, ariaLabel: said,
    });
    let dirty = false;

    const look = () => {
      const is = model.getAlternativeVersionId() !== clean.current;

      if (is !== dirty) {
        dirty = is;
        now.current.onDirty?.(is);
      }
    };

    clean.current = model.getAlternativeVersionId();
    made.onDidChangeModelContent(look);
    editor.current = made;
    check.current = look;

    return () => {
      editor.current = null;
      made.dispose();
      model.dispose();
    };
  }, [monaco]);

  useEffect(() => {
    editor.current?.updateOptions({ readOnly, domReadOnly: readOnly, wordWrap: wrap });
  }, [monaco, readOnly, wrap]);

  useImperativeHandle(ref, () => ({
    read: () => {
      const model = editor.current?.getModel();

      return model && monaco
        ? { text: model.getValue(monaco.editor.EndOfLinePreference.TextDefined, true), version: model.getAlternativeVersionId() }
        : { text: now.current.text, version: 0 };
    },
    saved: (version) => {
      clean.current = version;
      check.current();
    },
    replace: (to) => {
      const at = editor.current;
      const view = at?.saveViewState();

      at?.getModel()?.setValue(to);
      clean.current = at?.getModel()?.getAlternativeVersionId() ?? 0;
      at?.restoreViewState(view ?? null);
      check.current();
    },
    focus: () => editor.current?.focus(),
  }), [monaco]);

  if (error !== null) {
    return <div className="p-3"><ErrorNote error={error} onRetry={retry} /></div>;
  }

  return (
    <div className="relative min-h-0 min-w-0 flex-1">
      {!monaco && <Skeleton lines={12} className="absolute inset-x-0 top-0 p-3" />}
      <div ref={box} data-keys="own" dir="ltr" className="absolute inset-0 overflow-hidden" />
    </div>
  );
}

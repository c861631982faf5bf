// Two texts and what is between them, side by side or in one column.  How it is
// shown is remembered.

import { type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import { Columns2, Pilcrow, Rows2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useStored } from '@/lib/stored';
import { Button } from './button';
import { Skeleton } from './empty';
import { ErrorNote } from './error-note';
import { type Monaco, useMonaco } from './monaco/load';

const SLOWEST = 3_000;

type Editor = ReturnType<Monaco['editor']['createDiffEditor']>;

export interface DiffViewerHandle {
  /** The right side as it stands. */
  read(): string;
}

interface Props {
  before: string;
  after: string;
  /** Its name says the language. */
  path: string;
  /** What stands on the left and on the right, in words. */
  names?: { before: string; after: string };
  /** The right side can be written in. */
  editable?: boolean;
  ref?: Ref<DiffViewerHandle>;
}

/** Fills its box, which needs a height: a flex column, or one of its own. */
export function DiffViewer({ before, after, path, names, editable = false, ref }: Props) {
  const { t } = useTranslation();
  const { monaco, error, retry } = useMonaco();
  const [layout, setLayout] = useStored('diff.layout', ['side', 'inline'], 'side');
  const [space, setSpace] = useStored('diff.space', ['shown', 'ignored'], 'shown');
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const left = names?.before ?? t('diff.before');
  const right = names?.after ?? t('diff.after');

  useEffect(() => {
    if (!monaco || !box.current) {
      return undefined;
    }

    const made = monaco.editor.createDiffEditor(box.current, {
      ...monaco.OPTIONS, originalEditable: false, renderOverviewRuler: false, renderMarginRevertIcon: false,
      renderGutterMenu: false, renderSideBySideInlineBreakpoint: 560, maxComputationTime: SLOWEST,
      hideUnchangedRegions: { enabled: true },
    });

    // lines that are drawn between others keep the colours of the theme before
    const themes = new MutationObserver(() => {
      const model = made.getModel();

      if (model) {
        made.setModel(null);
        made.setModel(model);
      }
    });

    themes.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    editor.current = made;
    return () => {
      editor.current = null;
      themes.disconnect();
      made.dispose();
    };
  }, [monaco]);

  useEffect(() => {
    editor.current?.updateOptions({
      renderSideBySide: layout === 'side',
      ignoreTrimWhitespace: space === 'ignored',
      readOnly: !editable,
      domReadOnly: !editable,
    });
  }, [monaco, layout, space, editable]);

  // whatever changes in the pair takes the names of its sides away
  useEffect(() => {
    if (!monaco || !editor.current) {
      return undefined;
    }

    const label = monaco.editor.EditorOption.ariaLabel;
    const sides = [[editor.current.getOriginalEditor(), left], [editor.current.getModifiedEditor(), right]] as const;
    const kept = sides.map(([side, ariaLabel]) => {
      side.updateOptions({ ariaLabel });
      return side.onDidChangeConfiguration((e) => {
        if (e.hasChanged(label) && side.getOption(label) !== ariaLabel) {
          side.updateOptions({ ariaLabel });
        }
      });
    });

    return () => kept.forEach((k) => k.dispose());
  }, [monaco, left, right]);

  useEffect(() => {
    if (!monaco) {
      return undefined;
    }

    const original = monaco.makeModel(before, path);
    const modified = monaco.makeModel(after, path);
    const at = editor.current;

    at?.setModel({ original, modified });
    return () => {
      if (editor.current === at) {
        at?.setModel(null);
      }

      // the worker may be at them still, and would miss them
      setTimeout(() => {
        original.dispose();
        modified.dispose();
      }, 2 * SLOWEST);
    };
  }, [monaco, before, after, path]);

  useImperativeHandle(ref, () => ({
    read: () => {
      const model = editor.current?.getModel()?.modified;

      return model && monaco ? model.getValue(monaco.editor.EndOfLinePreference.TextDefined, true) : after;
    },
  }), [monaco, after]);

  if (error !== null) {
    return <div className="p-3"><ErrorNote error={error} onRetry={retry} /></div>;
  }

  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div role="toolbar" aria-label={t('diff.view')} className="flex min-h-9 shrink-0 items-center gap-1 border-b px-2">
        {names && <p className="min-w-0 flex-1 truncate text-xs text-dim">{names.before} → {names.after}</p>}
        {!names && <span className="flex-1" />}
        <Button look={layout === 'side' ? 'plain' : 'quiet'} size="sm" aria-pressed={layout === 'side'}
          aria-label={t('diff.side')} icon={<Columns2 size={15} aria-hidden />} onClick={() => setLayout('side')}
        />
        <Button look={layout === 'inline' ? 'plain' : 'quiet'} size="sm" aria-pressed={layout === 'inline'}
          aria-label={t('diff.inline')} icon={<Rows2 size={15} aria-hidden />} onClick={() => setLayout('inline')}
        />
        <Button look={space === 'ignored' ? 'plain' : 'quiet'} size="sm" aria-pressed={space === 'ignored'}
          aria-label={t('diff.space')} icon={<Pilcrow size={15} aria-hidden />}
          onClick={() => setSpace(space === 'ignored' ? 'shown' : 'ignored')}
        />
      </div>
      <div className="relative min-h-40 flex-1">
        {!monaco && <Skeleton lines={10} className="absolute inset-x-0 top-0 p-3" />}
        <div ref={box} data-keys="own" data-none={before === '' ? 'before' : after === '' ? 'after' : undefined} dir="ltr" className="absolute inset-0 overflow-hidden" />
      </div>
    </div>
  );
}

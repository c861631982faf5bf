// What of Monaco the console uses.  Nothing that opens addresses, completes or
// formats: what is shown was written by strangers, and stays as they wrote it.

import * as monaco from 'monaco-editor/editor/editor.api.js';
import EditorWorker from 'monaco-editor/editor/editor.worker.js?worker';
import 'monaco-editor/features/bracketMatching/register.js';
import 'monaco-editor/features/caretOperations/register.js';
import 'monaco-editor/features/clipboard/register.js';
import 'monaco-editor/features/codeEditor/register.js';
import 'monaco-editor/features/codicon/register.js';
import 'monaco-editor/features/comment/register.js';
import 'monaco-editor/features/contextmenu/register.js';
import 'monaco-editor/features/cursorUndo/register.js';
import 'monaco-editor/features/diffEditor/register.js';
import 'monaco-editor/features/dnd/register.js';
import 'monaco-editor/features/find/register.js';
import 'monaco-editor/features/folding/register.js';
import 'monaco-editor/features/gotoLine/register.js';
import 'monaco-editor/features/hover/register.js';
import 'monaco-editor/features/iPadShowKeyboard/register.js';
import 'monaco-editor/features/indentation/register.js';
import 'monaco-editor/features/lineSelection/register.js';
import 'monaco-editor/features/linesOperations/register.js';
import 'monaco-editor/features/longLinesHelper/register.js';
import 'monaco-editor/features/multicursor/register.js';
import 'monaco-editor/features/quickCommand/register.js';
import 'monaco-editor/features/readOnlyMessage/register.js';
import 'monaco-editor/features/smartSelect/register.js';
import 'monaco-editor/features/toggleTabFocusMode/register.js';
import 'monaco-editor/features/unicodeHighlighter/register.js';
import 'monaco-editor/features/wordHighlighter/register.js';
import 'monaco-editor/features/wordOperations/register.js';
import 'monaco-editor/languages/definitions/register.all.js';

self.MonacoEnvironment = {
  getWorker: () => new EditorWorker(),
};

// names that its languages do not claim
monaco.languages.register({ id: 'ini', extensions: ['.toml', '.env', '.conf', '.cfg'], filenames: ['.env'] });
monaco.languages.register({ id: 'shell', filenames: ['.bashrc', '.profile', '.bash_profile'] });
monaco.languages.register({ id: 'javascript', extensions: ['.json', '.jsonl', '.ipynb', '.geojson', '.webmanifest'] });

const html = document.documentElement;

/** Colours of the page; those of words are Monaco's own, but where they would be too pale on what was added or removed. */
function paint() {
  const dark = html.dataset.theme === 'dark';
  const style = getComputedStyle(html);
  // the style sheet may say #fff, which Monaco does not take
  const of = (name: string) => style.getPropertyValue(`--c-${name}`).trim()
    .replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3');

  monaco.editor.defineTheme('console', {
    base: dark ? 'vs-dark' : 'vs',
    inherit: true,
    rules: dark ? [
      { token: 'comment', foreground: '86b872' },
      { token: 'keyword', foreground: '80bdf2' },
      { token: 'keyword.flow', foreground: 'd9a8d6' },
      { token: 'regexp', foreground: 'e5a0a0' },
      { token: 'string', foreground: 'e0ad98' },
      { token: 'tag', foreground: '80bdf2' },
    ] : [
      { token: 'comment', foreground: '006000' },
      { token: 'invalid', foreground: 'a01c14' },
      { token: 'number', foreground: '055a3b' },
      { token: 'type', foreground: '1b6075' },
      { token: 'attribute.name', foreground: 'b00000' },
      { token: 'metatag', foreground: 'b00000' },
    ],
    colors: {
      'editor.background': of('bg'),
      'editor.foreground': of('text'),
      'editorGutter.background': of('bg'),
      'editorLineNumber.foreground': of('dim'),
      'editorLineNumber.dimmedForeground': of('dim'),
      'editorLineNumber.activeForeground': of('text'),
      'editor.lineHighlightBackground': of('raised'),
      'editor.lineHighlightBorder': '#00000000',
      'editorWidget.background': of('raised'),
      'editorWidget.border': of('line'),
      'focusBorder': of('accent'),
      'editorBracketHighlight.unexpectedBracket.foreground': of('bad'),
      'diffEditor.insertedLineBackground': of('good-tint'),
      'diffEditor.removedLineBackground': of('bad-tint'),
      'diffEditor.insertedTextBackground': `${of('good')}20`,
      'diffEditor.removedTextBackground': `${of('bad')}18`,
      'diffEditor.unchangedRegionBackground': of('raised'),
      'diffEditor.unchangedRegionForeground': of('dim'),
    },
  });
  monaco.editor.setTheme('console');
}

paint();
new MutationObserver(paint).observe(html, { attributes: true, attributeFilter: ['data-theme'] });

let models = 0;

/** A text with the language that its name says. */
export const makeModel = (text: string, path: string) => monaco.editor.createModel(text, undefined,
  monaco.Uri.from({ scheme: 'sandbox', path: path.startsWith('/') ? path : `/${path}`, query: String(++models) }));

/** What editors and diffs have in common. */
export const OPTIONS: monaco.editor.IEditorOptions = {
  automaticLayout: true,
  minimap: { enabled: false },
  fontFamily: getComputedStyle(html).getPropertyValue('--font-mono') || 'monospace',
  fontSize: 13,
  lineHeight: 20,
  padding: { top: 8, bottom: 8 },
  scrollBeyondLastLine: false,
  smoothScrolling: false,
  fixedOverflowWidgets: true,
  lineNumbersMinChars: 4,
  renderLineHighlightOnlyWhenFocus: true,
  scrollbar: { verticalScrollbarSize: 10, horizontalScrollbarSize: 10, useShadows: false },
  // what would act, or look like something else, is seen
  renderControlCharacters: true,
  unicodeHighlight: { ambiguousCharacters: true, invisibleCharacters: true, includeComments: true, includeStrings: true },
  unusualLineTerminators: 'off',
  stopRenderingLineAfter: 10_000,
  links: false,
};

export const { editor } = monaco;

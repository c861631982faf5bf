// What a terminal asks before it does: pasting several lines, leaving for where
// a text leads.

import { useTranslation } from 'react-i18next';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { PlainText } from '@/ui/plain-text';
import { oneLine, pasteLines } from './paste';

const SHOWN = 4_000;

interface PasteProps {
  text: string | null;
  /** The program has not asked for pastes to be marked: each line may run at once. */
  runs: boolean;
  onPaste(text: string): void;
  onClose(): void;
}

export function PasteDialog({ text, runs, onPaste, onClose }: PasteProps) {
  const { t } = useTranslation('terminal');
  const { t: common } = useTranslation();
  const { bytes } = useFormat();

  const lines = text === null ? 0 : pasteLines(text);

  return (
    <Dialog open={text !== null} onOpenChange={(open) => { if (!open) onClose(); }}
      title={t('paste.title', { count: lines })} description={runs ? t('paste.runs') : t('paste.marked')} wide
      footer={text !== null && (
        <>
          <Button onClick={onClose}>{common('cancel')}</Button>
          {lines > 1 && <Button onClick={() => onPaste(oneLine(text))}>{t('paste.oneLine')}</Button>}
          <Button look="primary" autoFocus onClick={() => onPaste(text)}>{t('paste.paste')}</Button>
        </>
      )}
    >
      {text !== null && (
        <>
          <div className="overflow-hidden rounded-md border bg-raised">
            <PlainText text={text.slice(0, SHOWN)} className="max-h-64" label={t('paste.what')} />
          </div>
          {text.length > SHOWN && <p className="text-xs text-dim">{t('paste.more', { size: bytes(text.length) })}</p>}
        </>
      )}
    </Dialog>
  );
}

/** The address if it is one that may be followed: http, https, mailto. */
export function followable(text: string): URL | null {
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

export function LinkDialog({ url, onClose }: { url: URL | null; onClose(): void }) {
  const { t } = useTranslation('terminal');
  const { t: common } = useTranslation();

  return (
    <Dialog open={url !== null} onOpenChange={(open) => { if (!open) onClose(); }}
      title={t('link.title')} description={t('link.hint')}
      footer={url && (
        <>
          <Button onClick={onClose}>{common('cancel')}</Button>
          <Button look="primary" autoFocus onClick={() => {
            window.open(url, '_blank', 'noopener,noreferrer');
            onClose();
          }}
          >
            {t('link.open')}
          </Button>
        </>
      )}
    >
      {url && (
        <div className="overflow-hidden rounded-md border bg-raised">
          <PlainText text={url.href} label={t('link.title')} />
        </div>
      )}
    </Dialog>
  );
}

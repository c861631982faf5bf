import { useState } from 'react';
import { Check, Copy, type LucideIcon } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Button } from './button';
import { PlainText } from './plain-text';

/** Puts a text on the clipboard, on plain http too. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }

  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  document.body.append(area);
  area.select();

  const done = document.execCommand('copy');
  area.remove();

  if (!done) {
    throw new Error('the browser refuses to copy');
  }
}

export function CopyButton({ text, label, icon: Icon = Copy }: { text: string; label: string; icon?: LucideIcon }) {
  const { t } = useTranslation();
  const [said, setSaid] = useState<'copied' | 'copyFailed' | null>(null);

  const copy = () => {
    copyText(text).then(() => setSaid('copied'), () => setSaid('copyFailed'));
    setTimeout(() => setSaid(null), 1_600);
  };

  return (
    <Button look="quiet" size="sm" aria-label={label} onClick={copy}
      icon={said === 'copied' ? <Check size={14} aria-hidden className="text-good" /> : <Icon size={14} aria-hidden />}
    >
      <span role="status" className={said === 'copyFailed' ? '' : 'sr-only'}>{said && t(said)}</span>
    </Button>
  );
}

/** Text to take along: a snippet, a command line. */
export function Snippet({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();

  return (
    <div className="relative rounded-md border bg-raised text-left">
      <PlainText text={text} wrap={false} label={label} className="pr-10" />
      <div className="absolute right-0 top-0 rounded-md bg-raised p-1"><CopyButton text={text} label={t('copy')} /></div>
    </div>
  );
}

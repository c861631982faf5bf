import { ChevronDown, ChevronUp, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Button } from '@/ui/button';
import { Input } from '@/ui/field';

interface Props {
  text: string;
  found: { index: number; count: number };
  onText(text: string): void;
  onStep(back: boolean): void;
  onClose(): void;
}

/** Finds in what the terminal shows and has kept. */
export function Find({ text, found, onText, onStep, onClose }: Props) {
  const { t } = useTranslation('terminal');
  const { t: common } = useTranslation();

  return (
    <div role="search" className="absolute right-3 top-2 z-20 flex items-center gap-1 rounded-md border border-strong bg-bg p-1"
      onKeyDown={(e) => {
        if (e.nativeEvent.isComposing) {
          return;
        }
        if (e.key === 'Escape') {
          e.preventDefault();
          onClose();
        } else if (e.key === 'Enter') {
          e.preventDefault();
          onStep(e.shiftKey);
        }
      }}
    >
      <Input autoFocus aria-label={t('find')} placeholder={t('find')} value={text} className="h-7! w-40!"
        onChange={(e) => onText(e.target.value)}
      />
      <span role="status" className="min-w-14 px-1 text-center text-xs tabular-nums text-dim">
        {text !== '' && (found.count === 0 ? t('notFound') : t('found', { at: found.index + 1, of: found.count }))}
      </span>
      <Button look="quiet" size="sm" aria-label={t('findPrevious')} icon={<ChevronUp size={15} aria-hidden />} onClick={() => onStep(true)} />
      <Button look="quiet" size="sm" aria-label={t('findNext')} icon={<ChevronDown size={15} aria-hidden />} onClick={() => onStep(false)} />
      <Button look="quiet" size="sm" aria-label={common('close')} icon={<X size={15} aria-hidden />} onClick={onClose} />
    </div>
  );
}

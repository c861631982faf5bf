import { useTranslation } from 'react-i18next';
import { Dialog } from '@/ui/dialog';

const KEYS = [
  ['j ↓', 'next'], ['k ↑', 'previous'], ['Enter', 'open'], ['Esc', 'close'],
  ['/', 'search'], ['l', 'live'], ['Ctrl K', 'jump'], ['?', 'help'],
] as const;

export function KeyboardHelp({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }) {
  const { t } = useTranslation();

  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t('keys.title')}>
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-2 text-sm">
        {KEYS.map(([keys, what]) => (
          <div key={what} className="contents">
            <dt className="flex gap-1">
              {keys.split(' ').map((k) => (
                <kbd key={k} className="rounded-sm border border-strong bg-raised px-1.5 text-xs">{k}</kbd>
              ))}
            </dt>
            <dd>{t(`keys.${what}`)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

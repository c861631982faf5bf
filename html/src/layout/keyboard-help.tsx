import { useTranslation } from 'react-i18next';
import { Dialog } from '@/ui/dialog';

const KEYS = {
  records: [
    ['j ↓', 'next'], ['k ↑', 'previous'], ['Enter', 'open'], ['Esc', 'close'],
    ['/', 'search'], ['l', 'live'], ['Ctrl K', 'jump'], ['?', 'help'],
  ],
  replay: [['Space', 'play'], ['← →', 'seconds'], [', .', 'step'], ['[ ]', 'command'], ['0 … 9', 'tenth'], ['f', 'full']],
  files: [['Ctrl S', 'save'], ['F2', 'rename'], ['Delete', 'delete']],
  terminal: [['Ctrl Shift F', 'find'], ['Ctrl Shift C', 'copy'], ['Ctrl Shift V', 'paste'], ['Ctrl Shift ↑', 'leave']],
} as const;
const GROUPS = ['records', 'replay', 'files', 'terminal'] as const;

export function KeyboardHelp({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }) {
  const { t } = useTranslation();

  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t('keys.title')} wide>
      <div className="grid gap-x-8 gap-y-4 sm:grid-cols-2">
        {GROUPS.map((group) => (
          <section key={group} aria-labelledby={`keys-${group}`}>
            <h3 id={`keys-${group}`} className="mb-2 text-xs font-medium text-dim">{t(`keys.in.${group}`)}</h3>
            <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-2 text-sm">
              {KEYS[group].map(([keys, what]) => (
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
          </section>
        ))}
      </div>
    </Dialog>
  );
}

import { useEffect, useRef } from 'react';
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { MadeToken } from '@/api/tokens';
import { Button } from '@/ui/button';
import { Snippet } from '@/ui/copy';

/**
 * A new token, the only time that it is seen.  It stands in the page, not in a
 * dialog: a key or a click beside it would take it away.
 */
export function Made({ made, onDone }: { made: MadeToken; onDone(): void }) {
  const { t } = useTranslation('tokens');
  const at = useRef<HTMLElement>(null);

  useEffect(() => at.current?.focus(), [made.id]);

  return (
    <section ref={at} tabIndex={-1} aria-label={t('made')} className="mx-4 grid grid-cols-1 gap-2 rounded-md border border-warn bg-warn-tint p-3 outline-none">
      <p className="flex items-start gap-2 text-sm">
        <TriangleAlert size={15} aria-hidden className="mt-0.5 shrink-0 text-warn" />
        <span><span className="font-medium">{t('made')}</span> {t('once')}</span>
      </p>
      <Snippet text={made.token} label={t('secret')} />
      <div className="text-right"><Button size="sm" onClick={onDone}>{t('kept')}</Button></div>
    </section>
  );
}

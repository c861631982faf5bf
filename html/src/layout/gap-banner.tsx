import { useEffect } from 'react';
import { TriangleAlert, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, useLocation } from 'react-router';
import type { Overview } from '@/api/types';
import { useRemembered } from '@/lib/stored';
import { Button } from '@/ui/button';

const AT = '/history?type=gateway.gap';

/** Says that history has gaps, until the reader has seen the newest of them. */
export function GapBanner({ gaps }: { gaps: Overview['gaps'] }) {
  const { t } = useTranslation();
  const [seen, see] = useRemembered('gaps.seen');
  const { pathname, search } = useLocation();
  const newest = gaps.items[0]?.id ?? '';
  const looks = pathname + search === AT;

  useEffect(() => {
    if (looks && newest !== '') {
      see(newest);
    }
  }, [looks, newest, see]);

  return gaps.count > 0 && newest !== seen && (
    <p role="status" className="flex items-center gap-2 border-b border-warn bg-warn-tint px-4 py-1.5 text-sm">
      <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />
      <span className="min-w-0 flex-1">{t('banner.gaps', { count: gaps.count })}</span>
      <Link to={AT} className="shrink-0 underline">{t('banner.show')}</Link>
      <Button look="quiet" size="sm" aria-label={t('close')} icon={<X size={15} aria-hidden />} onClick={() => see(newest)} />
    </p>
  );
}

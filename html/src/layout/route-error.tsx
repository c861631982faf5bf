import { Compass, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, useRouteError } from 'react-router';
import { Button, buttonClass } from '@/ui/button';
import { Empty } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';

/** A page that could not be loaded or drawn; the rest stays usable. */
export function RouteError() {
  const { t } = useTranslation();
  const error = useRouteError();

  return (
    <Empty icon={TriangleAlert} title={t('pageFailed')}>
      <ErrorNote error={error} />
      <div><Button onClick={() => location.reload()}>{t('reload')}</Button></div>
    </Empty>
  );
}

export function NotFound() {
  const { t } = useTranslation();

  return (
    <Empty icon={Compass} title={t('notFound')}>
      <div><Link to="/" className={buttonClass()}>{t('nav.overview')}</Link></div>
    </Empty>
  );
}

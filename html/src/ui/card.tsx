import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Link } from 'react-router';

/** A titled part of a page; `to` leads to all of it. */
export function Card({ title, to, children }: { title: string; to?: string; children: ReactNode }) {
  const { t } = useTranslation();

  return (
    <section className="min-w-0 overflow-hidden rounded-md border">
      <div className="flex h-9 items-center justify-between gap-2 border-b bg-raised px-3">
        <h2 className="text-sm font-medium">{title}</h2>
        {to && <Link to={to} aria-label={t('allOf', { title })} className="text-xs text-accent hover:underline">{t('all')}</Link>}
      </div>
      {children}
    </section>
  );
}

import { Suspense } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Link, Outlet, useLocation, useParams } from 'react-router';
import { sandboxQuery } from '@/api/queries';
import { SANDBOX_TABS } from '@/areas';
import { useTitle } from '@/lib/title';
import { buttonClass } from '@/ui/button';
import { CopyButton } from '@/ui/copy';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { harmless, Recorded } from '@/ui/plain-text';
import { StateBadge } from '@/ui/status';
import { LinkTabs } from '@/ui/tabs';
import { SearchX, TriangleAlert } from 'lucide-react';
import { SandboxActions } from './actions';

/** The frame of a sandbox's pages: what it is, and its tabs. */
export function Component() {
  const { t } = useTranslation('sandboxes');
  const { t: common } = useTranslation();
  const id = useParams().id!;
  const { data: sandbox, error, refetch } = useQuery(sandboxQuery(id));
  const name = sandbox?.name ?? id;

  const { pathname } = useLocation();
  const tab = SANDBOX_TABS.find((one) => pathname.endsWith(`/${one.to}`));

  // of all its pages: what is around them says it last
  useTitle([harmless(name), tab && common(tab.label)].filter(Boolean).join(' · '));

  if (sandbox === null) {
    return (
      <Empty icon={SearchX} title={t('unknown')}>
        <p>{t('unknownHint')}</p>
        <div><Link to="/sandboxes" className={buttonClass()}>{t('title')}</Link></div>
      </Empty>
    );
  }

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 pt-2.5 pb-1">
        <h1 className="min-w-0 truncate text-lg font-semibold"><Recorded text={name} className="text-[15px]" /></h1>
        {sandbox && <StateBadge state={sandbox.state} />}
        {sandbox?.image && <Recorded text={sandbox.image} className="max-w-64 truncate text-dim max-sm:hidden" />}
        <span className="flex min-w-0 items-center">
          <Recorded text={id} className="truncate text-dim max-sm:max-w-40" />
          <CopyButton text={id} label={t('copyId')} />
        </span>
        {sandbox && <SandboxActions sandbox={sandbox} />}
      </div>
      {/* what the tabs show is theirs to say; what is known of the sandbox itself is not there */}
      {error && !sandbox && <div className="px-4 py-2"><ErrorNote error={error} onRetry={() => void refetch()} /></div>}
      {!!sandbox?.gaps && (
        <p role="alert" className="flex flex-wrap items-center gap-x-2 border-y border-warn bg-warn-tint px-4 py-1 text-sm">
          <TriangleAlert size={15} aria-hidden className="shrink-0 text-warn" />
          <span>{t('hasGaps', { count: sandbox.gaps })}</span>
          <Link to={`/sandboxes/${encodeURIComponent(id)}/history?type=gateway.gap`} className="underline">{t('showGaps')}</Link>
        </p>
      )}
      <LinkTabs label={t('tabs')} tabs={SANDBOX_TABS.map((tab) => ({ to: tab.to, label: common(tab.label) }))} />
      <Suspense fallback={<Skeleton className="p-4" />}><Outlet context={sandbox} /></Suspense>
    </div>
  );
}

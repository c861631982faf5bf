// The filters that have no list of values to choose from.

import { lazy, Suspense, useState } from 'react';
import { ChevronDown } from 'lucide-react';
import { Popover } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { PEOPLE, type SetTimelineSearch, TYPED, type TimelineSearch } from './filters';

const Form = lazy(() => import('./more-form'));

export function MoreFilters({ search, setSearch, people }: {
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  /** Is it a list where what people did on these pages stands? */
  people: boolean;
}) {
  const { t } = useTranslation('timeline');
  const [open, setOpen] = useState(false);
  const n = TYPED.filter((name) => search[name] !== '').length + (search.type.includes(PEOPLE) ? 1 : 0);

  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <Button size="sm" className={cx(n > 0 && 'border-accent')}>
          {t('moreFilters')}{n > 0 && <span className="tabular-nums text-accent">{n}</span>}
          <ChevronDown size={14} aria-hidden className="text-dim" />
        </Button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content align="start" sideOffset={4} collisionPadding={8} aria-label={t('moreFilters')}
          className="z-50 w-[min(360px,calc(100vw-16px))] overflow-y-auto rounded-md border border-strong bg-bg p-3 max-h-(--radix-popover-content-available-height)"
        >
          <Suspense fallback={<Skeleton lines={6} />}>
            <Form search={search} setSearch={setSearch} people={people} onDone={() => setOpen(false)} />
          </Suspense>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

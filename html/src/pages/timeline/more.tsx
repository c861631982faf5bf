// The filters that have no list of values to choose from: they are typed.

import { useState } from 'react';
import { ChevronDown } from 'lucide-react';
import { Popover } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { Button } from '@/ui/button';
import { Field, Input } from '@/ui/field';
import type { SetTimelineSearch, TimelineSearch } from './filters';

const TYPED = ['path', 'exit_code', 'min_duration_ms', 'run', 'thread', 'correlation'] as const;
type Typed = Record<(typeof TYPED)[number], string>;

const NUMBERS: readonly string[] = ['exit_code', 'min_duration_ms'];

/** What people do here is left out of lists unless it is asked for. */
const PEOPLE = 'console.*';

export function MoreFilters({ search, setSearch, people }: {
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  /** Is it a list where what people did on these pages stands? */
  people: boolean;
}) {
  const { t } = useTranslation('timeline');
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState<Typed>(search);
  const n = TYPED.filter((name) => search[name] !== '').length + (search.type.includes(PEOPLE) ? 1 : 0);

  return (
    <Popover.Root open={open} onOpenChange={(on) => {
      setOpen(on);
      setTyped(search);
    }}
    >
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
          <form className="grid gap-2" onSubmit={(e) => {
            e.preventDefault();
            setSearch(Object.fromEntries(TYPED.map((name) => [name, typed[name].trim()])));
            setOpen(false);
          }}
          >
            {TYPED.map((name) => (
              <Field key={name} label={t(`filter.${name}`)} hint={name === 'path' && t('pathHint')}>
                {(p) => (
                  <Input {...p} {...(NUMBERS.includes(name) ? { type: 'number', step: 1, ...(name === 'exit_code' ? {} : { min: 0 }) } : {})}
                    autoComplete="off" placeholder={name === 'path' ? '/workspace/*.sql' : undefined} value={typed[name]}
                    onChange={(e) => setTyped({ ...typed, [name]: e.target.value })}
                  />
                )}
              </Field>
            ))}
            {people && (
              <label className="flex items-start gap-2 py-1 text-sm">
                <input type="checkbox" className="mt-0.5" checked={search.type.includes(PEOPLE)}
                  onChange={(e) => setSearch({ type: e.target.checked ? [PEOPLE] : search.type.filter((one) => one !== PEOPLE) })}
                />
                <span>{t('people')}<span className="block text-xs text-dim">{t('peopleHint')}</span></span>
              </label>
            )}
            <div className="flex justify-end"><Button type="submit" look="primary">{t('apply')}</Button></div>
          </form>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

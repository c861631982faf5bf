import { Ban, ChevronDown, CircleSlash2 } from 'lucide-react';
import { DropdownMenu as Radix } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import type { FacetValues } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Menu, MenuCheck, MenuLabel } from '@/ui/menu';
import { harmless } from '@/ui/plain-text';
import { except, isExcept, isOnly, only, type Property, type SetTimelineSearch, type TimelineSearch, without } from './filters';

interface Props {
  name: Property;
  label: string;
  counts: FacetValues | undefined;
  /** Are the values all that is known, and not how many of each there are? */
  uncounted?: boolean;
  /** Values that are there without being counted. */
  values?: readonly string[];
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  says?(value: string): string;
  /** What stands for `only`, where that is another address. */
  onOnly?(value: string): void;
}

/** The values of one property with their counts: each can be all there is, or be left out. */
export function Facet({ name, label, counts, uncounted = false, values = [], search, setSearch, says = harmless, onOnly }: Props) {
  const { t } = useTranslation('timeline');
  const { count } = useFormat();
  const left = search.not.filter((n) => n.startsWith(`${name}:`)).map((n) => n.slice(name.length + 1));
  const all = [...new Set([...values, ...(counts?.values.map((v) => v.value) ?? []), ...left])];
  const n = all.filter((v) => isOnly(search, name, v)).length + left.length;

  return (
    <Menu align="start" trigger={(
      <Button size="sm" className={cx(n > 0 && 'border-accent')}>
        {label}{n > 0 && <span className="tabular-nums text-accent">{n}</span>}
        <ChevronDown size={14} aria-hidden className="text-dim" />
      </Button>
    )}
    >
      <MenuLabel>{label}</MenuLabel>
      {all.length === 0 && <p className="px-2 py-1 text-sm text-dim">{t('noValues')}</p>}
      {all.map((v) => {
        const on = isOnly(search, name, v);
        const out = isExcept(search, name, v);
        const number = uncounted ? undefined : counts?.values.find((c) => c.value === v)?.count;

        return (
          <div key={v} role="presentation" className="flex items-center">
            <div role="presentation" className="min-w-0 flex-1">
              <MenuCheck checked={on} {...(number === undefined ? {} : { count: count(number) })}
                onChange={(to) => (onOnly ? onOnly(v) : setSearch(to ? only(search, name as 'type', v) : without(search, name, v)))}
              >
                <span className={cx(out && 'text-dim line-through')}>{says(v)}</span>
              </MenuCheck>
            </div>
            <Radix.CheckboxItem checked={out} onSelect={(e) => e.preventDefault()}
              aria-label={t('except', { value: says(v) })} title={t('except', { value: says(v) })}
              onCheckedChange={(to) => setSearch(to ? except(search, name, v) : without(search, name, v))}
              className={cx('flex size-7 shrink-0 cursor-pointer items-center justify-center rounded-sm outline-none data-highlighted:bg-sunk',
                out ? 'text-bad' : 'text-dim')}
            >
              {out ? <Ban size={14} aria-hidden /> : <CircleSlash2 size={14} aria-hidden />}
            </Radix.CheckboxItem>
          </div>
        );
      })}
      {!uncounted && !!counts?.other && <p className="px-2 py-1 text-xs text-dim">{t('otherValues', { count: counts.other })}</p>}
    </Menu>
  );
}

import { type Ref, useEffect, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { ChevronDown, Radio, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { LiveState } from '@/api/live';
import { facetsQuery, type OperationFilters } from '@/api/queries';
import { STATUSES } from '@/api/types';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { SearchInput } from '@/ui/field';
import { Menu, MenuCheck, MenuLabel, MenuRadio } from '@/ui/menu';
import { harmless } from '@/ui/plain-text';
import { FILTERS, type FilterName, NO_FILTERS, type SetTimelineSearch, type TimelineSearch } from './filters';

const RANGES = ['', '10m', '1h', '6h', '24h', '7d'] as const;
const TYPING = 250;

interface Props {
  sandbox: string | undefined;
  filters: OperationFilters;
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  live: LiveState | 'off';
  searchRef: Ref<HTMLInputElement>;
}

const toggled = <T,>(all: readonly T[], one: T, on: boolean) => (on ? [...all, one] : all.filter((v) => v !== one));

function Chip({ name, value, onRemove }: { name: FilterName; value: string; onRemove(): void }) {
  const { t } = useTranslation('timeline');
  const label = `${t(`filter.${name}`)}: ${harmless(value)}`;

  return (
    <span className="inline-flex h-6 max-w-72 items-center gap-1 rounded-sm bg-tint pl-2 text-xs">
      <span className="truncate" title={label}>{label}</span>
      <button type="button" aria-label={t('remove', { filter: label })} title={t('remove', { filter: label })}
        className="rounded-sm p-1 hover:text-accent" onClick={onRemove}
      >
        <X size={13} aria-hidden />
      </button>
    </span>
  );
}

const trigger = (label: string) => (
  <Button size="sm">{label}<ChevronDown size={14} aria-hidden className="text-dim" /></Button>
);

export function FilterBar({ sandbox, filters, search, setSearch, live, searchRef }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const { count } = useFormat();
  const { data } = useQuery(facetsQuery(sandbox, filters));
  const facets = data?.facets;
  const [typed, setTyped] = useState(search.q);

  // the address may change by itself: Back, a link
  useEffect(() => setTyped(search.q), [search.q]);

  useEffect(() => {
    if (typed === search.q) {
      return undefined;
    }

    const timer = setTimeout(() => setSearch({ q: typed }, 'replace'), TYPING);
    return () => clearTimeout(timer);
  }, [typed, search.q, setSearch]);

  const chips = FILTERS.flatMap((name) => {
    const value = search[name];
    const values = Array.isArray(value) ? value : value ? [value] : [];

    return values.map((v: string) => ({
      name, value: v,
      remove: () => setSearch({ [name]: Array.isArray(value) ? toggled<string>(value, v, false) : '' }),
    }));
  });

  const countOf = (name: 'type' | 'status' | 'actor', value: string) => {
    const n = facets?.[name].values.find((v) => v.value === value)?.count;
    return n === undefined ? undefined : count(n);
  };

  const types = [...new Set([...search.type, ...(facets?.type.values.map((v) => v.value) ?? [])])];
  const actors = facets?.actor.values.map((v) => v.value) ?? [];

  return (
    <div className="grid gap-2 border-b px-3 py-2">
      <div className="flex flex-wrap items-center gap-2">
        <SearchInput ref={searchRef} label={t('search')} value={typed} onChange={setTyped} className="min-w-48 flex-1 basis-64" />
        <Menu align="start" trigger={trigger(t('filter.type'))}>
          <MenuLabel>{t('filter.type')}</MenuLabel>
          {types.map((v) => (
            <MenuCheck key={v} checked={search.type.includes(v)} count={countOf('type', v)}
              onChange={(on) => setSearch({ type: toggled(search.type, v, on) })}
            >
              {harmless(v)}
            </MenuCheck>
          ))}
        </Menu>
        <Menu align="start" trigger={trigger(t('filter.status'))}>
          <MenuLabel>{t('filter.status')}</MenuLabel>
          {STATUSES.map((s) => (
            <MenuCheck key={s} checked={search.status.includes(s)} count={countOf('status', s)}
              onChange={(on) => setSearch({ status: toggled(search.status, s, on) })}
            >
              {common(`status.${s}`)}
            </MenuCheck>
          ))}
        </Menu>
        <Menu align="start" trigger={trigger(t('filter.actor'))}>
          <MenuLabel>{t('filter.actor')}</MenuLabel>
          {actors.map((v) => {
            const at = v.indexOf(':');
            const [type, id] = [v.slice(0, at), v.slice(at + 1)];
            const on = search.actor_type === type && search.actor === id;

            return (
              <MenuCheck key={v} checked={on} count={countOf('actor', v)}
                onChange={(to) => setSearch(to ? { actor_type: type, actor: id } : { actor_type: '', actor: '' })}
              >
                {harmless(v)}
              </MenuCheck>
            );
          })}
        </Menu>
        <Menu align="start" trigger={trigger(t('filter.time'))}>
          <MenuRadio value={search.to ? '-' : search.from} onChange={(from) => setSearch({ from, to: '' })}
            options={RANGES.map((r) => ({ value: r as string, label: t(r === '' ? 'ranges.all' : `ranges.${r}`) }))}
          />
        </Menu>
        <Button size="sm" aria-pressed={!search.still} title={t(`live.${live}`)}
          onClick={() => setSearch({ still: !search.still }, 'replace')}
          icon={<Radio size={14} aria-hidden className={cx(live === 'open' ? 'text-good' : live === 'off' ? 'text-dim' : 'text-warn')} />}
        >
          {t(`live.${live}`)}
        </Button>
      </div>
      <div className={cx('flex flex-wrap items-center gap-1.5', chips.length === 0 && !facets && 'invisible')}>
        <span className="mr-1 text-xs text-dim tabular-nums">
          {facets ? t('total', { count: facets.total, about: facets.exact ? '' : '+' }) : '–'}
          {!!facets?.failed && <span className="text-bad"> · {t('failed', { count: facets.failed })}</span>}
        </span>
        {chips.map((c) => <Chip key={`${c.name} ${c.value}`} name={c.name} value={c.value} onRemove={c.remove} />)}
        {(chips.length > 1 || (chips.length > 0 && search.q)) && (
          <button type="button" className="px-1 text-xs text-accent hover:underline" onClick={() => setSearch(NO_FILTERS)}>
            {t('clear')}
          </button>
        )}
      </div>
    </div>
  );
}

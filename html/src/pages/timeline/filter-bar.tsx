import { lazy, type Ref, Suspense, useEffect, useRef, useState } from 'react';
import { Download, Layers, Radio, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useNavigate } from 'react-router';
import type { LiveState } from '@/api/live';
import { useSandboxNames } from '@/api/names';
import type { OperationFilters } from '@/api/queries';
import { STATUSES } from '@/api/types';
import { cx } from '@/lib/cx';
import { Button } from '@/ui/button';
import { SearchInput } from '@/ui/field';
import { Menu, MenuCheck, MenuItem, MenuLabel, MenuLine, MenuRadio } from '@/ui/menu';
import { harmless } from '@/ui/plain-text';
import { useCounted } from './counted';
import { Facet } from './facets';
import { type ExportFormat, FILTERS, type FilterName, FORMATS, GROUPS, inSandbox, NO_FILTERS, type SetTimelineSearch, type TimelineSearch } from './filters';
import { MoreFilters } from './more';
import { Range } from './range';
import { COLUMNS, DENSITIES, useRowView } from './view';

const ExportDialog = lazy(() => import('./export'));

const TYPING = 250;

interface Props {
  sandbox: string | undefined;
  filters: OperationFilters;
  /** Values that are left out of what passes. */
  not: readonly string[];
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  live: LiveState | 'off';
  searchRef: Ref<HTMLInputElement>;
}

function Chip({ label, not, onRemove }: { label: string; not?: boolean; onRemove(): void }) {
  const { t } = useTranslation('timeline');

  return (
    <span className={cx('inline-flex h-6 max-w-72 items-center gap-1 rounded-sm pl-2 text-xs', not ? 'bg-bad-tint' : 'bg-tint')}>
      <span className="truncate" title={label}>{label}</span>
      <button type="button" aria-label={t('remove', { filter: label })} title={t('remove', { filter: label })}
        className="rounded-sm p-1 hover:text-accent" onClick={onRemove}
      >
        <X size={13} aria-hidden />
      </button>
    </span>
  );
}

const PROPERTIES = ['type', 'status', 'actor', 'source', 'run', 'thread', 'correlation', 'path', 'exit_code', 'sandbox'] as const;

export function FilterBar({ sandbox, filters, not, search, setSearch, live, searchRef }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const navigate = useNavigate();
  const nameOf = useSandboxNames();
  const { facets, all: values } = useCounted(sandbox, filters, not);
  const counts = (name: 'type' | 'status' | 'actor' | 'source' | 'sandbox') => (
    { counts: (facets ?? values)?.[name], uncounted: !facets });
  const [typed, setTyped] = useState(search.q);
  const { view, density, setDensity, setColumn } = useRowView();
  const [exporting, setExporting] = useState<ExportFormat | null>(null);

  // several may have the same name
  const boxSaid = (id: string) => {
    const name = nameOf(id);
    return harmless(name === id ? id : `${name} · ${id.slice(0, 8)}`);
  };

  // the address may change by itself (Back, a link); what it was given from here
  // comes back late, and does not undo what was typed since
  const told = useRef<string[]>([]);

  useEffect(() => {
    const at = told.current.indexOf(search.q);

    told.current = told.current.slice(at + 1);
    if (at < 0) {
      told.current = [];
      setTyped(search.q);
    }
  }, [search.q]);

  useEffect(() => {
    if (typed === search.q) {
      return undefined;
    }

    const timer = setTimeout(() => {
      told.current.push(typed);
      setSearch({ q: typed }, 'replace');
    }, TYPING);
    return () => clearTimeout(timer);
  }, [typed, search.q, setSearch]);

  const chips = FILTERS.filter((name) => name !== 'from' && name !== 'to').flatMap((name: FilterName) => {
    const value = search[name];
    const values = Array.isArray(value) ? value : value ? [value] : [];

    return values.map((v: string) => ({
      key: `${name} ${v}`, not: false,
      label: `${t(`filter.${name}`)}: ${name === 'status' ? common(`status.${v as 'failed'}`) : harmless(v)}`,
      remove: () => setSearch({ [name]: Array.isArray(value) ? (value as string[]).filter((one) => one !== v) : '' }),
    }));
  });

  const left = search.not.map((n) => {
    const name = PROPERTIES.find((p) => n.startsWith(`${p}:`));
    const value = n.slice((name?.length ?? -1) + 1);
    const said = name === 'status' ? common(`status.${value as 'failed'}`) : name === 'sandbox' ? boxSaid(value) : harmless(value);

    return {
      key: `not ${n}`, not: true, label: t('notThis', { name: name ? t(`filter.${name}`) : '', value: said }),
      remove: () => setSearch({ not: search.not.filter((one) => one !== n) }),
    };
  });

  // a status is left out by the question itself
  const leftOut = not.filter((n) => !n.startsWith('status:'));
  const all = [...chips, ...left];
  const filtered = all.length > 0 || search.from !== '' || search.to !== '';

  return (
    <div className="grid gap-2 border-b px-3 py-2">
      <div className="flex flex-wrap items-center gap-2">
        <SearchInput ref={searchRef} label={t('search')} value={typed} onChange={setTyped} className="min-w-48 flex-1 basis-64" />
        <Facet name="type" label={t('filter.type')} {...counts('type')} values={search.type} search={search} setSearch={setSearch} />
        <Facet name="status" label={t('filter.status')} {...counts('status')} values={STATUSES} search={search} setSearch={setSearch}
          says={(v) => common(`status.${v as 'failed'}`)}
        />
        <Facet name="actor" label={t('filter.actor')} {...counts('actor')} search={search} setSearch={setSearch} />
        <Facet name="source" label={t('filter.source')} {...counts('source')} search={search} setSearch={setSearch} />
        {sandbox === undefined && (
          <Facet name="sandbox" label={t('filter.sandbox')} {...counts('sandbox')} search={search} setSearch={setSearch} says={boxSaid}
            onOnly={(id) => void navigate(inSandbox(id, search, filters.run))}
          />
        )}
        <MoreFilters search={search} setSearch={setSearch} people={sandbox === undefined} />
        <Range search={search} setSearch={setSearch} />
        <Menu trigger={<Button size="sm" title={t('view')} icon={<Layers size={14} aria-hidden />}><span className="max-xl:sr-only">{t('view')}</span></Button>}>
          <MenuLabel>{t('groupBy')}</MenuLabel>
          <MenuRadio value={search.group} onChange={(group) => setSearch({ group }, 'replace')}
            options={GROUPS.map((g) => ({ value: g, label: t(`groups.${g}`) }))}
          />
          <MenuLine />
          <MenuLabel>{t('density')}</MenuLabel>
          <MenuRadio value={density} onChange={setDensity} options={DENSITIES.map((d) => ({ value: d, label: t(`densities.${d}`) }))} />
          <MenuLine />
          <MenuLabel>{t('columns')}</MenuLabel>
          {COLUMNS.filter((c) => c !== 'sandbox' || sandbox === undefined).map((c) => (
            <MenuCheck key={c} checked={view.columns.has(c)} onChange={(on) => setColumn(c, on)}>{t(`column.${c}`)}</MenuCheck>
          ))}
        </Menu>
        <Menu trigger={<Button size="sm" title={t('export')} icon={<Download size={14} aria-hidden />}><span className="max-xl:sr-only">{t('export')}</span></Button>}>
          <MenuLabel>{t('exportThis')}</MenuLabel>
          {FORMATS.map((f) => (
            <MenuItem key={f} disabled={f === 'html' && leftOut.length > 0} onSelect={() => setExporting(f)}>
              {t(`formats.${f}`)}{f === 'html' && leftOut.length > 0 && <span className="text-xs text-dim">{t('htmlHasAll')}</span>}
            </MenuItem>
          ))}
        </Menu>
        <Button size="sm" aria-pressed={!search.still} title={t(`live.${live}`)}
          onClick={() => setSearch({ still: !search.still }, 'replace')}
          icon={<Radio size={14} aria-hidden className={cx(live === 'open' ? 'text-good' : live === 'off' ? 'text-dim' : 'text-warn')} />}
        >
          {t(`live.${live}`)}
        </Button>
      </div>
      <div className={cx('flex flex-wrap items-center gap-1.5', all.length === 0 && !values && 'invisible')}>
        <span className="mr-1 text-xs text-dim tabular-nums">
          {facets ? t('total', { count: facets.total, about: facets.exact ? '' : '+' }) : facets === null ? t('uncounted') : '–'}
          {!!facets?.failed && <span className="text-bad"> · {t('failed', { count: facets.failed })}</span>}
        </span>
        {all.map((c) => <Chip key={c.key} label={c.label} not={c.not} onRemove={c.remove} />)}
        {filtered && (
          <button type="button" className="px-1 text-xs text-accent hover:underline" onClick={() => setSearch(NO_FILTERS)}>
            {t('clear')}
          </button>
        )}
      </div>
      {exporting && (
        <Suspense>
          <ExportDialog format={exporting} sandbox={sandbox} filters={filters} expected={values?.exact ? values.total : undefined} not={leftOut}
            onClose={() => setExporting(null)}
          />
        </Suspense>
      )}
    </div>
  );
}

import { useState } from 'react';
import { ChevronDown } from 'lucide-react';
import { Popover } from 'radix-ui';
import { useTranslation } from 'react-i18next';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { useZone, type Zone, ZONES } from '@/lib/zone';
import { Button } from '@/ui/button';
import { Field, Input, Select } from '@/ui/field';
import type { SetTimelineSearch, TimelineSearch } from './filters';

const RANGES = ['', '10m', '1h', '6h', '24h', '7d', '30d'] as const;

const RELATIVE = /^\d+[smhd]$/;

/** A time as a field has it, in the zone that is shown. */
function toField(iso: string, zone: Zone): string {
  const at = new Date(iso);

  if (iso === '' || RELATIVE.test(iso) || Number.isNaN(at.getTime())) {
    return '';
  }

  return new Date(at.getTime() - (zone === 'utc' ? 0 : at.getTimezoneOffset() * 60_000)).toISOString().slice(0, 19);
}

function fromField(text: string, zone: Zone): string {
  const at = new Date(zone === 'utc' ? `${text}Z` : text);

  return text === '' || Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

/** Since when, until when, and in which zone that is read. */
export function Range({ search, setSearch }: { search: TimelineSearch; setSearch: SetTimelineSearch }) {
  const { t } = useTranslation('timeline');
  const { moment } = useFormat();
  const [zone, setZone] = useZone();
  const [open, setOpen] = useState(false);
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const quick = search.to === '' ? RANGES.find((r) => r === search.from) : undefined;
  // what was not touched stays as it is: to the millisecond, or relative
  const read = (field: string, was: string) => (field === toField(was, zone) ? was : fromField(field, zone));
  // the same moments, as the other zone has them
  const changeZone = (other: Zone) => {
    setFrom(toField(fromField(from, zone), other));
    setTo(toField(fromField(to, zone), other));
    setZone(other);
  };

  const said = (iso: string) => (RELATIVE.test(iso) ? iso : moment(iso));
  const label = quick === '' ? t('filter.time') : quick !== undefined ? t(`ranges.${quick}`)
    : `${search.from ? said(search.from) : '…'} – ${search.to ? said(search.to) : t('ranges.now')}`;

  return (
    <Popover.Root open={open} onOpenChange={(on) => {
      setOpen(on);
      setFrom(toField(search.from, zone));
      setTo(toField(search.to, zone));
    }}
    >
      <Popover.Trigger asChild>
        <Button size="sm" className="max-w-80">
          <span className="truncate">{label}</span><ChevronDown size={14} aria-hidden className="shrink-0 text-dim" />
        </Button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content align="start" sideOffset={4} collisionPadding={8} aria-label={t('filter.time')}
          className="z-50 grid w-[min(440px,calc(100vw-16px))] gap-3 rounded-md border border-strong bg-bg p-3 sm:grid-cols-[150px_1fr]"
        >
          <ul className="grid content-start gap-0.5 max-sm:grid-cols-2">
            {RANGES.map((r) => (
              <li key={r}>
                <button type="button" aria-pressed={quick === r} onClick={() => { setSearch({ from: r, to: '' }); setOpen(false); }}
                  className={cx('w-full rounded-sm px-2 py-1 text-left text-sm hover:bg-sunk', quick === r && 'bg-tint font-medium')}
                >
                  {t(r === '' ? 'ranges.all' : `ranges.${r}`)}
                </button>
              </li>
            ))}
          </ul>
          <form className="grid content-start gap-2" onSubmit={(e) => {
            e.preventDefault();
            setSearch({ from: read(from, search.from), to: read(to, search.to) });
            setOpen(false);
          }}
          >
            <Field label={t('filter.from')} hint={from === '' && RELATIVE.test(search.from) && t('fromKept', { range: search.from })}>
              {(p) => <Input {...p} type="datetime-local" step={1} value={from} onChange={(e) => setFrom(e.target.value)} />}
            </Field>
            <Field label={t('filter.to')}>
              {(p) => <Input {...p} type="datetime-local" step={1} value={to} onChange={(e) => setTo(e.target.value)} />}
            </Field>
            <div className="flex items-end justify-between gap-2">
              <Field label={t('zone')}>
                {(p) => (
                  <Select {...p} value={zone} onChange={(e) => changeZone(e.target.value as Zone)}>
                    {ZONES.map((z) => <option key={z} value={z}>{t(`zones.${z}`)}</option>)}
                  </Select>
                )}
              </Field>
              <Button type="submit" look="primary">{t('apply')}</Button>
            </div>
          </form>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

// The fields of filters that are typed: loaded when they are opened.

import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '@/ui/button';
import { Field, Input } from '@/ui/field';
import { PEOPLE, type SetTimelineSearch, TYPED, type TimelineSearch } from './filters';

const NUMBERS: readonly string[] = ['exit_code', 'min_duration_ms'];

export default function MoreForm({ search, setSearch, people, onDone }: {
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  people: boolean;
  onDone(): void;
}) {
  const { t } = useTranslation('timeline');
  // the address follows a moment later
  const [told, setTold] = useState(search.type.includes(PEOPLE));
  const [typed, setTyped] = useState<Record<(typeof TYPED)[number], string>>(search);

  return (
    <form className="grid gap-2" onSubmit={(e) => {
      e.preventDefault();
      setSearch(Object.fromEntries(TYPED.map((name) => [name, typed[name].trim()])));
      onDone();
    }}
    >
      {TYPED.map((name) => (
        <Field key={name} label={t(`filter.${name}`)} hint={name === 'path' && t('pathHint')}>
          {(p) => (
            <Input {...p} autoFocus={name === 'path'} {...(NUMBERS.includes(name) ? { type: 'number', step: 1, ...(name === 'exit_code' ? {} : { min: 0 }) } : {})}
              autoComplete="off" placeholder={name === 'path' ? '/workspace/*.sql' : undefined} value={typed[name]}
              onChange={(e) => setTyped({ ...typed, [name]: e.target.value })}
            />
          )}
        </Field>
      ))}
      {people && (
        <label className="flex items-start gap-2 py-1 text-sm">
          <input type="checkbox" className="mt-0.5" checked={told}
            onChange={(e) => {
              setTold(e.target.checked);
              setSearch({ type: e.target.checked ? [PEOPLE] : search.type.filter((one) => one !== PEOPLE) });
            }}
          />
          <span>{t('people')}<span className="block text-xs text-dim">{t('peopleHint')}</span></span>
        </label>
      )}
      <div className="flex justify-end"><Button type="submit" look="primary">{t('apply')}</Button></div>
    </form>
  );
}

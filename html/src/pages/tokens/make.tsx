import { useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { type Role, ROLES } from '@/api/session';
import { makeToken, type MadeToken, type TokenRequest } from '@/api/tokens';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input, Select, Textarea } from '@/ui/field';

const TYPES = ['agent', 'user', 'service'];
const DAYS = [1, 7, 30, 90, 365];
const DAY = 86_400;
const LONGEST = 3_650;

const INITIAL = {
  role: 'operator' as Role, type: '', actor: '', sandboxes: '', expiry: '30', days: '', states: false,
};

type Fields = typeof INITIAL;

const lasts = ({ expiry, days }: Fields) => Number(expiry === 'other' ? days : expiry);

function requestOf(fields: Fields): TokenRequest {
  const sandboxes = fields.sandboxes.split(/[\s,]+/).filter(Boolean);
  const type = fields.type.trim();
  const id = fields.actor.trim();

  return {
    role: fields.role,
    ...(id ? { actor: { id, ...(type ? { type } : {}) } } : {}),
    ...(sandboxes.length > 0 ? { sandboxes } : {}),
    ...(fields.expiry !== 'never' ? { expires_in: lasts(fields) * DAY } : {}),
    ...(fields.states ? { states_actors: true } : {}),
  };
}

/** Asks what a new token shall be for, and makes it. */
export function MakeDialog({ onClose, onMade }: { onClose(): void; onMade(token: MadeToken): void }) {
  const { t } = useTranslation('tokens');
  const { t: common } = useTranslation();
  const [fields, setFields] = useState(INITIAL);
  const [touched, setTouched] = useState(false);
  // the answer has a secret: it is not kept
  const make = useMutation({ mutationFn: makeToken, onSuccess: onMade, gcTime: 0 });

  const daysWrong = fields.expiry === 'other'
    && !(/^\d+$/.test(fields.days) && lasts(fields) >= 1 && lasts(fields) <= LONGEST);
  const actorWrong = fields.actor.trim() === '' ? fields.type.trim() !== '' : /\s/.test(fields.actor.trim());

  const set = (patch: Partial<Fields>) => {
    make.reset();
    setFields({ ...fields, ...patch });
  };

  const submit = () => {
    setTouched(true);
    if (!daysWrong && !actorWrong && !make.isPending) {
      make.mutate(requestOf(fields));
    }
  };

  return (
    <Dialog open onOpenChange={(open) => { if (!open && !make.isPending) onClose(); }} title={t('new')}
      footer={(
        <>
          <Button disabled={make.isPending} onClick={onClose}>{common('cancel')}</Button>
          <Button type="submit" form="make-token" look="primary" busy={make.isPending}>{t('make')}</Button>
        </>
      )}
    >
      <form id="make-token" noValidate className="grid gap-3" onSubmit={(e) => { e.preventDefault(); submit(); }}>
        <Field label={t('role')} hint={t(`may.${fields.role}`)}>
          {(p) => (
            <Select {...p} value={fields.role} onChange={(e) => set({ role: e.target.value as Role })}>
              {ROLES.map((r) => <option key={r} value={r}>{common(`role.${r}`)}</option>)}
            </Select>
          )}
        </Field>
        <div className="grid grid-cols-[minmax(0,1fr)_minmax(0,2fr)] items-start gap-3">
          <Field label={t('type')}>
            {(p) => <Input {...p} list="token-actor-types" autoComplete="off" placeholder={TYPES[0]} maxLength={32} value={fields.type}
              onChange={(e) => set({ type: e.target.value })} />}
          </Field>
          <Field label={t('actor')} hint={t('actorHint')} error={touched && actorWrong ? t('actorWrong') : null}>
            {(p) => <Input {...p} autoComplete="off" placeholder="etl-bot" maxLength={128} value={fields.actor}
              onChange={(e) => set({ actor: e.target.value })} />}
          </Field>
        </div>
        <datalist id="token-actor-types">{TYPES.map((one) => <option key={one} value={one} />)}</datalist>
        <Field label={t('sandboxes')} hint={t('sandboxesHint')}>
          {(p) => <Textarea {...p} rows={1} className="min-h-8!" placeholder="build-*" maxLength={255} value={fields.sandboxes}
            onChange={(e) => set({ sandboxes: e.target.value })} />}
        </Field>
        <div className="grid grid-cols-2 items-start gap-3">
          <Field label={t('expires')}>
            {(p) => (
              <Select {...p} value={fields.expiry} onChange={(e) => set({ expiry: e.target.value })}>
                {DAYS.map((n) => <option key={n} value={n}>{t('after', { count: n })}</option>)}
                <option value="other">{t('other')}</option>
                <option value="never">{t('never')}</option>
              </Select>
            )}
          </Field>
          {fields.expiry === 'other' && (
            <Field label={t('days')} error={touched && daysWrong ? t('daysWrong') : null}>
              {(p) => <Input {...p} inputMode="numeric" autoComplete="off" value={fields.days}
                onChange={(e) => set({ days: e.target.value.trim() })} />}
            </Field>
          )}
        </div>
        <label className="flex items-start gap-2 text-sm">
          <input type="checkbox" checked={fields.states} className="mt-0.5 size-4 accent-accent" onChange={(e) => set({ states: e.target.checked })} />
          {t('statesLabel')}
        </label>
        {make.error && <ErrorNote error={make.error} />}
      </form>
    </Dialog>
  );
}

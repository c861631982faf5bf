import { useState } from 'react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useNavigate } from 'react-router';
import { createSandbox, snapshotsQuery } from '@/api/lifecycle';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input, Select, Textarea } from '@/ui/field';
import { harmless } from '@/ui/plain-text';
import { toast, toastError } from '@/ui/toast';
import { check, type Fields, INITIAL, requestOf } from './request';

interface Props {
  onClose(): void;
  /** What the fields begin with. */
  initial?: Partial<Fields>;
  title?: string;
  note?: string;
  /** Done when the new one runs, before it is shown. */
  after?(): Promise<void>;
}

/** Asks what a new sandbox shall be, makes it, and leads to it. */
export default function CreateDialog({ onClose, initial, title, note, after }: Props) {
  const { t } = useTranslation('create');
  const { t: common } = useTranslation();
  const { moment } = useFormat();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [fields, setFields] = useState<Fields>({ ...INITIAL, ...initial });
  const [touched, setTouched] = useState(false);
  const { data: snapshots } = useQuery(snapshotsQuery());
  const ready = snapshots?.filter((s) => s.status.state === 'Ready') ?? [];
  const faults = check(fields);

  const make = useMutation({
    mutationFn: async () => {
      const id = await createSandbox(client, requestOf(fields));

      // it is made, and would be made again: what is left to do may fail
      await after?.().catch(toastError);
      return id;
    },
    onSuccess: (id) => {
      toast(t('created'));
      onClose();
      void navigate(`/sandboxes/${encodeURIComponent(id)}/history`);
    },
  });

  const set = (patch: Partial<Fields>) => setFields((now) => ({ ...now, ...patch }));
  const fault = (name: keyof typeof faults.fields) => (touched && faults.fields[name] ? t(`wrong.${name}`) : null);

  const submit = () => {
    setTouched(true);
    if (!faults.any && !make.isPending) {
      make.mutate();
    }
  };

  return (
    <Dialog open wide onOpenChange={(open) => { if (!open && !make.isPending) onClose(); }} title={title ?? t('title')} description={note}
      footer={(
        <>
          {make.isPending && <span role="status" className="mr-auto self-center text-sm text-dim">{t('busy')}</span>}
          <Button disabled={make.isPending} onClick={onClose}>{common('cancel')}</Button>
          <Button type="submit" form="create-sandbox" look="primary" busy={make.isPending}>{t('create')}</Button>
        </>
      )}
    >
      <form id="create-sandbox" noValidate className="grid items-start gap-3 sm:grid-cols-2" onSubmit={(e) => { e.preventDefault(); submit(); }}>
        <Field label={t('name')} hint={t('nameHint')} error={fault('name')}>
          {(p) => <Input {...p} autoFocus autoComplete="off" placeholder="data-cleaning-7" value={fields.name} onChange={(e) => set({ name: e.target.value })} />}
        </Field>
        <Field label={t('from')}>
          {(p) => (
            <Select {...p} value={fields.snapshot} onChange={(e) => set({ snapshot: e.target.value })}>
              <option value="">{t('fromImage')}</option>
              {fields.snapshot && !ready.some((s) => s.id === fields.snapshot) && <option value={fields.snapshot}>{fields.snapshot}</option>}
              {ready.map((s) => (
                <option key={s.id} value={s.id}>{t('fromSnapshot', { name: harmless(s.name ?? s.id), at: moment(s.createdAt) })}</option>
              ))}
            </Select>
          )}
        </Field>
        {!fields.snapshot && (
          <Field label={t('image')} error={fault('image')}>
            {(p) => <Input {...p} autoComplete="off" className="font-mono" placeholder="python:3.11" value={fields.image} onChange={(e) => set({ image: e.target.value })} />}
          </Field>
        )}
        <Field label={t('entrypoint')} hint={t('entrypointHint')} error={fault('entrypoint')}>
          {(p) => <Input {...p} autoComplete="off" className="font-mono" value={fields.entrypoint} onChange={(e) => set({ entrypoint: e.target.value })} />}
        </Field>
        <div className="grid grid-cols-3 items-start gap-3">
          <Field label={t('cpu')} error={fault('cpu')}>
            {(p) => <Input {...p} value={fields.cpu} onChange={(e) => set({ cpu: e.target.value })} />}
          </Field>
          <Field label={t('memory')} error={fault('memory')}>
            {(p) => <Input {...p} value={fields.memory} onChange={(e) => set({ memory: e.target.value })} />}
          </Field>
          <Field label={t('gpu')}>
            {(p) => <Input {...p} value={fields.gpu} onChange={(e) => set({ gpu: e.target.value })} />}
          </Field>
        </div>
        <Field label={t('minutes')} hint={t('minutesHint')} error={fault('minutes')}>
          {(p) => <Input {...p} inputMode="numeric" value={fields.minutes} onChange={(e) => set({ minutes: e.target.value.trim() })} />}
        </Field>
        <Field label={t('env')} hint={t('envHint')} error={faults.env === null ? null : t('envWrong', { line: faults.env })}>
          {(p) => <Textarea {...p} rows={2} className="min-h-14!" value={fields.env} onChange={(e) => set({ env: e.target.value })} />}
        </Field>
        <Field label={t('metadata')} hint={t('metadataHint')} error={faults.metadata === null ? null : t('metadataWrong', { line: faults.metadata })}>
          {(p) => <Textarea {...p} rows={2} className="min-h-14!" value={fields.metadata} onChange={(e) => set({ metadata: e.target.value })} />}
        </Field>
        <Field label={t('network')}>
          {(p) => (
            <Select {...p} value={fields.network} onChange={(e) => set({ network: e.target.value as Fields['network'] })}>
              {(['open', 'deny', 'allow'] as const).map((n) => <option key={n} value={n}>{t(`networks.${n}`)}</option>)}
            </Select>
          )}
        </Field>
        {fields.network !== 'open' && (
          <Field label={t(fields.network === 'deny' ? 'targetsAllowed' : 'targetsDenied')} hint={t('targetsHint')}>
            {(p) => <Textarea {...p} rows={2} className="min-h-14!" value={fields.targets} onChange={(e) => set({ targets: e.target.value })} />}
          </Field>
        )}
        {make.error && <div className="sm:col-span-2"><ErrorNote error={make.error} /></div>}
      </form>
    </Dialog>
  );
}

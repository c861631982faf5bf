// "Would this be allowed?"  What was asked stands in the address, so that a
// question can be sent to somebody.

import { useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import { CircleCheck, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { checkPolicy, type Judgement, type PolicyQuestion } from '@/api/policy';
import { ROLES } from '@/api/session';
import { cx } from '@/lib/cx';
import { pairs } from '@/lib/pairs';
import { choice, defineSearch, text } from '@/lib/search';
import { Button } from '@/ui/button';
import { ErrorNote } from '@/ui/error-note';
import { Field, Input, Select, Textarea } from '@/ui/field';
import { Recorded } from '@/ui/plain-text';
import { placesText, ruleAnchor } from './rules';

const OPERATIONS = [
  'file.write', 'file.read', 'file.delete', 'file.move', 'file.chmod', 'file.replace', 'file.search', 'dir.create',
  'dir.delete', 'dir.list', 'command.execute', 'command.interrupt', 'code.execute', 'pty.open', 'session.create', 'session.run',
  'sandbox.create', 'sandbox.delete', 'sandbox.pause', 'sandbox.resume', 'sandbox.renew', 'sandbox.metadata.patch',
];

const useSearch = defineSearch({
  operation: text(), path: text(), command: text(), actor: text(), role: choice(['', ...ROLES]), sandbox: text(),
  metadata: text(), image: text(), port: text(), size: text(), mode: text(), archive: text(),
});

const REST = ['metadata', 'image', 'port', 'size', 'mode', 'archive'] as const;
const WHOLE = /^\d+$/;

function Verdict({ item, number }: { item: Judgement; number: number }) {
  const { t } = useTranslation('policy');
  const denied = item.decision === 'deny';
  const Icon = denied ? CircleX : CircleCheck;

  const toRule = (line: number) => {
    const rule = document.getElementById(ruleAnchor(number, line));

    rule?.scrollIntoView({ block: 'center' });
    rule?.focus();
  };

  const ruleButton = (name: string, line: number) => (
    <button type="button" className="text-accent underline" onClick={() => toRule(line)}>
      <Recorded text={name} /> · {t('line', { line })}
    </button>
  );

  return (
    <div className={cx('grid gap-1 rounded-md border px-3 py-2 text-sm', denied ? 'border-bad bg-bad-tint' : 'border-good bg-good-tint')}>
      <p className={cx('flex items-center gap-1.5 font-medium', denied ? 'text-bad' : 'text-good')}>
        <Icon size={16} aria-hidden />{t(`decision.${item.decision}`)}
      </p>
      <p className="text-xs text-dim [overflow-wrap:anywhere]">{t('inForce', { places: placesText(item.places) })}</p>
      {item.rule !== null && item.line !== null && <p>{t('byRule')} {ruleButton(item.rule, item.line)}</p>}
      {item.rule === null && <p>{t('noPolicy')}</p>}
      {item.reason && <p><Recorded text={item.reason} className="whitespace-normal" /></p>}
      {item.path && <p className="[overflow-wrap:anywhere]">{t('becauseOf')} <Recorded text={item.path} /></p>}
      {item.limit && <p>{t('limit')}</p>}
      {item.unread && <p className="text-warn">{t('unread')}</p>}
      {item.observed && <p>{t('observed')} {ruleButton(item.observed.rule, item.observed.line)}</p>}
    </div>
  );
}

export function Check({ onSaid }: { onSaid(items: Judgement[] | null): void }) {
  const { t } = useTranslation('policy');
  const { t: common } = useTranslation();
  const [inAddress, setAddress] = useSearch();
  const [asked, setAsked] = useState(inAddress);
  const [more, setMore] = useState(REST.some((name) => asked[name] !== ''));
  const ask = useMutation({ mutationFn: checkPolicy, onSuccess: (a) => onSaid(a.items) });
  const metadata = pairs(asked.metadata);

  const number = (name: 'port' | 'size') => (asked[name] !== '' && !WHOLE.test(asked[name]) ? t('numberWrong') : null);
  const modeWrong = asked.mode !== '' && !/^[0-7]{1,4}$/.test(asked.mode) ? t('modeWrong') : null;
  const wrong = !asked.operation.trim() || metadata.wrong !== null || number('port') || number('size') || modeWrong;

  const set = (patch: Partial<typeof asked>) => {
    ask.reset();
    onSaid(null);
    setAsked({ ...asked, ...patch });
  };

  const submit = () => {
    if (wrong) {
      return;
    }

    const paths = asked.path.split('\n').filter((p) => p !== '');
    const question: PolicyQuestion = { operation: asked.operation.trim() };

    if (paths.length > 0) question.path = paths;
    if (asked.command) question.command = asked.command;
    if (asked.actor) question.actor = asked.actor.trim();
    if (asked.role) question.role = asked.role;
    if (asked.sandbox) question.sandbox = asked.sandbox.trim();
    if (asked.metadata.trim()) question.metadata = metadata.values;
    if (asked.image) question.image = asked.image.trim();
    if (asked.port) question.port = Number(asked.port);
    if (asked.size) question.size = Number(asked.size);
    if (asked.mode) question.mode = Number(asked.mode);
    if (asked.archive.trim()) question.archive = asked.archive.trim().split(/[\s,]+/);

    setAddress(asked, 'replace');
    ask.mutate(question);
  };

  return (
    <section aria-label={t('check')} className="min-w-0 rounded-md border max-lg:order-first">
      <h2 className="border-b bg-raised px-3 py-2 text-sm font-medium">{t('check')}</h2>
      <form className="grid gap-3 p-3" onSubmit={(e) => { e.preventDefault(); submit(); }}>
        <Field label={t('operation')} hint={t('operationHint')}>
          {(p) => <Input {...p} list="policy-operations" className="font-mono" autoComplete="off" placeholder="file.write"
            value={asked.operation} onChange={(e) => set({ operation: e.target.value })} />}
        </Field>
        <datalist id="policy-operations">{OPERATIONS.map((o) => <option key={o} value={o} />)}</datalist>
        <Field label={t('path')} hint={t('pathHint')}>
          {(p) => <Textarea {...p} rows={1} className="min-h-8!" placeholder="/workspace/.env" value={asked.path}
            onChange={(e) => set({ path: e.target.value })} />}
        </Field>
        <Field label={t('command')}>
          {(p) => <Textarea {...p} rows={1} className="min-h-8!" placeholder="rm -rf /" value={asked.command}
            onChange={(e) => set({ command: e.target.value })} />}
        </Field>
        <div className="grid grid-cols-2 items-start gap-3">
          <Field label={t('actor')}>
            {(p) => <Input {...p} placeholder="agent/etl-bot" value={asked.actor} onChange={(e) => set({ actor: e.target.value })} />}
          </Field>
          <Field label={t('role')}>
            {(p) => (
              <Select {...p} value={asked.role} onChange={(e) => set({ role: e.target.value as typeof asked.role })}>
                {(['', ...ROLES] as const).map((r) => <option key={r} value={r}>{r === '' ? t('notSaid') : common(`role.${r}`)}</option>)}
              </Select>
            )}
          </Field>
        </div>
        <Field label={t('sandbox')}>
          {(p) => <Input {...p} className="font-mono" value={asked.sandbox} onChange={(e) => set({ sandbox: e.target.value })} />}
        </Field>
        {more ? (
          <>
            <Field label={t('metadata')} hint={t('metadataHint')}
              error={metadata.wrong === null ? null : t('pairWrong', { line: metadata.wrong })}
            >
              {(p) => <Textarea {...p} rows={1} className="min-h-8!" placeholder="team=data" value={asked.metadata}
                onChange={(e) => set({ metadata: e.target.value })} />}
            </Field>
            <Field label={t('image')}>
              {(p) => <Input {...p} placeholder="python:3.11" value={asked.image} onChange={(e) => set({ image: e.target.value })} />}
            </Field>
            <div className="grid grid-cols-3 items-start gap-3">
              <Field label={t('port')} error={number('port')}>
                {(p) => <Input {...p} inputMode="numeric" value={asked.port} onChange={(e) => set({ port: e.target.value })} />}
              </Field>
              <Field label={t('size')} error={number('size')}>
                {(p) => <Input {...p} inputMode="numeric" value={asked.size} onChange={(e) => set({ size: e.target.value })} />}
              </Field>
              <Field label={t('mode')} error={modeWrong}>
                {(p) => <Input {...p} inputMode="numeric" placeholder="755" value={asked.mode} onChange={(e) => set({ mode: e.target.value })} />}
              </Field>
            </div>
            <Field label={t('archive')} hint={t('archiveHint')}>
              {(p) => <Input {...p} className="font-mono" placeholder="links, escapes" value={asked.archive}
                onChange={(e) => set({ archive: e.target.value })} />}
            </Field>
          </>
        ) : <div><Button size="sm" look="quiet" onClick={() => setMore(true)}>{t('more')}</Button></div>}
        <Button type="submit" look="primary" busy={ask.isPending} disabled={!!wrong}>{t('ask')}</Button>
        {ask.error && <ErrorNote error={ask.error} />}
        <div role="status" className="grid gap-2">
          {ask.data?.items.map((item, i) => <Verdict key={i} item={item} number={i} />)}
        </div>
      </form>
    </section>
  );
}

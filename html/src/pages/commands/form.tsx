import { type KeyboardEvent, type Ref, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react';
import { Play, SlidersHorizontal } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { CommandRequest } from '@/api/commands';
import { cx } from '@/lib/cx';
import { Button } from '@/ui/button';
import { Field, Input, Textarea } from '@/ui/field';

export interface FormHandle {
  /** Puts a command into the fields, to be changed; names of variables whose values are unknown. */
  fill(what: CommandRequest, missing?: readonly string[]): void;
}

interface Props {
  recent: readonly string[];
  disabled: boolean;
  onRun(what: CommandRequest): void;
  ref?: Ref<FormHandle>;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*=/;
const USER = /^(\d{1,9})(?::(\d{1,9}))?$/;

function variables(text: string): { envs: Record<string, string>; wrong: number | null } {
  const envs: Record<string, string> = {};

  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') {
      continue;
    }
    if (!NAME.test(line)) {
      return { envs, wrong: i + 1 };
    }
    const at = line.indexOf('=');
    envs[line.slice(0, at)] = line.slice(at + 1);
  }

  return { envs, wrong: null };
}

/** What is to be run, and how. */
export function CommandForm({ recent, disabled, onRun, ref }: Props) {
  const { t } = useTranslation('commands');
  const [command, setCommand] = useState('');
  const [cwd, setCwd] = useState('');
  const [timeout, setTimeout] = useState('');
  const [user, setUser] = useState('');
  const [env, setEnv] = useState('');
  const [missing, setMissing] = useState<readonly string[]>([]);
  const [background, setBackground] = useState(false);
  const [options, setOptions] = useState(false);
  const [back, setBack] = useState(-1);
  const field = useRef<HTMLTextAreaElement>(null);

  const seconds = Number(timeout);
  const timeoutWrong = timeout !== '' && !(seconds > 0);
  const userWrong = user !== '' && !USER.test(user);
  const { envs, wrong } = variables(env);
  const lacking = missing.filter((name) => !envs[name]);

  useImperativeHandle(ref, () => ({
    fill(what, names = []) {
      setCommand(what.command);
      setCwd(what.cwd ?? '');
      setTimeout(what.timeout ? String(what.timeout / 1000) : '');
      setUser([what.uid, what.gid].filter((n) => n !== undefined).join(':'));
      setBackground(what.background ?? false);
      setEnv([
        ...Object.entries(what.envs ?? {}).map(([name, value]) => `${name}=${value}`),
        ...names.map((name) => `${name}=`),
      ].join('\n'));
      setMissing(names);
      setOptions((open) => open || names.length > 0 || !!what.envs || !!what.cwd || !!what.timeout || what.uid !== undefined || !!what.background);
      field.current?.focus();
    },
  }), []);

  // what is disabled or hidden (a text is still on its way) when it appears
  // gets no focus then
  useLayoutEffect(() => {
    if (!disabled && document.activeElement === document.body) {
      field.current?.focus();
    }
  }, [disabled]);

  // what stands in the field, drawn already or not: who types quickly is not
  // made to press Enter twice
  const run = () => {
    const text = field.current?.value ?? command;

    if (disabled || text.trim() === '' || timeoutWrong || userWrong || wrong !== null) {
      return;
    }

    const [, uid, gid] = USER.exec(user) ?? [];

    onRun({
      command: text,
      ...(cwd.trim() ? { cwd: cwd.trim() } : {}),
      ...(timeout ? { timeout: Math.round(seconds * 1000) } : {}),
      ...(uid ? { uid: Number(uid) } : {}),
      ...(gid ? { gid: Number(gid) } : {}),
      ...(background ? { background } : {}),
      ...(Object.keys(envs).length > 0 ? { envs } : {}),
    });
    setCommand('');
    setBack(-1);

    // a phone has no room for both
    if (!matchMedia('(min-width: 768px)').matches) {
      setOptions(false);
    }
  };

  // as in a shell: what was run before comes back with the arrow
  const recall = (step: number) => {
    const to = Math.min(Math.max(back + step, -1), recent.length - 1);

    setBack(to);
    setCommand(to < 0 ? '' : recent[to]!);
  };

  const onKey = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if (e.nativeEvent.isComposing) {
      return;
    }

    if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      run();
    } else if (e.key === 'ArrowUp' && (back >= 0 || command === '')) {
      e.preventDefault();
      recall(1);
    } else if (e.key === 'ArrowDown' && back >= 0) {
      e.preventDefault();
      recall(-1);
    }
  };

  return (
    <form className="grid gap-2 border-b bg-raised px-4 py-3" onSubmit={(e) => { e.preventDefault(); run(); }}>
      <div className="flex items-start gap-2">
        <Textarea ref={field} autoFocus rows={Math.min(8, command.split('\n').length)} value={command} disabled={disabled}
          aria-label={t('command')} placeholder={t('placeholder')} autoCapitalize="off" autoComplete="off"
          className="min-h-8! flex-1 resize-none text-[13px]! leading-5 placeholder:truncate"
          onChange={(e) => { setCommand(e.target.value); setBack(-1); }} onKeyDown={onKey}
        />
        <Button aria-expanded={options} aria-label={t('options')} className={cx((options || cwd || timeout || user || env || background) && 'bg-tint')}
          icon={<SlidersHorizontal size={15} aria-hidden />} onClick={() => setOptions(!options)}
        />
        <Button type="submit" look="primary" disabled={disabled || command.trim() === '' || timeoutWrong || userWrong || wrong !== null}
          icon={<Play size={14} aria-hidden />}
        >
          {t('run')}
        </Button>
      </div>
      {options && (
        <div className="grid items-start gap-3 sm:grid-cols-[minmax(0,1fr)_130px] lg:grid-cols-[minmax(0,1fr)_130px_minmax(0,1.2fr)]">
          <Field label={t('cwd')}>
            {(p) => <Input {...p} value={cwd} placeholder={t('cwdDefault')} className="font-mono" onChange={(e) => setCwd(e.target.value)} />}
          </Field>
          <Field label={t('timeout')} error={timeoutWrong ? t('timeoutWrong') : null}>
            {(p) => <Input {...p} value={timeout} placeholder={t('timeoutNone')} inputMode="decimal" onChange={(e) => setTimeout(e.target.value)} />}
          </Field>
          <div className="sm:col-span-2 lg:col-span-1 lg:row-span-2">
            <Field label={t('env')} hint={lacking.length > 0 ? t('envMissing', { names: lacking.join(', ') }) : t('envHint')}
              error={wrong !== null ? t('envWrong', { line: wrong }) : null}
            >
              {(p) => <Textarea {...p} rows={2} value={env} className="min-h-14!" onChange={(e) => setEnv(e.target.value)} />}
            </Field>
          </div>
          <label className="flex items-center gap-2 self-center text-sm">
            <input type="checkbox" checked={background} className="size-4 accent-accent" onChange={(e) => setBackground(e.target.checked)} />
            {t('background')}
          </label>
          <Field label={t('user')} error={userWrong ? t('userWrong') : null}>
            {(p) => <Input {...p} value={user} placeholder="UID:GID" inputMode="numeric" onChange={(e) => setUser(e.target.value.trim())} />}
          </Field>
        </div>
      )}
    </form>
  );
}

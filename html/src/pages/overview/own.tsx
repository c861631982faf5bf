// The first page of who may see certain sandboxes only: the way to these.  What
// counts all sandboxes is refused then, and a list of them too.

import { useState } from 'react';
import { Box } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, useNavigate } from 'react-router';
import { useSession } from '@/api/session';
import { useTitle } from '@/lib/title';
import { Button } from '@/ui/button';
import { Card } from '@/ui/card';
import { Field, Input } from '@/ui/field';
import { Recorded } from '@/ui/plain-text';

const matches = (glob: string, id: string) =>
  new RegExp(`^${glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(id);

export function OwnSandboxes() {
  const { t } = useTranslation('overview');
  const { session } = useSession();
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const all = session?.sandboxes ?? [];
  const id = typed.trim();
  const other = id !== '' && !all.some((glob) => matches(glob, id));

  useTitle(t('own.title'));

  return (
    <div className="mx-auto grid w-full max-w-3xl gap-4 p-4">
      <h1 className="text-xl font-semibold">{t('own.title')}</h1>
      <p className="text-dim">{t('own.hint')}</p>
      <form className="flex items-end gap-2" onSubmit={(e) => {
        e.preventDefault();
        if (id !== '' && !other) {
          void navigate(`/sandboxes/${encodeURIComponent(id)}/history`);
        }
      }}
      >
        <div className="min-w-0 flex-1">
          <Field label={t('own.id')} error={other ? t('own.other') : null}>
            {(p) => <Input {...p} autoComplete="off" value={typed} onChange={(e) => setTyped(e.target.value)} />}
          </Field>
        </div>
        <Button type="submit" look="primary" disabled={id === '' || other} className={other ? 'mb-5' : ''}>{t('own.open')}</Button>
      </form>
      <Card title={t('own.list')}>
        <ul>
          {all.map((glob) => (
            <li key={glob} className="relative flex h-9 items-center gap-2 px-3 not-first:border-t hover:bg-raised">
              <Box size={15} aria-hidden className="shrink-0 text-dim" />
              {glob.includes('*') ? <Recorded text={glob} className="truncate text-dim" /> : (
                <Link to={`/sandboxes/${encodeURIComponent(glob)}/history`} className="min-w-0 truncate after:absolute after:inset-0">
                  <Recorded text={glob} />
                </Link>
              )}
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

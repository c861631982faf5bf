import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { ShieldOff } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Judgement, policyQuery } from '@/api/policy';
import { useTitle } from '@/lib/title';
import { Empty, Skeleton } from '@/ui/empty';
import { ErrorNote } from '@/ui/error-note';
import { Check } from './check';
import { Rules } from './rules';

export function Component() {
  const { t } = useTranslation('policy');
  const { data, error, refetch } = useQuery(policyQuery());
  const [said, setSaid] = useState<Judgement[] | null>(null);

  useTitle(t('title'));

  return (
    <div className="flex min-h-0 flex-col gap-3 p-4">
      <div>
        <h1 className="text-xl font-semibold">{t('title')}</h1>
        <p className="text-sm text-dim">{t('about')}</p>
      </div>
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(320px,400px)]">
        <div className="grid min-w-0 gap-4">
          {error && !data && <ErrorNote error={error} onRetry={() => void refetch()} />}
          {!data && !error && <Skeleton lines={10} />}
          {data?.items.length === 0 && <Empty icon={ShieldOff} title={t('none')}><p>{t('noneHint')}</p></Empty>}
          {data?.items.map((item, i) => (
            <Rules key={i} item={item} number={i} said={said?.[i] ?? null} />
          ))}
        </div>
        <Check onSaid={setSaid} />
      </div>
    </div>
  );
}

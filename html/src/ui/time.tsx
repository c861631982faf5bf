import { useEffect, useState } from 'react';
import { useFormat } from '@/lib/format';

/** A time, local; the exact one, in UTC too, on hover. */
export function Time({ at, as = 'moment', className }:
  { at: string; as?: 'moment' | 'clock' | 'relative'; className?: string }) {
  const format = useFormat();
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    if (as !== 'relative') {
      return undefined;
    }

    const timer = setInterval(() => setNow(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, [as]);

  return (
    <time dateTime={at} title={`${format.moment(at)}\n${at}`} className={className}>
      {as === 'relative' ? format.relative(at, now) : format[as](at)}
    </time>
  );
}

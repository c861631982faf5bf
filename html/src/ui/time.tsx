import { useEffect, useState } from 'react';
import { useFormat } from '@/lib/format';

// what stands behind the seconds of a clock: ".018"
const MILLISECONDS = 4;

interface Props {
  at: string;
  as?: 'moment' | 'clock' | 'relative';
  className?: string;
  /** How the milliseconds of a clock look. */
  finest?: string;
}

/** A time, local; the exact one, in UTC too, on hover. */
export function Time({ at, as = 'moment', className, finest }: Props) {
  const format = useFormat();
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    if (as !== 'relative') {
      return undefined;
    }

    const timer = setInterval(() => setNow(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, [as]);

  const text = as === 'relative' ? format.relative(at, now) : format[as](at);

  return (
    <time dateTime={at} title={`${format.moment(at)}\n${at}`} className={className}>
      {finest ? <>{text.slice(0, -MILLISECONDS)}<span className={finest}>{text.slice(-MILLISECONDS)}</span></> : text}
    </time>
  );
}

import type { Operation } from '@/api/types';

const SUMMARY = /^(?:(\d+) operations? not recorded)?(?:(?:, )?(\d[\d.]*)([KMGTPE]?) bytes of output not recorded)?(?:(?:: )?([a-z_]+))?$/;

/** How much a gap lacks and why, out of the sentence of its summary; null when it is another one. */
export function readGap(o: Operation): { operations: number; size: string; reason: string } | null {
  const found = SUMMARY.exec(o.summary ?? '');

  if (!o.summary || !found) {
    return null;
  }

  const [, operations, size, unit, reason] = found;

  return {
    operations: Number(operations ?? 0), reason: reason ?? o.reason ?? '',
    size: size ? `${size} ${unit}B` : '',
  };
}

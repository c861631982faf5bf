// How a reader likes rows to be: kept by the browser, not by the address.

import { useMemo } from 'react';
import { useStored, useStoredSome } from '@/lib/stored';

export const DENSITIES = ['normal', 'dense'] as const;

/** What may be left out of a row; how an operation ended never is. */
export const COLUMNS = ['time', 'source', 'type', 'size', 'sandbox', 'duration', 'output'] as const;
export type Column = (typeof COLUMNS)[number];

export interface RowView {
  dense: boolean;
  columns: ReadonlySet<Column>;
}

export function useRowView() {
  const [density, setDensity] = useStored('timeline.density', DENSITIES, 'normal');
  const [columns, setColumn] = useStoredSome('timeline.columns', COLUMNS);
  const view = useMemo<RowView>(() => ({ dense: density === 'dense', columns }), [density, columns]);

  return { view, density, setDensity, setColumn };
}

import type { Operation } from '@/api/types';

/** What a row is called: the command, the path, the image; its operation when there is none. */
export const operationTitle = (o: Operation): string => o.summary || o.file?.path || o.type;

/** Permalink of a record. */
export const operationLink = (o: Pick<Operation, 'id' | 'sandbox_id'>): string =>
  (o.sandbox_id === null || o.sandbox_id === '_gateway'
    ? `/history?op=${o.id}`
    : `/sandboxes/${encodeURIComponent(o.sandbox_id)}/history?op=${o.id}`);

import type { Operation } from '@/api/types';

// what a summary is where nothing better is known: the request line
const REQUEST_LINE = /^[A-Z]+ \//;

/** Of which the summary is what was run: never a request line. */
const RUNS = /^(?:command|code|session|isolated)\./;

/** What a row is called: the command, the path, the image; its operation when there is none. */
export const operationTitle = (o: Operation): string => {
  const said = o.summary || o.file?.path;

  return !said || (REQUEST_LINE.test(said) && !o.file && !RUNS.test(o.type)) ? o.type : said;
};

/** Permalink of a record. */
export const operationLink = (o: Pick<Operation, 'id' | 'sandbox_id'>): string =>
  (o.sandbox_id === null || o.sandbox_id === '_gateway'
    ? `/history?op=${o.id}`
    : `/sandboxes/${encodeURIComponent(o.sandbox_id)}/history?op=${o.id}`);

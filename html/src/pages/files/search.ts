import { choice, defineSearch, text } from '@/lib/search';

/** What the address says: what is open, where the tree begins, what is shown of it. */
export const useFilesSearch = defineSearch({
  path: text(),
  root: text(),
  view: choice(['file', 'versions']),
  version: text(),
});

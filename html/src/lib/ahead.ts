/** Loads a part that may be wanted soon: while it is not wanted, it is no error that it cannot be had. */
export function ahead(load: () => Promise<unknown>): void {
  if (navigator.onLine) {
    load().catch(() => undefined);
  }
}

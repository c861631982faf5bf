// The session lives in a cookie that no script sees; what is told here is that
// the gateway does not take it any more, and that it takes one again.  Between
// the two nothing is asked: it would be refused, and counted as a wrong try.

const onEnd = new Set<() => void>();
const onBegin = new Set<() => void>();
let over = false;

/** A request was refused for lack of a right credential. */
export function sessionEnded(): void {
  over = true;
  onEnd.forEach((f) => f());
}

/** Somebody has signed in. */
export function sessionBegun(): void {
  over = false;
  onBegin.forEach((f) => f());
}

export const sessionIsOver = (): boolean => over;

function listen(all: Set<() => void>, f: () => void): () => void {
  all.add(f);
  return () => void all.delete(f);
}

export const onSessionEnd = (f: () => void) => listen(onEnd, f);
export const onSessionBegin = (f: () => void) => listen(onBegin, f);

// The session lives in a cookie that no script sees; what is told here is that
// the gateway does not take it any more.

const listeners = new Set<() => void>();

/** A request was refused for lack of a right credential. */
export function sessionEnded(): void {
  listeners.forEach((f) => f());
}

export function onSessionEnd(f: () => void): () => void {
  listeners.add(f);
  return () => void listeners.delete(f);
}

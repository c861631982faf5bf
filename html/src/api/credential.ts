// What goes along with each request.  A session lives in a cookie that no
// script sees; a gateway without sessions gets the token itself, kept for as
// long as this tab is open.

const KEY = 'sandbox-gateway.token';
const listeners = new Set<() => void>();

function stored(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

let token = stored();

export function setToken(value: string | null): void {
  token = value;

  try {
    if (value === null) {
      sessionStorage.removeItem(KEY);
    } else {
      sessionStorage.setItem(KEY, value);
    }
  } catch {
    // it lasts until the page is loaded again
  }
}

export const hasToken = () => token !== null;

export const credential = (): Record<string, string> =>
  (token === null ? {} : { Authorization: `Bearer ${token}` });

/** A request was refused for lack of a right credential. */
export function sessionEnded(): void {
  listeners.forEach((f) => f());
}

export function onSessionEnd(f: () => void): () => void {
  listeners.add(f);
  return () => void listeners.delete(f);
}

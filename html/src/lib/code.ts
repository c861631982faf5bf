function take(): string | null {
  const found = /^#code=([^&]+)$/.exec(location.hash);

  if (!found) {
    return null;
  }

  history.replaceState(history.state, '', location.pathname + location.search);
  return decodeURIComponent(found[1]!);
}

/** The code of `…/console/#code=`, out of the address before anything else sees it; null when there is none. */
export const oneTimeCode = take();

// Where the console is mounted.  index.html says it relative to its own
// address, and that is taken once: the address changes later, the mount does not.

export const mount = import.meta.env.DEV
  ? new URL(import.meta.env.BASE_URL, location.origin)
  : new URL('.', document.baseURI);

const base = document.querySelector('base');

if (base) {
  base.href = mount.href;
}

/** Path of the mount without its last slash: what the router takes off. */
export const basename = mount.pathname.replace(/\/$/, '') || '/';

/** The console API. */
export const apiRoot = new URL('api/v1/', mount);

/** The intercepted OpenSandbox API of the same gateway. */
export const sandboxRoot = new URL('../v1/', mount);

/** What an SDK is given as its domain: this gateway as this browser reaches it. */
export const gatewayDomain = mount.host + new URL('..', mount).pathname.replace(/\/$/, '');

export const gatewayProtocol = mount.protocol.replace(':', '');

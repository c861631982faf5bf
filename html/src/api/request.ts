// One way to ask the gateway: the console API and the intercepted OpenSandbox
// routes, with the session's credential and errors as ApiError.

import { apiRoot, sandboxRoot } from '@/lib/mount';
import { sessionEnded, sessionIsOver } from './credential';
import { ApiError, errorOf } from './errors';

type Value = string | number | boolean | null | undefined;

/** Query parameters; null, undefined and '' are left out, a list is given several times. */
export type Params = Record<string, Value | readonly Value[]>;

export interface Options {
  method?: string;
  params?: Params;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is: a form, a file. */
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The caller deals with 401 itself. */
  keepSession?: boolean;
}

export function query(params: Params = {}): string {
  const q = new URLSearchParams();

  for (const [key, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') {
        q.append(key, String(one));
      }
    }
  }

  const text = q.toString();
  return text && `?${text}`;
}

/** A path with its variable parts escaped: path`sandboxes/${id}/live`. */
export const path = (parts: TemplateStringsArray, ...values: (string | number)[]): string =>
  parts.reduce((all, part, i) => all + encodeURIComponent(String(values[i - 1])) + part);

/** Address of a console API route, for links and downloads. */
export const apiUrl = (route: string, params?: Params): string =>
  new URL(route + query(params), apiRoot).href;

/** Address of an intercepted lifecycle route. */
export const sandboxUrl = (route: string, params?: Params): string =>
  new URL(route + query(params), sandboxRoot).href;

/** Address of a route of a sandbox's execd (files, commands, terminals), recorded like any client's. */
export const execdUrl = (id: string, route: string, params?: Params): string =>
  sandboxUrl(path`sandboxes/${id}/proxy/44772/` + route, params);

/** Asks; an answer of 200 to 299, or an ApiError. */
export async function request(url: string, o: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...o.headers };
  let body = o.body;

  if (o.json !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(o.json);
  }

  if (sessionIsOver() && !o.keepSession) {
    throw new ApiError(401, 'GATEWAY_UNAUTHENTICATED', '');
  }

  let response: Response;

  try {
    response = await fetch(url, {
      method: o.method ?? (body === undefined ? 'GET' : 'POST'),
      headers,
      body,
      signal: o.signal,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
    });
  } catch (e) {
    if (o.signal?.aborted) {
      throw e;
    }
    throw new ApiError(0, 'NETWORK', '');
  }

  if (response.ok) {
    return response;
  }

  const error = await errorOf(response);

  if (error.status === 401 && !o.keepSession) {
    sessionEnded();
  }

  throw error;
}

/** A body as it is read; one that breaks off is no answer. */
export async function wholeOf<T>(body: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await body;
  } catch (e) {
    throw signal?.aborted || e instanceof ApiError ? e : new ApiError(0, 'NETWORK', '');
  }
}

async function json<T>(url: string, o: Options): Promise<T> {
  const response = await request(url, o);
  const text = await wholeOf(response.text(), o.signal);

  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** A route of the console API. */
export const api = <T>(route: string, o: Options = {}) => json<T>(apiUrl(route, o.params), o);

/** A lifecycle route, intercepted. */
export const lifecycle = <T>(route: string, o: Options = {}) => json<T>(sandboxUrl(route, o.params), o);

/** A route of a sandbox's execd, intercepted. */
export const execd = <T>(id: string, route: string, o: Options = {}) =>
  json<T>(execdUrl(id, route, o.params), o);

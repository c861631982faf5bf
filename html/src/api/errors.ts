/** An answer that is none: what the envelope said, or what went wrong instead of one. */
export class ApiError extends Error {
  constructor(
    /** HTTP status; 0 when there was no answer at all. */
    readonly status: number,
    /** GATEWAY_… or OpenSandbox's code; NETWORK when there was no answer, HTTP when it was not in an envelope. */
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
    /** Seconds after which it makes sense to ask again, if the gateway has said so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Is it refused because the token is for certain sandboxes only, not for its role? */
  get limited(): boolean {
    return this.code === 'GATEWAY_FORBIDDEN' && /certain sandboxes/.test(this.message);
  }

  /** Would the same request have a chance a moment later? */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 502;
  }
}

/** The error that an answer carries. */
export async function errorOf(response: Response): Promise<ApiError> {
  const after = Number(response.headers.get('Retry-After') ?? NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  const body = await response.text().catch(() => '');

  try {
    const { code, message, details } = JSON.parse(body) as Record<string, unknown>;

    if (typeof code === 'string' && typeof message === 'string') {
      return new ApiError(response.status, code, message,
        (details ?? {}) as Record<string, unknown>, retryAfter);
    }
  } catch {
    // not one of ours: the status has to do
  }

  return new ApiError(response.status, 'HTTP', body.slice(0, 300), {}, retryAfter);
}

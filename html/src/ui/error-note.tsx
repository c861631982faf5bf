import { CircleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { TFunction } from 'i18next';
import { ApiError } from '@/api/errors';
import { duration } from '@/lib/format';
import { Button } from './button';
import { harmless } from './plain-text';

const KNOWN = [
  'GATEWAY_RECORDER_UNAVAILABLE', 'GATEWAY_OVERLOADED', 'GATEWAY_FORBIDDEN', 'GATEWAY_POLICY_DENIED',
  'GATEWAY_LOCK_TIMEOUT', 'GATEWAY_UPSTREAM_UNAVAILABLE', 'GATEWAY_UNAUTHENTICATED', 'GATEWAY_NOT_FOUND',
  'GATEWAY_BUSY', 'GATEWAY_PRECONDITION_FAILED', 'GATEWAY_LIMIT_EXCEEDED', 'GATEWAY_WRONG_HOST',
  'GATEWAY_INVALID_PARAMETER', 'GATEWAY_LAST_ADMIN', 'GATEWAY_UNSUPPORTED', 'NETWORK', 'FILE_NOT_FOUND', 'PATH_EXPANDS', 'RUNTIME_ERROR',
] as const;

const told = (v: unknown): string | null => (typeof v === 'string' && v !== '' ? harmless(v) : null);

/** Refusals say who or what is in the way, and where. */
function refusal(t: TFunction, { code, details }: ApiError): string | null {
  if (code === 'GATEWAY_POLICY_DENIED' && told(details.rule) && told(details.path)) {
    return t('errors.denied', { rule: told(details.rule), path: told(details.path), line: details.line });
  }

  const holder = (details.holder ?? {}) as Record<string, unknown>;

  if (code === 'GATEWAY_LOCK_TIMEOUT' && told(details.key) && told(holder.actor)) {
    return t('errors.locked', { actor: told(holder.actor), path: told(details.key), waited: duration(Number(details.waited_ms)) });
  }

  return null;
}

/** A code alone, in a sentence where there is one. */
export function codeText(t: TFunction, code: string): string {
  const known = KNOWN.find((c) => c === code);

  return known ? t(`errors.${known}`) : harmless(code);
}

/** What went wrong and what to do, in a sentence of the reader's language. */
export function errorText(t: TFunction, e: unknown): { text: string; detail: string | null } {
  if (!(e instanceof ApiError)) {
    return { text: t('errors.unexpected'), detail: harmless(e instanceof Error ? e.message : String(e)) };
  }

  const code = KNOWN.find((c) => c === e.code);
  const said = [e.message, e.code === 'HTTP' || e.code === 'NETWORK' ? '' : e.code]
    .filter(Boolean).join(' · ');

  return {
    text: e.limited ? t('errors.limited') : refusal(t, e) ?? (code ? t(`errors.${code}`) : t('errors.status', { status: e.status })),
    detail: told(said),
  };
}

/** An error in its place: what happened, what the gateway said of it, and a way on. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  const { text, detail } = errorText(t, error);

  return (
    <div role="alert" className="flex items-start gap-2 rounded-md border border-bad bg-bad-tint px-3 py-2 text-sm">
      <CircleAlert size={16} aria-hidden className="mt-0.5 shrink-0 text-bad" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{text}</p>
        {detail && <p className="recorded text-dim [overflow-wrap:anywhere]">{detail}</p>}
      </div>
      {onRetry && <Button size="sm" onClick={onRetry}>{t('retry')}</Button>}
    </div>
  );
}

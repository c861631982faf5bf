// Short notes about what has just happened; errors stay until they are closed.

import { useSyncExternalStore } from 'react';
import { CircleCheck, CircleAlert, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { errorText } from './error-note';

interface Note { id: number; text: string; error: unknown }

const SHOWN = 4;
const STAYS = 5_000;

let notes: Note[] = [];
let last = 0;
const listeners = new Set<() => void>();

function put(next: Note[]) {
  notes = next.slice(-SHOWN);
  listeners.forEach((f) => f());
}

const close = (id: number) => put(notes.filter((n) => n.id !== id));

/** Says that something is done. */
export function toast(text: string): void {
  const id = ++last;
  put([...notes, { id, text, error: null }]);
  setTimeout(() => close(id), STAYS);
}

/** Says that something went wrong, and why. */
export function toastError(error: unknown): void {
  put([...notes, { id: ++last, text: '', error }]);
}

function subscribe(f: () => void) {
  listeners.add(f);
  return () => void listeners.delete(f);
}

export function Toasts() {
  const { t } = useTranslation();
  const shown = useSyncExternalStore(subscribe, () => notes);

  return (
    <div role="status" aria-live="polite" className="fixed bottom-3 right-3 z-60 grid w-[min(380px,calc(100vw-24px))] gap-2">
      {shown.map((n) => {
        const said = n.error === null ? null : errorText(t, n.error);

        return (
          <div key={n.id} className="flex items-start gap-2 rounded-md border border-strong bg-bg px-3 py-2 text-sm">
            {said
              ? <CircleAlert size={16} aria-hidden className="mt-0.5 shrink-0 text-bad" />
              : <CircleCheck size={16} aria-hidden className="mt-0.5 shrink-0 text-good" />}
            <div className="min-w-0 flex-1">
              <p>{said ? said.text : n.text}</p>
              {said?.detail && <p className="recorded text-dim [overflow-wrap:anywhere]">{said.detail}</p>}
            </div>
            <button type="button" aria-label={t('close')} title={t('close')}
              className="text-dim hover:text-text" onClick={() => close(n.id)}
            >
              <X size={16} aria-hidden />
            </button>
          </div>
        );
      })}
    </div>
  );
}

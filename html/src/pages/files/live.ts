// The pages follow what happens in the sandbox: each operation that may have
// changed files makes what is shown of them be asked again.

import { useCallback, useEffect, useRef } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { useLive } from '@/api/live';
import { useLocksFollowed } from '@/api/locks';
import { liveRoute } from '@/api/queries';
import type { LiveEvent } from '@/api/types';
import { parentOf } from './paths';

const CHANGING = ['file.write', 'file.delete', 'file.move', 'file.chmod', 'file.replace', 'dir.create', 'dir.delete',
  'command.execute', 'command.logs', 'code.execute', 'session.run', 'pty.*', 'sandbox.*', 'snapshot.*', 'isolated.*',
  'lease'];
const AT_MOST_EVERY = 400;

/** Asks again for what an operation may have changed. */
export function useFollow(id: string): void {
  const client = useQueryClient();
  const { onEvent: onLock, onState } = useLocksFollowed(id);
  const folders = useRef(new Set<string>());
  const all = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  useEffect(() => () => clearTimeout(timer.current), []);

  const ask = useCallback(() => {
    timer.current = undefined;

    const some = new Set(folders.current);
    const any = all.current;

    folders.current.clear();
    all.current = false;
    void client.invalidateQueries({
      predicate: ({ queryKey: [area, of, what, path] }) => {
        if (area !== 'files' || of !== id || what === 'content') {
          return false;
        }

        return any || some.has(String(path));
      },
    });
  }, [client, id]);

  const onEvent = useCallback((e: LiveEvent) => {
    onLock(e);

    if (e.event === 'operation' && e.data.phase === 'completed' && e.data.file && e.data.type !== 'dir.delete') {
      for (const path of [e.data.file.path, e.data.file.old_path]) {
        if (path) {
          folders.current.add(path).add(parentOf(path));
        }
      }
    } else if (e.event === 'output' || e.event === 'lock' || (e.event === 'operation' && e.data.phase === 'started')) {
      return;
    } else {
      all.current = true;
    }

    timer.current ??= setTimeout(ask, AT_MOST_EVERY);
  }, [ask, onLock]);

  useLive({ route: liveRoute(id), params: { type: CHANGING, output: 0 }, onEvent, onState });
}

/** Tells the pages of a mirror what is going on now, each second in which something changed. */
import type { Clock } from '../domain/clock.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import type { PageRequest } from './view/page.ts';
import { jobPieces } from './view/job-progress.ts';
import { limitPieces } from './pages/limits.ts';
import { statusPieces } from './pages/overview.ts';

/** An event for the browser: the HTML of the parts of the page that changed, by their ids. */
export interface LiveEvent {
  event: 'parts';
  data: Record<string, string>;
}

type Send = (event: LiveEvent) => Promise<void>;

interface Listener {
  request: PageRequest;
  send: Send;
  shown: Map<string, string>;
}

const everyMs = 1_000;

/**
 * Returns a function that adds a listener and returns a function that removes it. The status is
 * read once a second for all listeners, and not at all without one.
 */
export function watchMirror(
  mirror: ConsoleMirror,
  clock: Clock,
): (request: PageRequest, send: Send) => () => void {
  const listeners = new Set<Listener>();
  let isWatching = false;
  const tellAll = async (): Promise<void> => {
    const seen = mirror.status();
    for (const listener of listeners) {
      const data: Record<string, string> = {};
      const { request } = listener;
      const pieces = {
        ...statusPieces(request, seen),
        ...limitPieces(request, seen),
        ...jobPieces(request),
      };
      for (const [id, piece] of Object.entries(pieces)) {
        const text = String(await piece);
        if (listener.shown.get(id) !== text) data[id] = text;
        listener.shown.set(id, text);
      }
      if (Object.keys(data).length === 0) continue;
      await listener.send({ event: 'parts', data }).catch(() => listeners.delete(listener));
    }
  };
  const watch = async (): Promise<void> => {
    isWatching = true;
    try {
      while (listeners.size > 0) {
        await tellAll();
        await clock.sleep(everyMs);
      }
    } finally {
      isWatching = false;
    }
  };
  return (request, send) => {
    const listener: Listener = { request, send, shown: new Map() };
    listeners.add(listener);
    if (!isWatching) void watch();
    return () => void listeners.delete(listener);
  };
}

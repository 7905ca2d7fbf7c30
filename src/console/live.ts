/** Tells the pages of a mirror what is going on now, each second in which something changed. */
import type { Clock } from '../domain/clock.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import { html, type Html } from '../views/render/html.ts';
import { orFault, type PageRequest } from './view/page.ts';
import { jobPieces } from './view/form.ts';
import { limitPieces, runProgress, statusPieces } from './pages/overview.ts';

/** An event for the browser: the HTML of the parts of the page that changed, by their ids. */
interface LiveEvent {
  event: 'parts';
  data: Record<string, string>;
}

/** A page that is open in a browser. */
export interface OpenPage {
  request: PageRequest;
  send(event: LiveEvent): Promise<void>;
  close(): void;
  /** Returns whether the user may still see the page, as the one who opened it. */
  isLetIn(): Promise<boolean>;
}

interface Listener extends OpenPage {
  shown: Map<string, string>;
  /** Whether the browser has not taken the last event yet. */
  isSending: boolean;
}

const everyMs = 1_000;
const bugText = 'This is a bug. The log of this process describes it.';

/**
 * Returns a function that adds an open page and returns a function that removes it. The status is
 * read once a second for all pages, and not at all without one. A status that cannot be read is
 * shown as such, until it can be read again. `failed` is called with each bug.
 */
export function watchMirror(
  mirror: ConsoleMirror,
  { clock, failed }: { clock: Clock; failed(error: unknown): void },
): (page: OpenPage) => () => void {
  const listeners = new Set<Listener>();
  let isWatching = false;
  // A bug that occurs each second is reported once.
  let isBroken = false;
  const piecesFor = async (request: PageRequest): Promise<Map<string, string>> => {
    try {
      const seen = orFault(() => mirror.status());
      const pieces =
        'fault' in seen
          ? faultPieces(seen.fault)
          : {
              ...statusPieces(request, await mirror.statusAndNext()),
              ...limitPieces(request, seen),
              'run-progress': runProgress(seen.status),
            };
      const texts = await textsOf({ ...pieces, ...jobPieces(request) });
      isBroken = false;
      return texts;
    } catch (error) {
      if (!isBroken) failed(error);
      isBroken = true;
      return textsOf(faultPieces(bugText));
    }
  };
  const tell = async (listener: Listener): Promise<void> => {
    if (!(await listener.isLetIn().catch(() => false))) {
      listeners.delete(listener);
      listener.close();
      return;
    }
    if (listener.isSending) return;
    const data: Record<string, string> = {};
    for (const [id, text] of await piecesFor(listener.request)) {
      if (listener.shown.get(id) !== text) data[id] = text;
      listener.shown.set(id, text);
    }
    if (Object.keys(data).length > 0) send(listener, data);
  };
  // A browser that reads slowly keeps no other one waiting.
  const send = (listener: Listener, data: LiveEvent['data']): void => {
    listener.isSending = true;
    void listener.send({ event: 'parts', data }).then(
      () => (listener.isSending = false),
      () => listeners.delete(listener),
    );
  };
  const watch = async (): Promise<void> => {
    isWatching = true;
    try {
      while (listeners.size > 0) {
        for (const listener of listeners) await tell(listener);
        await clock.sleep(everyMs);
      }
    } finally {
      isWatching = false;
    }
  };
  return (page) => {
    const listener: Listener = { ...page, shown: new Map(), isSending: false };
    listeners.add(listener);
    if (!isWatching) watch().catch(failed);
    return () => void listeners.delete(listener);
  };
}

function faultPieces(fault: string): Record<string, Html> {
  const piece = html`<p class="flash bad">${fault}</p>`;
  return { state: piece, 'limits-run': piece };
}

async function textsOf(pieces: Readonly<Record<string, Html>>): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const [id, piece] of Object.entries(pieces)) texts.set(id, String(await piece));
  return texts;
}

/** How many pages of one user may be live at once. */
const mostPages = 20;

/**
 * Returns a function that counts an open page of a user. It returns a function that stops counting
 * the page, or undefined if the user has too many.
 */
export function limitPages(): (user: string) => (() => void) | undefined {
  const open = new Map<string, number>();
  return (user) => {
    const now = open.get(user) ?? 0;
    if (now >= mostPages) return undefined;
    open.set(user, now + 1);
    return () => {
      const left = (open.get(user) ?? 0) - 1;
      if (left > 0) open.set(user, left);
      else open.delete(user);
    };
  };
}

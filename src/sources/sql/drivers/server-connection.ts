/** The connection to a server: asked one thing at a time, let go of whatever happens. */
import { Socket } from 'node:net';
import type { Clock } from '../../../domain/clock.ts';
import type { ServerPlace } from './database-address.ts';
import { failureOf } from './database-failure.ts';
import type { Opening } from './read-session.ts';

/** Where the server is, and how to get in. */
export interface ServerAccess extends ServerPlace {
  /** Undefined: not encrypted. Without `ca` those are believed that Node.js believes. */
  tls: { ca?: string } | undefined;
}

/** Who asks for a stop or says farewell does not wait for long. */
export const BRIEF_MS = 3_000;

/** More than the server is given for a statement: it is to say itself that it took too long. */
const GRACE_MS = 5_000;

/** How long the client waits for an answer before it takes the connection for dead. */
export function patienceOf(timeoutMs: number): number {
  return timeoutMs + GRACE_MS;
}

export interface ServerConnection {
  readonly socket: Socket;
  /** What went wrong on the way as one of the errors; the signal's reason once it is aborted. */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Has the server told to stop when somebody aborts while it computes. */
  onAbort(cancel: () => Promise<void>): void;
  /** Never throws. */
  close(farewell?: () => Promise<void>): Promise<void>;
}

export function createServerConnection(name: string, { signal, clock }: Opening): ServerConnection {
  const socket = new Socket();
  // The drivers' own listeners come and go with what they do.
  socket.on('error', () => undefined);
  let asked: PromiseWithResolvers<never> | undefined;
  let cancel: (() => Promise<void>) | undefined;
  let busy = false;
  let canceled: Promise<void> | undefined;
  const end = () => void socket.destroy();
  const abort = () => {
    asked?.reject(signal.reason);
    canceled = busy ? cancel?.().catch(() => undefined) : undefined;
    if (canceled) void canceled.finally(end);
    else end();
  };
  signal.addEventListener('abort', abort, { once: true });
  return {
    socket,
    async ask(work) {
      signal.throwIfAborted();
      // Between two questions it keeps no process alive whose reader went away.
      socket.ref();
      busy = true;
      // One for each question: a promise that lives on keeps whatever it was raced against.
      asked = Promise.withResolvers();
      try {
        return await Promise.race([work(), asked.promise]);
      } catch (error) {
        signal.throwIfAborted();
        throw failureOf(error, name);
      } finally {
        busy = false;
        asked = undefined;
        socket.unref();
      }
    },
    onAbort: (how) => void (cancel = how),
    async close(farewell) {
      signal.removeEventListener('abort', abort);
      await canceled;
      if (!signal.aborted && farewell) await brief(farewell, clock);
      end();
    },
  };
}

/** A server that does not answer any more does not answer a farewell either. */
async function brief(farewell: () => Promise<void>, clock: Clock): Promise<void> {
  const enough = new AbortController();
  const waited = clock.sleep(BRIEF_MS, enough.signal).catch(() => undefined);
  await Promise.race([farewell().catch(() => undefined), waited]);
  enough.abort();
}

/** The connection to a server. It answers one question at a time and is always released. */
import { Socket } from 'node:net';
import type { Clock } from '../../../domain/clock.ts';
import type { ServerPlace } from './database-address.ts';
import { failureOf } from './database-failure.ts';
import type { Opening } from './database-session.ts';

/** Where the server is, and how to get access. */
export interface ServerAccess extends ServerPlace {
  /** Undefined: not encrypted. Without `ca` the authorities that Node.js trusts count. */
  tls: { ca?: string } | undefined;
}

/** The longest wait for a cancellation or a farewell. */
export const BRIEF_MS = 3_000;

/**
 * The client waits longer than the server's own limit, so that the server reports a slow statement.
 */
const GRACE_MS = 5_000;

/** Returns the milliseconds after which the client takes the connection for dead. */
export function patienceOf(timeoutMs: number): number {
  return timeoutMs + GRACE_MS;
}

/** The connection to one server. */
export interface ServerConnection {
  readonly socket: Socket;
  /** Runs `work`. Throws failures as errors of ours, and the signal's reason once it is aborted. */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Sets how the server is told to stop when the signal is aborted during a statement. */
  onAbort(cancel: () => Promise<void>): void;
  /** Ends the connection. Never throws. */
  close(farewell?: () => Promise<void>): Promise<void>;
}

/** Creates a connection that is not open yet; `name` is for messages. */
export function createServerConnection(name: string, { signal, clock }: Opening): ServerConnection {
  const socket = new Socket();
  // The drivers add and remove their own listeners.
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
      // Between two questions an abandoned reader must not keep the process alive.
      socket.ref();
      busy = true;
      // Each question has its own promise, because a long-lived one keeps everything that it was
      // raced against.
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

/**
 * Says farewell, but not for long: a server that does not answer any more does not answer a
 * farewell either.
 */
async function brief(farewell: () => Promise<void>, clock: Clock): Promise<void> {
  const enough = new AbortController();
  const waited = clock.sleep(BRIEF_MS, enough.signal).catch(() => undefined);
  await Promise.race([farewell().catch(() => undefined), waited]);
  enough.abort();
}

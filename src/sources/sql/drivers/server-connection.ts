/** Manages the connection to a server. It runs one operation at a time and is always released. */
import { Socket } from 'node:net';
import type { ServerPlace } from './database-address.ts';
import { failureOf } from './database-failure.ts';
import type { Opening } from './database-session.ts';

export interface ServerAccess extends ServerPlace {
  /** The encryption settings, if any; without `ca`, the authorities of Node.js apply. */
  tls: { ca?: string } | undefined;
}

/** The longest wait for a cancellation or for a clean disconnect. */
export const BRIEF_MS = 3_000;

/** The client waits longer than the server, so that the server reports a slow statement. */
const GRACE_MS = 5_000;

/** Returns the milliseconds after which the client considers the connection dead. */
export function patienceOf(timeoutMs: number): number {
  return timeoutMs + GRACE_MS;
}

export type ServerConnection = ReturnType<typeof createServerConnection>;

/** Creates a connection that is not yet open; `name` is for messages. */
export function createServerConnection(name: string, { signal, clock }: Opening) {
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
    /** Runs `work`. Throws this project's errors, and the signal's reason once it is aborted. */
    async ask<T>(work: () => Promise<T>): Promise<T> {
      signal.throwIfAborted();
      // Between two operations, an abandoned reader must not keep the process alive.
      socket.ref();
      busy = true;
      // Each operation has its own promise, because a long-lived one retains everything that it was
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
    /** Sets the function that stops the server when the signal is aborted during a statement. */
    onAbort: (how: () => Promise<void>) => void (cancel = how),
    /** Closes the connection. Never throws. */
    async close(farewell: () => Promise<void>): Promise<void> {
      signal.removeEventListener('abort', abort);
      await canceled;
      if (!signal.aborted) {
        // A server that no longer responds does not respond to the disconnect either.
        const enough = new AbortController();
        const waited = clock.sleep(BRIEF_MS, enough.signal).catch(() => undefined);
        await Promise.race([farewell().catch(() => undefined), waited]);
        enough.abort();
      }
      end();
    },
  };
}

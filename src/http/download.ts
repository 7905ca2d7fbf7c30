/**
 * Downloads a file as a stream, whatever the status, and follows no redirect. Holds a few chunks;
 * the sender waits while nothing is read. Yields all that arrived before a failure, then throws.
 */
import { Pool, type Dispatcher } from 'undici';
import { describe, type Stage, flatten } from './send-request.ts';

const HELD_BYTES = 256 * 1024;

interface DownloadRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The longest wait for a connection, for the response, and between two of its chunks. */
  timeoutMs: number;
}

export interface Download {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** The body, which can be read once. Throws Unavailable if the response is cut off. */
  body: AsyncIterable<Buffer>;
  close(): Promise<void>;
}

/** Starts a download. Throws Unavailable if no response begins, and the signal's reason. */
export async function download(
  { url, headers, timeoutMs }: DownloadRequest,
  signal: AbortSignal,
): Promise<Download> {
  signal.throwIfAborted();
  const { origin, host, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connections: 1,
    pipelining: 1,
    allowH2: false,
    connectTimeout: timeoutMs,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
  const flow = createFlow(host, signal);
  const stop = () => flow.fail(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const close = () => {
    signal.removeEventListener('abort', stop);
    return pool.destroy();
  };
  pool.dispatch({ method: 'GET', path: pathname + search, headers: { ...headers } }, flow.listener);
  try {
    return { ...(await flow.begun), body: flow.body(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function createFlow(host: string, signal: AbortSignal) {
  const begun = Promise.withResolvers<{ status: number; headers: Download['headers'] }>();
  const held: Buffer[] = [];
  let bytes = 0;
  let missing = Number.NaN;
  let stage: Stage = 'waiting';
  let over: { reason?: unknown } | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let arrived = Promise.withResolvers<void>();
  const finish = (how: { reason?: unknown }) => {
    over ??= how;
    arrived.resolve();
  };
  const fail = (reason: unknown) => {
    finish({ reason });
    begun.reject(reason);
  };
  const listener: Parameters<Pool['dispatch']>[1] = {
    onRequestStart(given) {
      controller = given;
      stage = 'written';
    },
    onResponseStart(_, status, headers) {
      if (status < 200) return;
      stage = 'answering';
      const flat = flatten(headers);
      missing = Number(flat['content-length'] ?? Number.NaN);
      begun.resolve({ status, headers: flat });
    },
    onResponseData(given, chunk) {
      held.push(chunk);
      bytes += chunk.length;
      missing -= chunk.length;
      if (bytes > HELD_BYTES) given.pause();
      arrived.resolve();
    },
    onResponseEnd: () => finish({}),
    onResponseError(_, error) {
      // The sender may hang up after the last byte, before a slow reader has noticed the end.
      if (missing === 0 && !signal.aborted) finish({});
      else fail(signal.aborted ? signal.reason : describe(error, host, stage));
    },
  };
  async function* body(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = held.shift();
      if (chunk) {
        bytes -= chunk.length;
        if (bytes <= HELD_BYTES) controller?.resume();
        yield chunk;
      } else if (over) {
        if ('reason' in over) throw over.reason;
        return;
      } else {
        arrived = Promise.withResolvers();
        await arrived.promise;
      }
    }
  }
  return { begun: begun.promise, listener, body, fail };
}

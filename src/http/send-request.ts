/**
 * Sends a request once over a pool of persistent connections: no retry, no redirect, no
 * interpretation of the status.
 *
 * Its purpose is to prove what was sent. undici calls `onRequestStart` in the same tick in which it
 * writes the first byte, and not before. Therefore a failure up to then (name resolution,
 * connection, TLS, waiting for a connection) certainly changed nothing, and any later failure may
 * have had an effect.
 */
import { Pool, type Dispatcher } from 'undici';
import { Invalid, Unavailable } from '../domain/errors.ts';
import type { Answer, Request, Send } from '../domain/exchange.ts';
import { setDeadline } from './deadline.ts';
import { describe, type Stage } from './request-failure.ts';

const LARGEST_ANSWER = 16 * 1024 * 1024;

/** The settings for sending requests. */
export interface SendOptions {
  /** The base URL; its path is prepended to the path of every request. */
  url: string;
  /**
   * The time limit for one request, including the wait for a connection, sending, headers and body.
   */
  timeoutMs: number;
  userAgent: string;
  /** The maximum number of connections. Without it, there are as many as requests in flight. */
  connections?: number;
}

/**
 * Creates a pool of connections to one host. Throws Invalid if `url` is not an http(s) URL.
 *
 * `send` throws Unavailable (`acted` is 'no' only if nothing was written), Invalid for a request
 * that HTTP cannot express, and the signal's reason if it is aborted before writing. `close` ends
 * all requests in flight.
 */
export function createSend(options: SendOptions): { send: Send; close(): Promise<void> } {
  const base = parseAddress(options.url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const userAgent = options.userAgent.trim() || 'crm-mirror';
  const pool = new Pool(base.origin, {
    connections: options.connections ?? null,
    pipelining: 1,
    allowH2: false,
    connectTimeout: options.timeoutMs,
    // undici's own timers tick only once a second; the exact deadline is set below.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: LARGEST_ANSWER,
  });
  const send: Send = async (request, signal) => {
    signal?.throwIfAborted();
    const path = prefix + request.path;
    const headers = { ...request.headers, 'user-agent': userAgent };
    const { timeoutMs } = options;
    return exchange(pool, { ...request, path, headers }, { host: base.host, timeoutMs, signal });
  };
  return { send, close: () => pool.destroy() };
}

function parseAddress(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new Invalid('the address to send to is no http or https URL');
  }
  return base;
}

interface Limits {
  host: string;
  timeoutMs: number;
  signal: AbortSignal | undefined;
}

/** One request in flight. */
interface Flight {
  host: string;
  stage: Stage | 'over';
  controller: Dispatcher.DispatchController | undefined;
  resolve(answer: Answer): void;
  reject(reason: unknown): void;
}

function exchange(pool: Pool, request: Request, limits: Limits): Promise<Answer> {
  const { host, timeoutMs, signal } = limits;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const flight: Flight = { host, stage: 'waiting', controller: undefined, resolve, reject };

  const expire = (): void => abandon(flight, late(flight.stage, timeoutMs));
  const cancel = setDeadline(timeoutMs, expire, () => flight.stage !== 'waiting');
  const stop = () => {
    if (flight.stage === 'waiting') end(flight, () => reject(signal?.reason));
    else abandon(flight, 'was ended before its answer was complete: asked to stop');
  };
  signal?.addEventListener('abort', stop, { once: true });

  const { method, path, headers, body = null } = request;
  pool.dispatch({ method, path, headers, body }, listener(flight));
  return promise.finally(() => {
    cancel();
    signal?.removeEventListener('abort', stop);
  });
}

function listener(flight: Flight): Parameters<Pool['dispatch']>[1] {
  const answer: Omit<Answer, 'body'> = { status: 0, headers: {} };
  const chunks: Buffer[] = [];
  return {
    onRequestStart(controller) {
      // The request has already ended or is about to be written a second time, so it must not be
      // sent.
      if (flight.stage !== 'waiting') return controller.abort(new Error('not to be sent'));
      flight.controller = controller;
      flight.stage = 'written';
    },
    onResponseStart(_, status, headers) {
      // 1xx responses precede the actual response.
      if (status < 200 || flight.stage !== 'written') return;
      flight.stage = 'answering';
      answer.status = status;
      answer.headers = flatten(headers);
    },
    onResponseData: (_, chunk) => void chunks.push(chunk),
    onResponseEnd: () => end(flight, () => flight.resolve({ ...answer, body: decode(chunks) })),
    onResponseError(_, error) {
      const { stage } = flight;
      if (stage !== 'over') end(flight, () => flight.reject(describe(error, flight.host, stage)));
    },
  };
}

/**
 * Ends a request. Only the first call has an effect; later events of the connection are ignored.
 */
function end(flight: Flight, settle: () => void): void {
  if (flight.stage === 'over') return;
  flight.stage = 'over';
  settle();
}

function abandon(flight: Flight, what: string): void {
  if (flight.stage === 'over') return;
  const acted = flight.stage === 'waiting' ? 'no' : 'maybe';
  end(flight, () => flight.reject(new Unavailable(`${flight.host} ${what}`, { acted })));
  flight.controller?.abort(new Error(what));
}

function late(stage: Stage | 'over', timeoutMs: number): string {
  if (stage === 'waiting') return `gave no connection within ${timeoutMs} ms`;
  if (stage === 'written') return `did not answer within ${timeoutMs} ms`;
  return `did not finish its answer within ${timeoutMs} ms`;
}

/** Returns each header as one text. */
export function flatten(
  headers: Record<string, string | string[] | undefined>,
): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

const utf8 = new TextDecoder();

/** Decodes a body as UTF-8 and drops a byte order mark, which no JSON parser accepts. */
function decode([first, ...others]: Buffer[]): string {
  if (!first) return '';
  return utf8.decode(others.length === 0 ? first : Buffer.concat([first, ...others]));
}

/**
 * Sends a request once over persistent connections: no retry, no redirect, whatever the status. Its
 * purpose is to prove what was sent. undici calls `onRequestStart` in the same tick in which it
 * writes the first byte, so a failure up to then certainly changed nothing, and any later one may
 * have had an effect. A failure is explained in one line that quotes nothing.
 */
import { Pool, type Dispatcher } from 'undici';
import { Invalid, Unavailable } from '../domain/errors.ts';
import type { Answer, Send } from '../domain/exchange.ts';
import { setDeadline } from './system-clock.ts';

const LARGEST_ANSWER = 16 * 1024 * 1024;

export interface SendOptions {
  /** The base URL; its path is prepended to the path of every request. */
  url: string;
  /** The time limit for one request, from the wait for a connection to the end of the body. */
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
  const { timeoutMs } = options;
  const base = URL.parse(options.url);
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new Invalid('the address to send to is no http or https URL');
  }
  const prefix = base.pathname.replace(/\/+$/, '');
  const userAgent = options.userAgent.trim() || 'crm-mirror';
  const pool = new Pool(base.origin, {
    connections: options.connections ?? null,
    pipelining: 1,
    allowH2: false,
    connectTimeout: timeoutMs,
    // undici's own timers tick only once a second; the exact deadline is set below.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: LARGEST_ANSWER,
  });
  const send: Send = async ({ method, path, headers, body = null }, signal) => {
    signal?.throwIfAborted();
    const flight = createFlight(base.host);
    const expire = (): void => flight.abandon(explainTimeout(flight.stage(), timeoutMs));
    const cancel = setDeadline(timeoutMs, expire, () => flight.stage() !== 'waiting');
    const stop = () => {
      if (flight.stage() === 'waiting') flight.end(() => flight.reject(signal?.reason));
      else flight.abandon('was ended before its answer was complete: asked to stop');
    };
    signal?.addEventListener('abort', stop, { once: true });
    const all = { ...headers, 'user-agent': userAgent };
    pool.dispatch({ method, path: prefix + path, headers: all, body }, flight.listener);
    return flight.promise.finally(() => {
      cancel();
      signal?.removeEventListener('abort', stop);
    });
  };
  return { send, close: () => pool.destroy() };
}

function createFlight(host: string) {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  let stage: Stage | 'over' = 'waiting';
  let connection: Dispatcher.DispatchController | undefined;
  let [status, flat]: [number, Answer['headers']] = [0, {}];
  const chunks: Buffer[] = [];
  /** Only the first call has an effect; later events of the connection are ignored. */
  const end = (settle: () => void): void => {
    if (stage === 'over') return;
    stage = 'over';
    settle();
  };
  const abandon = (what: string): void => {
    if (stage === 'over') return;
    const acted = stage === 'waiting' ? 'no' : 'maybe';
    end(() => reject(new Unavailable(`${host} ${what}`, { acted })));
    connection?.abort(new Error(what));
  };
  const listener: Parameters<Pool['dispatch']>[1] = {
    onRequestStart(controller) {
      // It has already ended, or is about to be written a second time.
      if (stage !== 'waiting') return controller.abort(new Error('not to be sent'));
      connection = controller;
      stage = 'written';
    },
    onResponseStart(_, code, headers) {
      // 1xx responses precede the actual response.
      if (code < 200 || stage !== 'written') return;
      stage = 'answering';
      [status, flat] = [code, flatten(headers)];
    },
    onResponseData: (_, chunk) => void chunks.push(chunk),
    onResponseEnd: () => end(() => resolve({ status, headers: flat, body: decode(chunks) })),
    onResponseError(_, error) {
      if (stage === 'over') return;
      const failure = describe(error, host, stage);
      end(() => reject(failure));
    },
  };
  return { promise, reject, stage: () => stage, end, abandon, listener };
}

function explainTimeout(stage: Stage | 'over', timeoutMs: number): string {
  if (stage === 'waiting') return `gave no connection within ${timeoutMs} ms`;
  if (stage === 'written') return `did not answer within ${timeoutMs} ms`;
  return `did not finish its answer within ${timeoutMs} ms`;
}

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

/** How far a request got: not yet written, written, or its response begun. */
export type Stage = 'waiting' | 'written' | 'answering';

const CONNECTING: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ENOTFOUND: 'is not known to DNS',
  EAI_AGAIN: 'could not be looked up in DNS',
  UND_ERR_CONNECT_TIMEOUT: 'gave no connection in time',
  ETIMEDOUT: 'gave no connection in time',
  UND_ERR_DESTROYED: 'is not spoken to any more: the connections were closed',
  UND_ERR_CLOSED: 'is not spoken to any more: the connections were closed',
};

/** What a wrong address leads to, or a service that does not run. */
const absences = new Set(['ECONNREFUSED', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']);

const EXCHANGING: Record<string, string> = {
  UND_ERR_RES_EXCEEDED_MAX_SIZE:
    'answered more than is accepted at once, 16 MiB: ask for smaller pages',
  UND_ERR_HEADERS_TIMEOUT: 'did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'fell silent in the middle of its answer',
  HTTPParserError: 'answered something that is not HTTP',
  UND_ERR_HEADERS_OVERFLOW: 'answered with more headers than are accepted',
};

const TLS =
  /^(ERR_TLS|ERR_SSL|CERT_|CRL_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|INVALID_CA|EPROTO)/;

/**
 * Returns the error for a request that failed at `stage`, in one line that quotes nothing. It has
 * no cause, because undici's errors contain parts of the response and of the socket.
 */
export function describe(error: Error, host: string, stage: Stage): Invalid | Unavailable {
  const given: unknown = 'code' in error ? error.code : undefined;
  // The HTTP parser may set a code for each kind of malformed input; its name says enough.
  const isCode = typeof given === 'string' && error.name !== 'HTTPParserError';
  const code = isCode ? given : error.name;
  if (code === 'UND_ERR_INVALID_ARG') {
    return new Invalid(`a request to ${host} cannot be written: ${error.message}`);
  }
  // Some kernels report a refused connection only once something is written to it.
  const isUnsent = stage === 'waiting' || code === 'ECONNREFUSED';
  const what = explainFailure(code, isUnsent ? 'waiting' : stage);
  return new Unavailable(`${host} ${what} (${code})`, {
    acted: isUnsent ? 'no' : 'maybe',
    ...(absences.has(code) && { fix: 'check its address, and whether it runs' }),
  });
}

function explainFailure(code: string, stage: Stage): string {
  if (stage === 'waiting') {
    return CONNECTING[code] ?? (TLS.test(code) ? 'failed to agree on TLS' : 'could not be reached');
  }
  if (EXCHANGING[code] !== undefined) return EXCHANGING[code];
  if (stage === 'written') return 'cut the connection before it answered';
  return 'cut the connection in the middle of its answer';
}

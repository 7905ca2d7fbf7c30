/**
 * Sends one request to the CRM until it gets a response or gives up: waits as 429 and 503 demand,
 * and repeats what failed. So it is only for requests that read, or can safely be sent twice. It
 * follows no redirect, because the headers are meant for one host. No message contains a header,
 * any part of an address except its host, or anything from a response.
 */
import { observe } from '../../http/rate-limit-headers.ts';
import { createRetry, resend } from '../../http/retry.ts';
import { createSend } from '../../http/send-request.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import { Invalid, RateLimited, Unavailable } from '../../domain/errors.ts';
import type { Answer, Method, Request } from '../../domain/exchange.ts';
import { parseJson } from '../../domain/stored-json.ts';

const WAIT_MS = 10_000;
const LEAST_WAIT_MS = 1_000;
/** The longest total wait for one response; then the next run tries again. */
const MOST_WAIT_MS = 10 * 60_000;

/** A request with its full address, which must be on the host of the options. */
export interface CrmRequest {
  address: string;
  method?: Method | undefined;
  json?: unknown;
  form?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  /** Statuses to accept with any body, but for a web page with 2xx, and without their waits. */
  accepts?: readonly number[];
}

export interface Said {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** The JSON value; undefined if an accepted status came without JSON. */
  value: unknown;
  text: string;
}

export interface Asking {
  readonly host: string;
  /**
   * Returns the response, or undefined for a 404. Throws Invalid for what only a person can fix,
   * Unavailable, RateLimited, and the signal's reason.
   */
  ask(question: CrmRequest, signal: AbortSignal): Promise<Said | undefined>;
  close(): Promise<void>;
}

export interface Surroundings {
  clock: Clock;
  random: Random;
}

export interface AskingOptions {
  url: string;
  headers?: Readonly<Record<string, string>> | undefined;
  timeoutMs: number;
  /** The options of the source to correct if the host refuses the credentials or a request. */
  mend: Mend;
  mostWaitMs?: number;
}

/** The options to correct. `of` says where they are; the default is the source. */
interface Mend {
  credentials: string;
  request: string;
  address?: string;
  of?: string;
}

export function createAsking(options: AskingOptions, { clock, random }: Surroundings): Asking {
  const { origin, host } = new URL(options.url);
  const { timeoutMs, mend, mostWaitMs } = options;
  const { send, close } = createSend({
    url: origin,
    timeoutMs,
    userAgent: 'crm-mirror',
    connections: 1,
  });
  const standing = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    ...lowerCased(options.headers),
  };
  return {
    host,
    async ask({ address, method, json, form, headers, accepts = [] }, signal) {
      const { pathname, search } = new URL(address);
      const body = form ? String(new URLSearchParams(form)) : JSON.stringify(json);
      const type = `application/${form ? 'x-www-form-urlencoded' : 'json'}`;
      const request: Request = {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        path: pathname + search,
        headers: {
          ...standing,
          ...(body !== undefined && { 'content-type': type }),
          ...lowerCased(headers),
        },
        ...(body !== undefined && { body }),
      };
      const attempt = async () => {
        const answer = await outwait(
          () => send(request, signal),
          (said) => (accepts.includes(said.status) ? undefined : demandedMs(said, clock)),
          { host, clock, signal },
          mostWaitMs,
        );
        return read(answer, host, mend, accepts);
      };
      return retryFreely({ clock, random }, attempt, signal);
    },
    close,
  };
}

/** Repeats an attempt that only reads, or that can safely be sent twice. */
export async function retryFreely<T>(
  surroundings: Surroundings,
  attempt: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await createRetry(surroundings)(resend.freely, attempt, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

export function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** Returns how long a response demands to wait, in milliseconds; undefined if it does not. */
export function demandedMs(
  { status, headers }: Pick<Said, 'status' | 'headers'>,
  clock: Clock,
): number | undefined {
  const { refused, retryAfterMs } = observe(status, headers, clock.now());
  if (!refused && retryAfterMs === undefined) return undefined;
  return Math.max(retryAfterMs ?? WAIT_MS, LEAST_WAIT_MS);
}

/** Returns the first response that demands no wait. Throws RateLimited if it takes too long. */
export async function outwait<T extends { status: number } | undefined>(
  send: () => Promise<T>,
  waitMsAfter: (answer: NonNullable<T>) => number | undefined,
  { host, clock, signal }: { host: string; clock: Clock; signal: AbortSignal },
  mostWaitMs = MOST_WAIT_MS,
): Promise<T> {
  for (let waitedMs = 0; ;) {
    const answer = await send();
    const waitMs = answer && waitMsAfter(answer);
    if (!answer || waitMs === undefined) return answer;
    waitedMs += waitMs;
    if (waitedMs > mostWaitMs) {
      const most = mostWaitMs < MOST_WAIT_MS ? `${mostWaitMs / 1000} seconds` : '10 minutes';
      const what = `${host} asks to wait (${answer.status}), and ${most} were not enough`;
      const fix = 'run less often, or have its limit raised';
      throw new RateLimited(what, { fix, retryAfterMs: waitMs, route: host });
    }
    await clock.sleep(waitMs, signal);
  }
}

function read(
  { status, body: text, headers }: Answer,
  host: string,
  mend: Mend,
  accepts: readonly number[],
): Said | undefined {
  const value = parseJson(text);
  const signs = [headers['content-type']?.includes('html'), text.trimStart().startsWith('<')];
  // Some programs call all that they answer HTML, and others answer in XML.
  const isAccepted = accepts.includes(status) && (status > 299 || !signs.every(Boolean));
  if (isAccepted) return { status, headers, value, text };
  if (status === 404) return undefined;
  if (status >= 500 || status === 408 || status === 425) {
    throw new Unavailable(`${host} answered ${status}`, { acted: 'maybe', status });
  }
  if (status < 200 || status > 299) throw refusal(status, host, mend);
  if (value === undefined) {
    if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
      const fix = 'have it, or the proxy before it, send the answer as it is';
      const what = `${host} packs its answer (content-encoding) as it was not asked to`;
      throw new Invalid(what, { fix });
    }
    const what = signs.some(Boolean) ? 'a web page' : 'something that is no JSON';
    const doubt = `is url of ${mend.of ?? 'the source'} the address of its API?`;
    throw new Unavailable(`${host} answered ${status} with ${what} (${doubt})`, { acted: 'maybe' });
  }
  return { status, headers, value, text };
}

/** Returns why the CRM did not execute a request, and what to fix. */
export function refusal(status: number, host: string, mend: Mend): Invalid {
  const { of = 'the source', address = 'url' } = mend;
  if (status === 401 || status === 403) {
    const what = status === 401 ? 'refused the credentials' : 'does not allow this with them';
    const fix = `correct ${mend.credentials} of ${of}, or its rights there`;
    return new Invalid(`${host} ${what} (${status})`, { fix });
  }
  if (status < 300) {
    const what = status === 206 ? 'a part of what was asked for' : 'no content';
    const fix = `have it answer with all of it; is ${address} of ${of} the right address?`;
    return new Invalid(`${host} answered with ${what} (${status})`, { fix });
  }
  if (status < 400) {
    const fix = `write where it leads into ${address}; the headers are sent nowhere else`;
    return new Invalid(`${host} answered with a redirect (${status})`, { fix });
  }
  const fix = `correct ${mend.request} of ${of}`;
  return new Invalid(`${host} refused the request (${status})`, { fix });
}

/**
 * One question to the CRM, asked until there is an answer or none is to be had: 429 and 503 are
 * waited out as they say, failures are tried again. No redirect is followed: the headers are for
 * one host. No message holds a header, an address beyond its host, or anything of an answer.
 */
import { observe } from '../../http/observation.ts';
import { createRetry, resend } from '../../http/retry.ts';
import { createSend } from '../../http/send.ts';
import type { Clock, Random } from '../../model/clock.ts';
import { Invalid, RateLimited, Unavailable } from '../../model/errors.ts';
import type { Answer } from '../../model/exchange.ts';
import { parseJson } from '../../model/json.ts';
import type { HttpOptions } from './options.ts';

const WAIT_MS = 10_000;
const LEAST_WAIT_MS = 1_000;
/** All that is waited for one answer; who asks for more is come back to by the next run. */
const MOST_WAIT_MS = 10 * 60_000;

export interface Said {
  value: unknown;
  /** What the value was read from. */
  text: string;
  /** Whether a header names a next page. */
  linked: boolean;
}

export interface Asking {
  readonly host: string;
  /**
   * Undefined: there is no such thing (404). Throws Invalid for what only a person can mend,
   * Unavailable, RateLimited, and the signal's reason when aborted.
   */
  ask(address: string, signal: AbortSignal): Promise<Said | undefined>;
  close(): Promise<void>;
}

export interface Surroundings {
  clock: Clock;
  random: Random;
}

/** Every address must be of the host of the options' `url`. */
export function createAsking(options: HttpOptions, { clock, random }: Surroundings): Asking {
  const { origin, host } = new URL(options.url);
  const { timeoutMs } = options;
  const { send, close } = createSend({
    url: origin,
    timeoutMs,
    userAgent: 'crm-mirror',
    connections: 1,
  });
  const retry = createRetry({ clock, random });
  const headers: Record<string, string> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
  };
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers[name.toLowerCase()] = value;
  }
  return {
    host,
    async ask(address, signal) {
      const { pathname, search } = new URL(address);
      const request = { method: 'GET', path: pathname + search, headers } as const;
      const attempt = async () => {
        const patient = { host, clock, signal };
        return read(host, await outwaited(() => send(request, signal), patient));
      };
      try {
        return await retry(resend.freely, attempt, signal);
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      }
    },
    close,
  };
}

interface Patient {
  host: string;
  clock: Clock;
  signal: AbortSignal;
}

/** The answer that does not ask to wait. */
async function outwaited(
  send: () => Promise<Answer>,
  { host, clock, signal }: Patient,
): Promise<Answer> {
  for (let waitedMs = 0; ;) {
    const answer = await send();
    const { refused, retryAfterMs } = observe(answer.status, answer.headers, clock.now());
    if (!refused && retryAfterMs === undefined) return answer;
    const waitMs = Math.max(retryAfterMs ?? WAIT_MS, LEAST_WAIT_MS);
    waitedMs += waitMs;
    if (waitedMs > MOST_WAIT_MS) {
      const asked = `${host} asks to wait (${answer.status}), and 10 minutes were not enough`;
      const detail = { retryAfterMs: waitMs, route: host };
      throw new RateLimited(`${asked} → run less often, or have its limit raised`, detail);
    }
    await clock.sleep(waitMs, signal);
  }
}

function read(host: string, answer: Answer): Said | undefined {
  const { status, body, headers } = answer;
  if (status === 404) return undefined;
  if (status >= 500 || status === 408 || status === 425) {
    throw new Unavailable(`${host} answered ${status}`, { acted: 'maybe', status });
  }
  if (status < 200 || status > 299) throw new Invalid(refusal(host, status));
  const value = parseJson(body);
  if (value === undefined) {
    const isPage = headers['content-type']?.includes('html') || body.trimStart().startsWith('<');
    const what = isPage ? 'a web page' : 'something that is no JSON';
    const doubt = 'is url of the source the address of its API?';
    throw new Unavailable(`${host} answered ${status} with ${what} (${doubt})`, { acted: 'maybe' });
  }
  const linked = /;\s*rel="?next\b/i.test(headers['link'] ?? '');
  return { value, text: body, linked };
}

function refusal(host: string, status: number): string {
  if (status === 401 || status === 403) {
    const what = status === 401 ? 'refused the credentials' : 'does not allow this with them';
    return `${host} ${what} (${status}) → correct the headers of the source, or its rights there`;
  }
  if (status < 400) {
    const mend = 'write where it leads into url; the headers are sent nowhere else';
    return `${host} answered with a redirect (${status}) → ${mend}`;
  }
  return `${host} refused the request (${status}) → correct url and page of the source`;
}

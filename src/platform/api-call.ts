/** Calls one operation. Its errors contain neither the API key nor an address. */
import { pathSegment, queryValue } from '../domain/address-part.ts';
import type { z } from 'zod';
import { anySignal, createRetry } from '../http/retry.ts';
import type { Gate, Priority } from '../http/rate-limit/request-gate.ts';
import type { Clock, Random } from '../domain/clock.ts';
import type { Answer, Attempt, Request, Send } from '../domain/exchange.ts';
import type { Operation } from './operations.ts';
import { Rejected, Unavailable } from '../domain/errors.ts';
import { envelope, type Envelope } from './answer-schemas.ts';

/** The settings for how a call waits and ends. */
export interface CallOptions {
  /** Ends the waits for a place, for the budget, and between attempts. */
  signal?: AbortSignal | undefined;
  /** Ends a request in flight. Without it, `signal` does. */
  abort?: AbortSignal | undefined;
  /** Awaited immediately before each attempt leaves. If it throws, the attempt does not leave. */
  leaves?: (() => Promise<void>) | undefined;
  /** Called with the answer to each attempt. */
  answered?: ((answer: Answer) => void) | undefined;
  priority?: Priority | undefined;
  /** The address of the person that the call is about, for a log. It is not sent. */
  person?: string | undefined;
}

/** One call of an operation. */
export interface Call<T> {
  operation: Operation;
  id?: string;
  query?: Record<string, string | number | undefined>;
  body?: object;
  /** The cookie as name=value, for an operation that needs a session. */
  cookie?: string;
  /** Addresses in this request, which must not appear in messages. */
  addresses?: readonly string[];
  contact?: string | undefined;
  schema: z.ZodType<T>;
  expected: string;
}

/** A parsed value, and the response from which it was parsed. */
export interface Called<T> {
  value: T;
  answer: Answer;
}

export interface Caller {
  /** Returns the body of any 2xx response. Throws Rejected, Unavailable, RateLimited or Invalid. */
  call<T>(call: Call<T>, options?: CallOptions): Promise<Called<T>>;
  /** Like `call`; undefined if the platform says in its own format that there is none (404). */
  find<T>(call: Call<T>, options?: CallOptions): Promise<Called<T> | undefined>;
}

export interface CallerOptions {
  send: Send;
  gate: Gate;
  clock: Clock;
  random: Random;
  apiKey: string;
  maxAttempts?: number | undefined;
  /** Receives every attempt that was made. It must not throw. */
  record?: ((attempt: Attempt) => void) | undefined;
}

/** Creates a caller. After its key was refused (401), no further call leaves. */
export function createCaller(options: CallerOptions): Caller {
  const { gate, apiKey, clock, random, maxAttempts } = options;
  const retry = createRetry({ clock, random, maxAttempts, signal: gate.signal });
  let refused: Answer | undefined;

  async function perform<R extends Called<unknown> | undefined>(
    call: Call<unknown>,
    { signal, abort, leaves, answered, priority, person }: CallOptions,
    read: (answer: Answer) => R,
  ): Promise<R> {
    const { route, resend, session } = call.operation;
    const request = buildRequest(call, apiKey);
    const sending = createSending(request, call, person, options);
    const askKey = (): void => {
      if (refused && !session) throw refusalOf(refused, call, apiKey);
    };
    const leave = async (waiting: AbortSignal | undefined): Promise<Answer> => {
      askKey();
      if (leaves) {
        await leaves();
        askKey();
      }
      const answer = await sending.send(abort ? anySignal(gate.signal, abort) : waiting);
      if (answer.status === 401 && !session) refused = answer;
      answered?.(answer);
      return answer;
    };
    const attempt = async () => {
      const result = read(await gate.through(route, leave, { signal, priority }));
      sending.listed(result?.value);
      return result;
    };
    return retry(resend, attempt, signal);
  }
  return {
    call: (call, sendContext = {}) =>
      perform(call, sendContext, (answer) => interpret(answer, call, apiKey)),
    find: (call, sendContext = {}) =>
      perform(call, sendContext, (answer) => {
        if (answer.status !== 404) return interpret(answer, call, apiKey);
        // A proxy answers 404, too. Only the platform's own format says that a contact is gone.
        const body = parseJson(answer.body);
        if (typeof body === 'object' && body !== null) return undefined;
        const expected = { expected: 'an error of the platform', detail: '' };
        throw unreadable(answer, call.operation.route, expected);
      }),
  };
}

/** Returns what sends and records an attempt, and what adds a list's size to the last one. */
function createSending(
  request: Request,
  { operation, contact, addresses = [] }: Call<unknown>,
  person: string | undefined,
  { send, clock, record }: CallerOptions,
) {
  let last: Attempt | undefined;
  const { method, path, body } = request;
  const of = {
    route: operation.route,
    method,
    path,
    body,
    contact,
    person: person ?? addresses[0],
  };
  return {
    async send(signal: AbortSignal | undefined): Promise<Answer> {
      if (!record) return send(request, signal);
      const number = (last?.attempt ?? 0) + 1;
      const attempt: Attempt = { ...of, attempt: number, at: clock.now(), ms: 0 };
      last = attempt;
      const began = clock.monotonic();
      try {
        attempt.answer = await send(request, signal);
        return attempt.answer;
      } catch (error) {
        attempt.failure = error instanceof Error ? error.message : String(error);
        throw error;
      } finally {
        attempt.ms = Math.round(clock.monotonic() - began);
        record(attempt);
      }
    },
    listed(value: unknown): void {
      if (!last || !operation.route.endsWith('.list')) return;
      if (typeof value !== 'object' || value === null) return;
      const list: unknown[] | undefined = Object.values(value).find((one) => Array.isArray(one));
      last.rows = list?.length;
    },
  };
}

function buildRequest(call: Call<unknown>, apiKey: string): Request {
  const { operation, id, query = {}, body, cookie = '' } = call;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  const path = operation.path.replace(/\{\w+\}/, () => pathSegment(id ?? ''));
  return {
    method: operation.method,
    path: search.size > 0 ? `${path}?${search.toString()}` : path,
    headers: {
      accept: 'application/json',
      ...(operation.session ? { cookie } : { 'x-api-key': apiKey }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
}

function interpret<T>(answer: Answer, call: Call<T>, apiKey: string): Called<T> {
  const { operation, expected, schema } = call;
  if (answer.status < 200 || answer.status > 299) throw refusalOf(answer, call, apiKey);
  const parsed = schema.safeParse(parseJson(answer.body));
  if (parsed.success) return { value: parsed.data, answer };
  const detail = parsed.error.issues[0]?.path.join('.') ?? '';
  throw unreadable(answer, operation.route, { expected, detail });
}

const LONGEST_TEXT = 300;
const LONGEST_READ = 16_000;

const WRONG_URL = 'is platform.url the address of the platform?';

/** Returns Rejected in the platform's words, or Unavailable. Neither has the key or addresses. */
function refusalOf(
  { status, body }: Answer,
  { operation, addresses = [], cookie = '' }: Call<unknown>,
  apiKey: string,
): Rejected | Unavailable {
  const { route } = operation;
  const secrets = { keys: [apiKey, cookie.slice(cookie.indexOf('=') + 1)], addresses };
  const parsed = envelope.safeParse(parseJson(body));
  const texts = parsed.success ? parsed.data : { message: '', why: '', fix: '' };
  const said: Envelope = {
    message: tidy(texts.message, secrets),
    why: tidy(texts.why, secrets),
    fix: tidy(texts.fix, secrets),
  };
  if (status >= 500) {
    const words = said.message === '' ? '' : `: ${said.message}`;
    const message = `the platform answered ${status} to ${route}${words}`;
    return new Unavailable(message, { acted: 'maybe', status });
  }
  if (status < 400) {
    const message = `the platform answered ${status} to ${route}, a redirect: ${WRONG_URL}`;
    return new Unavailable(message, { acted: 'maybe', status });
  }
  const why = said.why || said.message;
  const { message, fix } = advice(status, operation, said);
  return new Rejected(message, { status, why, fix, route });
}

/** Returns the error for a body that is not `expected`; `detail` states what is wrong with it. */
function unreadable(
  { status, headers, body }: Answer,
  route: string,
  { expected, detail }: { expected: string; detail: string },
): Unavailable {
  const page = headers['content-type']?.includes('html') || body.trimStart().startsWith('<');
  const what = page
    ? `a web page: ${WRONG_URL}`
    : `a body that is not ${expected}${detail === '' ? '' : ` (${detail})`}`;
  const message = `the platform answered ${status} to ${route} with ${what}`;
  return new Unavailable(message, { acted: 'maybe', status });
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function advice(
  status: number,
  { route, session, method }: Operation,
  said: Envelope,
): { message: string; fix: string } {
  if (session && status === 401) {
    const message = 'the platform refused the session cookie (401)';
    return { message, fix: said.fix || 'sign in to the dashboard again and copy its cookie' };
  }
  if (session && status === 403) {
    const message = `the platform does not allow this session to use ${route} (403)`;
    return { message, fix: said.fix || 'sign in as a member of the organization' };
  }
  if (status === 401) {
    const message = 'the platform refused the API key (401): check platform.apiKey';
    return { message, fix: said.fix || 'put a valid key of the organization into platform.apiKey' };
  }
  if (status === 403) {
    const right = `the right to ${method === 'GET' ? 'read' : 'write'} ${route.split('.')[0]}`;
    const message = `the platform does not allow this API key to use ${route} (403): give it ${right}`;
    return { message, fix: said.fix };
  }
  if (status === 404 && route.endsWith('.list')) {
    const message = `the platform answered 404 to ${route}: ${WRONG_URL}`;
    return { message, fix: said.fix };
  }
  const message = said.message || `the platform answered ${status} to ${route} without a reason`;
  return { message, fix: said.fix };
}

/** Returns one line of at most 300 characters, without control characters, secrets or addresses. */
function tidy(
  text: string,
  { keys, addresses }: { keys: readonly string[]; addresses: readonly string[] },
): string {
  let line = text.slice(0, LONGEST_READ).replace(/[\p{C}\p{Z}]+/gu, ' ');
  for (const key of keys) line = replace(line, key, '‹key›');
  for (const address of addresses) {
    line = replace(line, address, '‹address›');
    line = replace(line, queryValue(address), '‹address›');
  }
  // This replaces addresses that were not sent, such as the address of a contact named by id.
  line = line.replace(/[^\s@‹›"'<>()]{1,64}@[^\s@‹›"'<>()]{1,255}/gu, '‹address›');
  return [...line.trim()].slice(0, LONGEST_TEXT).join('');
}

function replace(text: string, secret: string, by: string): string {
  if (secret.trim() === '') return text;
  const literal = secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(literal, 'gi'), by);
}

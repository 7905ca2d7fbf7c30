/**
 * Converts an unsuccessful response into an error: Rejected in the platform's words, or Unavailable
 * (specification, "Errors"). No message contains the API key or an address.
 */
import { queryValue } from '../domain/address-part.ts';
import { Rejected, Unavailable } from '../domain/errors.ts';
import type { Answer } from '../domain/exchange.ts';
import { envelope, type Envelope } from './answer-schemas.ts';
import type { Operation } from './operations.ts';

const LONGEST_TEXT = 300;
/** More than is ever shown, so that truncation cannot leave a part of a secret unreplaced. */
const LONGEST_READ = 16_000;

const WRONG_URL = 'is platform.url the address of the platform?';

/** Texts that must not be shown. Placeholders replace them. */
export interface Secrets {
  /** The API key, and the cookie if one was sent. */
  keys: readonly string[];
  /** The addresses, as they were sent. */
  addresses: readonly string[];
}

/** Returns the error for a response with any status other than 2xx. */
export function refusal(
  answer: Answer,
  operation: Operation,
  secrets: Secrets,
): Rejected | Unavailable {
  const { status } = answer;
  const { route } = operation;
  const said = read(answer, secrets);
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

/**
 * Returns the error for a response whose body is not `expected`; `detail` states what is wrong with
 * it.
 */
export function unreadable(
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

/** Parses the body as JSON. Returns undefined if it is not JSON. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function advice(
  status: number,
  { route, session }: Operation,
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
    const message = `the platform does not allow this API key to use ${route} (403)`;
    return { message, fix: said.fix || 'give the key the permission, or use another one' };
  }
  if (status === 404 && route.endsWith('.list')) {
    const message = `the platform answered 404 to ${route}: ${WRONG_URL}`;
    return { message, fix: said.fix };
  }
  const message = said.message || `the platform answered ${status} to ${route} without a reason`;
  return { message, fix: said.fix };
}

function read(answer: Answer, secrets: Secrets): Envelope {
  const parsed = envelope.safeParse(parseJson(answer.body));
  const { message, why, fix } = parsed.success ? parsed.data : { message: '', why: '', fix: '' };
  const show = (text: string) => tidy(text, secrets);
  return { message: show(message), why: show(why), fix: show(fix) };
}

/**
 * Returns a text as one line of at most 300 characters, without control characters, secrets or
 * addresses.
 */
function tidy(text: string, { keys, addresses }: Secrets): string {
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

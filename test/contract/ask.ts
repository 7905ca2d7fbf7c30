/** Asks over a socket, as any program would, and holds the answer against a sentence. */
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Sentence, Step } from './sentence.ts';

export interface To {
  url: string;
  key: string;
  /** Whether an answer may hold nothing but what the specification names. */
  strict: boolean;
}

interface Answered {
  status: number;
  headers: Headers;
  json: ReturnType<typeof JSON.parse>;
}

/** The platform holds nothing that could show a sentence: no contact, for one. */
export class Nothing extends Error {}

/** Throws what does not hold, or Nothing. */
export async function prove(sentence: Sentence, to: To): Promise<void> {
  const kept = new Map<string, string>();
  for (const step of sentence.first ?? []) {
    const { json } = await ask(fill(step, kept), to);
    for (const [name, path] of Object.entries(step.keep ?? {})) kept.set(name, at(json, path));
  }
  const { status, answer, has, lacks = [], sends = {}, ...request } = fill(sentence, kept);
  const seen = await ask(request, to);
  expect(seen).toMatchObject({ status: expect.toBeOneOf([status].flat()) });
  expect(seen.headers.get('content-type')).toMatch(/^application\/json\b/);
  if (answer && to.strict) expect(seen.json).toEqual(answer);
  else if (answer)
    expect(seen.json).toEqual(isPlain(answer) ? expect.objectContaining(answer) : answer);
  if (has) expect(seen.json).toMatchObject(has);
  for (const field of lacks) expect(seen.json).not.toHaveProperty(field);
  const sent = Object.keys(sends).map((name) => [name, seen.headers.get(name) ?? undefined]);
  expect(Object.fromEntries(sent)).toEqual(sends);
}

/** A platform that is not the emulator has limits of its own: one 429 is waited out. */
export async function ask(request: Step, to: To, patient = !to.strict): Promise<Answered> {
  const { ask: line, body, headers = {} } = request;
  const [method = '', path = ''] = line.split(' ');
  const all = { 'x-api-key': to.key, 'content-type': body && 'application/json', ...headers };
  const given = Object.entries(all).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const response = await fetch(to.url.replace(/\/$/, '') + path, {
    method,
    headers: Object.fromEntries(given),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  if (response.status === 429 && patient) {
    await wait((Number(response.headers.get('retry-after')) + 1) * 1000);
    return ask(request, to, false);
  }
  const raw = await response.text();
  return { status: response.status, headers: response.headers, json: JSON.parse(raw) };
}

function at(json: unknown, path: string): string {
  const inner = (value: unknown, step: string): unknown =>
    typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined;
  const found = path.split('.').reduce(inner, json);
  if (typeof found === 'string') return found;
  throw new Nothing(`nothing at ${path} of ${JSON.stringify(json)}`);
}

/** The same with every {name} replaced, wherever it stands. */
function fill<T>(value: T, kept: ReadonlyMap<string, string>): T;
function fill(value: unknown, kept: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return value.replace(/\{(\w+)\}/g, (all, n) => kept.get(n) ?? all);
  if (Array.isArray(value)) return value.map((inner) => fill(inner, kept));
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([k, inner]) => [k, fill(inner, kept)]));
}

/** Matchers are no plain objects, and stay as they are. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return Object.getPrototypeOf(value) === Object.prototype && !('asymmetricMatch' in value);
}

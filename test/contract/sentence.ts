/**
 * The specification as sentences, each with the request that shows it. Literal: no schema of the
 * project is used here, so that a misreading shared by client and emulator is found out.
 */
import { expect } from 'vitest';

export interface Sentence {
  says: string;
  /** What has to happen before; `keep` names what later requests and expectations call {name}. */
  first?: Step[];
  /** Method and path. */
  ask: string;
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown;
  /** Besides a good x-api-key and the content type; undefined leaves one out. */
  headers?: Record<string, string | undefined>;
  status: number | number[];
  /** The whole answer: nothing more may be in it (but on a platform that is not the emulator). */
  answer?: object;
  /** A part of the answer. */
  has?: object;
  lacks?: string[];
  /** Headers of the answer; undefined: not there. */
  sends?: Record<string, unknown>;
  /** Shown only by the world of world.ts, or by what the emulator was started with. */
  needs?: 'world' | { limits: string[] };
}

export interface Step {
  ask: string;
  body?: unknown;
  headers?: Record<string, string | undefined>;
  /** name: dotted path in the answer */
  keep?: Record<string, string>;
}

/** Sentences by the section they stand in. */
export type Sections = Record<string, Sentence[]>;

/** Whether it may be asked of a platform with real people on it: reads, and any world shows it. */
export function isReading({ ask, first = [], needs }: Sentence): boolean {
  return !needs && [ask, ...first.map((step) => step.ask)].every((line) => line.startsWith('GET '));
}

/** Timestamps are ISO 8601 strings in UTC. */
export const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
export const text = expect.any(String);
export const flag = expect.any(Boolean);
export const count = expect.toSatisfy((n) => Number.isInteger(n) && n >= 0, 'a whole number');
export const list = expect.any(Array);
export const oneOf = (...values: unknown[]) => expect.toBeOneOf(values);

/** Errors 1: message, why, fix and link, or message alone. */
export const envelope = expect.toSatisfy((body) => {
  if (typeof body !== 'object' || body === null) return false;
  const fields = Object.keys(body).toSorted().join();
  const texts = Object.values(body).every((value) => typeof value === 'string' && value !== '');
  return texts && (fields === 'fix,link,message,why' || fields === 'message');
}, 'an error envelope');

/** An error with all four fields and this message. */
export const refusal = (message: unknown = text) => ({ message, why: text, fix: text, link: text });

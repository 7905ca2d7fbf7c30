/**
 * A part of the program that takes what others write, and what must hold of it whatever that is: no
 * crash, no error but the expected ones, no control character and no personal data in what is said.
 */
import fc from 'fast-check';
import { explain } from '../../src/compose/output/failure-report.ts';
import { visibleLines } from '../../src/compose/output/text-style.ts';
import { isExpected } from '../../src/domain/errors.ts';

export interface Area {
  name: string;
  open(): Promise<OpenArea>;
}

/** An input is a JSON value, so that one that is found can be kept in a file. */
export interface OpenArea<Input = unknown> {
  inputs: fc.Arbitrary<Input>;
  /** Throws when something does not hold. */
  judge(input: Input): Promise<void>;
  close(): Promise<void>;
}

/** An area whose inputs are of one type. */
export function area<Input>(name: string, open: () => Promise<OpenArea<Input>>): Area {
  return { name, open };
}

/** They stand in what is read; no error may repeat them. */
export const ADDRESS = 'canary.person@secret.example';
export const SECRET = 'c2VjcmV0Y2FuYXJ5c2VjcmV0';

/** An expected error, in the form in which a person reads it. */
export function judgeError(error: unknown): void {
  if (!isExpected(error)) throw error;
  judgeText(explain(error).text);
  if (!/→|;/.test(error.message) && error.name === 'Invalid') {
    throw new Error(`no way to mend it is named: ${error.message}`);
  }
}

/** What is said for people about records. */
export function judgeText(text: string): void {
  if (text.includes(ADDRESS)) throw new Error(`an address is told: ${text}`);
  judgeLines(text);
}

/** What is said for people, who may have written an address themselves. */
export function judgeLines(text: string): void {
  if (text.trim() === '') throw new Error('nothing is said');
  if (text.includes(SECRET)) throw new Error(`a secret is told: ${text}`);
  if (/\n\s+at /.test(text)) throw new Error(`a stack is told: ${text}`);
  if (/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(visibleLines(text))) {
    throw new Error(`control characters are told: ${JSON.stringify(text)}`);
  }
}

const oddities = [
  '',
  ' ',
  '\0',
  '\u001b[2J',
  '\u202e',
  '\ud800',
  '\ufeff',
  'é',
  '😀',
  '\u2028',
  '\u00a0',
  '"',
  "'",
  '`',
  '\\',
  '\n',
  '\r\n',
  '\r',
  '\t',
  ',',
  ';',
  ':',
  '|',
  '#',
  '{',
  '}',
  '[',
  ']',
  '__proto__',
  'constructor',
  'toString',
  '{{',
  '}}',
  '{{{x',
  '${A}',
  '${',
  '%zz',
  '../..',
  'null',
  'true',
  'NaN',
  '-0',
  '1e999',
  '9007199254740993',
  '0x10',
  '0000-00-00',
  ADDRESS,
  'x'.repeat(300),
  'a@'.repeat(100),
  '['.repeat(600),
  '{"a":'.repeat(600),
  '('.repeat(300),
];

export const scrap = fc.oneof(
  fc.constantFrom(...oddities),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 12 }),
);

/** Valid texts in which some characters were replaced. */
export function mutated(
  examples: readonly string[],
  scraps: fc.Arbitrary<string> = scrap,
): fc.Arbitrary<string> {
  const edit = fc.tuple(fc.nat(), fc.nat(12), fc.oneof(scraps, fc.constant('')));
  const edits = fc.array(edit, { minLength: 1, maxLength: 4 });
  return fc.tuple(fc.constantFrom(...examples), edits).map(([example, all]) =>
    all.reduce((text, [place, gone, put]) => {
      const at = place % (text.length + 1);
      return text.slice(0, at) + put + text.slice(at + gone);
    }, example),
  );
}

/** A value as JSON, YAML or a program may hold it. */
export const strangeValue = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  scrap,
  fc.constantFrom(nested(600), -1, 0, 1.5, Number.MAX_SAFE_INTEGER, 1e300, [], {}, [[]], null),
);

function nested(levels: number): unknown {
  let value: unknown = 'x';
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

/** Valid values in which some parts were replaced, removed, or given under another name. */
export function twisted(examples: readonly unknown[]): fc.Arbitrary<unknown> {
  const twist = fc.record({
    pick: fc.nat(),
    how: fc.constantFrom('replace', 'replace', 'remove', 'rename'),
    value: strangeValue,
    name: scrap,
  });
  const twists = fc.array(twist, { minLength: 1, maxLength: 3 });
  return fc.tuple(fc.constantFrom(...examples), twists).map(([example, all]) => {
    const value = structuredClone(example);
    for (const { pick, how, value: given, name } of all) {
      // One that is changed later is to change for itself alone.
      const put = structuredClone(given);
      const places = placesIn(value);
      const place = places[pick % Math.max(1, places.length)];
      if (!place) return put;
      const { of, key } = place;
      const old: unknown = Reflect.get(of, key);
      if (how === 'replace') define(of, key, put);
      else Reflect.deleteProperty(of, key);
      if (how === 'rename') define(of, name, old);
    }
    return value;
  });
}

function define(of: object, key: string, value: unknown): void {
  if (Array.isArray(of)) of.push(value);
  else
    Object.defineProperty(of, key, { value, enumerable: true, writable: true, configurable: true });
}

function placesIn(value: unknown, depth = 0): { of: object; key: string }[] {
  if (typeof value !== 'object' || value === null || depth > 8) return [];
  return Object.keys(value).flatMap((key) => [
    { of: value, key },
    ...placesIn(Reflect.get(value, key), depth + 1),
  ]);
}

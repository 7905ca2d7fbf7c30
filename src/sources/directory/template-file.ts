/**
 * Reads one template from disk: the fields that it states, or why it cannot be read, with the
 * position at which a text stops being JSON, because JSON.parse does not always report it.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { Entry, DirectoryPart, Unusable } from './directory-listing.ts';

/** No template comes near this size, and a stray dump must not be loaded into memory. */
const FILE_BYTES = 16 * 1024 * 1024;

interface Broken {
  where: string;
  why: string;
  fix: string;
}

export type Stated = { value: Record<string, unknown> } | Broken;

const mapping = z.record(z.string(), z.unknown());

export async function readTemplate(entry: Entry, path: string): Promise<Stated> {
  const { form, where, parts } = entry;
  if (form === 'file') {
    const [part] = parts;
    if (part) return asMapping(part, await parsePart(part, path));
  }
  if (form === 'folder') return readFolder(entry, path);
  return { where, ...UNUSABLE[form === 'file' ? 'unreadable' : form] };
}

const UNUSABLE: Record<Unusable, { why: string; fix: string }> = {
  'broken link': { why: 'the link leads nowhere', fix: 'mend or remove the link' },
  'special file': { why: 'this is no regular file', fix: 'put a regular file in its place' },
  unreadable: { why: 'the file cannot be read', fix: 'let the user who runs this read it' },
};

async function readFolder({ where, parts }: Entry, path: string): Promise<Stated> {
  const heads = parts.filter((part) => !isContent(part));
  const [head] = heads;
  if (head === undefined) {
    return { where, why: 'there is no template.yaml', fix: 'add one, or remove content.json' };
  }
  if (heads.length > 1) {
    return { where, why: 'there is a template.yaml and a template.yml', fix: 'keep one of them' };
  }
  const stated = asMapping(head, await parsePart(head, path));
  const body = parts.find(isContent);
  if ('why' in stated || body === undefined) return stated;
  if ('content' in stated.value) {
    return {
      where,
      why: 'template.yaml states a content, and there is a content.json',
      fix: 'keep one of them',
    };
  }
  const content = await parsePart(body, path);
  return 'why' in content ? content : { value: { ...stated.value, content: content.parsed } };
}

function isContent({ where }: DirectoryPart): boolean {
  return where.endsWith('/content.json');
}

function asMapping({ where }: DirectoryPart, outcome: Parsed): Stated {
  if ('why' in outcome) return outcome;
  const { success, data } = mapping.safeParse(outcome.parsed);
  if (success) return { value: data };
  return {
    where,
    why: 'the file does not hold fields with their values',
    fix: 'begin with a field, as in "subject: Welcome"',
  };
}

type Parsed = { parsed: unknown } | Broken;

async function parsePart({ where, size }: DirectoryPart, path: string): Promise<Parsed> {
  if (size > FILE_BYTES) {
    return { where, why: 'the file is above 16 MiB', fix: 'make it smaller, or remove it' };
  }
  const bytes = await readFile(join(path, where)).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  });
  if (bytes === undefined) return { where, ...UNUSABLE.unreadable };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { where, why: 'the text is not UTF-8', fix: 'save the file as UTF-8' };
  }
  return where.toLowerCase().endsWith('.json') ? parseJson(where, text) : parseYaml(where, text);
}

function parseJson(where: string, text: string): Parsed {
  try {
    return { parsed: JSON.parse(text) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const before = text.slice(0, faultAt(text)).split(/\r\n|\n|\r/);
    return {
      where: `${where}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`,
      why: 'the JSON is malformed here',
      fix: 'mend the syntax: a comma, a quote or a bracket is missing, or one too many',
    };
  }
}

function parseYaml(where: string, text: string): Parsed {
  try {
    const document = parseDocument(text, { logLevel: 'error' });
    const [error] = document.errors;
    if (!error) return { parsed: document.toJS({ maxAliasCount: 100 }) };
    const at = error.linePos ? `:${error.linePos[0].line}:${error.linePos[0].col}` : '';
    return {
      where: `${where}${at}`,
      why: `the YAML is malformed here (${error.code.toLowerCase().replaceAll('_', ' ')})`,
      fix: 'mend the indentation, or put quotes around values that hold ": " or " #"',
    };
  } catch (error) {
    // The library throws this error for an alias without an anchor, and for an excessive number of
    // aliases.
    if (!(error instanceof ReferenceError)) throw error;
    return { where, why: 'an alias (*name) cannot be resolved', fix: 'write the value out' };
  }
}

/** Returns where a text stops being JSON: at the first invalid token, or at its end. */
export function faultAt(text: string): number {
  const open: Bracket[] = [];
  let expected: Expected = 'value';
  let end = 0;
  for (;;) {
    const start = matchEnd(SPACE, text, end) ?? end;
    const token = readToken(text, start);
    if (token === undefined) return start;
    if ('fault' in token) return token.fault;
    const next = step(expected, token, open);
    if (next === undefined) return start;
    expected = next;
    end = token.end;
  }
}

type Bracket = '{' | '[';
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end';

interface Token {
  kind: string;
  end: number;
}

const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
/** Matches a bounded part of a string: a long string would exhaust the regex engine. */
const STRETCH = /[ !#-[\]-\uffff]{1,500}|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

function readToken(text: string, start: number): Token | { fault: number } | undefined {
  const first = text[start];
  if (first === undefined) return undefined;
  if ('{}[],:'.includes(first)) return { kind: first, end: start + 1 };
  if (first !== '"') {
    const end = matchEnd(SCALAR, text, start);
    return end === undefined ? undefined : { kind: 'scalar', end };
  }
  let at = start + 1;
  for (
    let end = matchEnd(STRETCH, text, at);
    end !== undefined;
    end = matchEnd(STRETCH, text, at)
  ) {
    at = end;
  }
  if (text[at] === '"') return { kind: 'string', end: at + 1 };
  // For an unclosed quote, the opening position is the most useful one to report.
  return { fault: at === text.length ? start : at };
}

function matchEnd(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}

/** Returns what may follow a token, undefined if it may not stand here; tracks brackets. */
function step(expected: Expected, { kind }: Token, open: Bracket[]): Expected | undefined {
  const inside = open.at(-1);
  if (kind === '}' || kind === ']') {
    const empty = kind === '}' ? 'key or }' : 'value or ]';
    const fits = inside === (kind === '}' ? '{' : '[');
    if (!fits || (expected !== 'comma or end' && expected !== empty)) return undefined;
    open.pop();
    return 'comma or end';
  }
  if (expected === 'value' || expected === 'value or ]') {
    if (kind === 'string' || kind === 'scalar') return 'comma or end';
    if (kind !== '{' && kind !== '[') return undefined;
    open.push(kind);
    return kind === '{' ? 'key or }' : 'value or ]';
  }
  if (expected === 'colon') return kind === ':' ? 'value' : undefined;
  if (expected === 'comma or end') {
    if (kind !== ',' || inside === undefined) return undefined;
    return inside === '{' ? 'key' : 'value';
  }
  return kind === 'string' ? 'colon' : undefined;
}

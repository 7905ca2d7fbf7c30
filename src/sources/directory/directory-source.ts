/**
 * Reads templates from a directory: `<key>.json`, `.yaml` or `.yml`, or a folder `<key>/` with
 * `template.yaml` and, unless that states the content, `content.json`. Everything else is ignored.
 * A record has the key, the name (the key unless stated) and the stated fields; `fields` does not
 * apply. What cannot be read (a broken link, two files of one key, bad syntax) is broken, never
 * absent.
 */
import { brokenFlaws, certificateOf, type Flaw } from '../shared/read-certificate.ts';
import type { Source, SourceRecord } from '../source.ts';
import type { DirectoryOptions } from './options.ts';
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, readdir, stat, readFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { codeOf, Invalid } from '../../domain/errors.ts';
import { rethrow } from '../shared/files/file-origin.ts';
import { parseDocument } from 'yaml';
import { z } from 'zod';

const BATCH_RECORDS = 20;

export function directorySource({ path }: DirectoryOptions): Source {
  return {
    async *read({ signal }) {
      signal.throwIfAborted();
      const entries = await listEntries(path);
      const reading = readingOf(entries);
      const broken: string[] = [];
      let batch: SourceRecord[] = [];
      for (const entry of entries) {
        signal.throwIfAborted();
        const sameKey = entries.filter((one) => one !== entry && one.key === entry.key);
        const others = sameKey.map(({ where }) => where).join(', ');
        const duplicate = sameKey.length > 0 && {
          where: entry.where,
          why: `the key ${JSON.stringify(entry.key)} is also that of ${others}`,
          fix: 'keep one of them, or rename the others',
        };
        const record = toRecord(entry, duplicate || (await readTemplate(entry, path)));
        if ('broken' in record) broken.push(record.where);
        batch.push(record);
        if (batch.length < BATCH_RECORDS) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
      signal.throwIfAborted();
      const flaws: Flaw[] = [];
      if (readingOf(await listEntries(path)) !== reading) {
        flaws.push({ why: 'the directory changed while it was read', fix: 'read it again' });
      }
      flaws.push(...brokenFlaws('template', broken.length, broken[0], 'mend what is broken'));
      return certificateOf(reading, flaws);
    },
  };
}

function toRecord({ key, where }: Entry, stated: Stated): SourceRecord {
  if ('why' in stated) return { where: stated.where, broken: stated.why, fix: stated.fix };
  const { value } = stated;
  if ('key' in value && value['key'] !== key) {
    const broken = `states a key, but the key is the name of the file: ${JSON.stringify(key)}`;
    return { where, broken, fix: 'remove the key from the file, or rename the file' };
  }
  return { where, value: { name: key, ...value, key } };
}

export interface Entry {
  key: string;
  where: string;
  form: 'file' | 'folder' | Unusable;
  parts: DirectoryPart[];
}

export type Unusable = 'broken link' | 'special file' | 'unreadable';

export interface DirectoryPart {
  where: string;
  size: number;
  mtimeMs: number;
}

const EXTENSIONS = ['.json', '.yaml', '.yml'];
const FOLDER_PARTS = ['template.yaml', 'template.yml', 'content.json'];

async function listEntries(path: string): Promise<Entry[]> {
  const names = await readdir(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOTDIR') {
      throw new Invalid(`${path}: this is no directory; name one in the configuration`);
    }
    return rethrow(path, 'directory')(error);
  });
  const entries: Entry[] = [];
  for (const name of names) {
    const entry = name.startsWith('.') ? undefined : await entryOf(path, name);
    if (entry) entries.push(entry);
  }
  return entries.toSorted((a, b) => order(a.key, b.key) || order(a.where, b.where));
}

export async function listIgnored(path: string): Promise<string[]> {
  const names = await readdir(path);
  const ignored: string[] = [];
  for (const name of names.toSorted(order)) {
    if (!name.startsWith('.') && !(await entryOf(path, name))) ignored.push(name);
  }
  return ignored;
}

/** Compares by code units, so that the order is the same in every locale. */
function order(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Returns the name of the read. Equal file names, sizes and times give equal names. */
function readingOf(entries: readonly Entry[]): string {
  const state = entries.map(({ where, form, parts }) => [where, form, parts]);
  return createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 16);
}

async function entryOf(path: string, name: string): Promise<Entry | undefined> {
  const { name: stem, ext } = parse(name);
  const isTemplate = EXTENSIONS.includes(ext.toLowerCase());
  const key = isTemplate ? stem : name;
  const looked = await look(path, name);
  if ('fault' in looked) {
    // A broken link may have pointed to a folder, whatever its name.
    if (looked.fault === 'gone') return undefined;
    return { key, where: name, form: looked.fault, parts: [] };
  }
  const { stats } = looked;
  if (stats.isFile() && isTemplate) {
    return { key, where: name, form: 'file', parts: [partOf(name, stats)] };
  }
  if (!stats.isDirectory()) {
    return isTemplate ? { key, where: name, form: 'special file', parts: [] } : undefined;
  }
  const entry: Entry = { key: name, where: name, form: 'folder', parts: [] };
  for (const part of FOLDER_PARTS) {
    const where = `${name}/${part}`;
    const inner = await look(path, where);
    if ('stats' in inner) entry.parts.push(partOf(where, inner.stats));
    else if (inner.fault !== 'gone') return { ...entry, where, form: inner.fault, parts: [] };
  }
  return entry.parts.length > 0 ? entry : undefined;
}

function partOf(where: string, { size, mtimeMs }: Stats): DirectoryPart {
  return { where, size, mtimeMs };
}

/** Examines a file and follows links, because a template may be stored elsewhere. */
async function look(
  path: string,
  where: string,
): Promise<{ stats: Stats } | { fault: 'gone' | 'broken link' | 'unreadable' }> {
  try {
    return { stats: await stat(join(path, where)) };
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    if (code === 'ELOOP') return { fault: 'broken link' };
    if (code !== 'ENOENT') return { fault: 'unreadable' };
    const itself = await lstat(join(path, where)).catch(() => undefined);
    return { fault: itself ? 'broken link' : 'gone' };
  }
}

/** No template comes near this size, and a stray dump must not be loaded into memory. */
const FILE_BYTES = 16 * 1024 * 1024;

interface Broken extends Flaw {
  where: string;
}

export type Stated = { value: Record<string, unknown> } | Broken;

const mapping = z.record(z.string(), z.unknown());

async function readTemplate(entry: Entry, path: string): Promise<Stated> {
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
    const why = 'template.yaml states a content, and there is a content.json';
    return { where, why, fix: 'keep one of them' };
  }
  const content = await parsePart(body, path);
  return 'why' in content ? content : { value: { ...stated.value, content: content.parsed } };
}

const isContent = ({ where }: DirectoryPart): boolean => where.endsWith('/content.json');

function asMapping({ where }: DirectoryPart, outcome: Parsed): Stated {
  if ('why' in outcome) return outcome;
  const { success, data } = mapping.safeParse(outcome.parsed);
  if (success) return { value: data };
  const why = 'the file does not hold fields with their values';
  return { where, why, fix: 'begin with a field, as in "subject: Welcome"' };
}

type Parsed = { parsed: unknown } | Broken;

async function parsePart({ where, size }: DirectoryPart, path: string): Promise<Parsed> {
  if (size > FILE_BYTES) {
    return { where, why: 'the file is above 16 MiB', fix: 'make it smaller, or remove it' };
  }
  const bytes = await readFile(join(path, where)).catch((error: unknown) => {
    if (codeOf(error) !== '') return undefined;
    throw error;
  });
  if (bytes === undefined) return { where, ...UNUSABLE.unreadable };
  let text: string | undefined;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (where.toLowerCase().endsWith('.json')) return { parsed: JSON.parse(text) };
    const document = parseDocument(text, { logLevel: 'error' });
    const [error] = document.errors;
    if (!error) return { parsed: document.toJS({ maxAliasCount: 100 }) };
    const at = error.linePos ? `:${error.linePos[0].line}:${error.linePos[0].col}` : '';
    const why = `the YAML is malformed here (${error.code.toLowerCase().replaceAll('_', ' ')})`;
    const fix = 'mend the indentation, or put quotes around values that hold ": " or " #"';
    return { where: `${where}${at}`, why, fix };
  } catch (error) {
    if (text === undefined && error instanceof TypeError)
      return { where, why: 'the text is not UTF-8', fix: 'save the file as UTF-8' };
    // Thrown for an alias without an anchor, and for too many aliases.
    if (error instanceof ReferenceError)
      return { where, why: 'an alias (*name) cannot be resolved', fix: 'write the value out' };
    if (text === undefined || !(error instanceof SyntaxError)) throw error;
    const before = text.slice(0, faultAt(text)).split(/\r\n|\n|\r/);
    const fix = 'mend the syntax: a comma, a quote or a bracket is missing, or one too many';
    const place = `${where}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    return { where: place, why: 'the JSON is malformed here', fix };
  }
}

/** What follows a token of each kind where a part of JSON is expected; no other token may come. */
const grammar: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  value: { scalar: [], string: [], '{': ['first member'], '[': ['first item'] },
  'first member': { '}': [], string: ['colon', 'value', 'member'] },
  member: { '}': [], ',': ['key', 'colon', 'value', 'member'] },
  key: { string: [] },
  colon: { ':': [] },
  'first item': {
    ']': [],
    scalar: ['item'],
    string: ['item'],
    '{': ['first member', 'item'],
    '[': ['first item', 'item'],
  },
  item: { ']': [], ',': ['value', 'item'] },
};

/** Returns where a text stops being JSON: at the first invalid token, or at its end. */
export function faultAt(text: string): number {
  const expected = ['value'];
  for (let end = 0; ;) {
    const start = matchEnd(SPACE, text, end) ?? end;
    const token = readToken(text, start);
    if (token === undefined) return start;
    if ('fault' in token) return token.fault;
    const next = grammar[expected.pop() ?? '']?.[token.kind];
    if (next === undefined) return start;
    expected.push(...next.toReversed());
    end = token.end;
  }
}

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
  for (let end: number | undefined = at; end !== undefined; end = matchEnd(STRETCH, text, at))
    at = end;
  if (text[at] === '"') return { kind: 'string', end: at + 1 };
  // For an unclosed quote, the opening position is the most useful one to report.
  return { fault: at === text.length ? start : at };
}

function matchEnd(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}

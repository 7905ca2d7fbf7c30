/**
 * Reads one template from disk and returns the fields that it states, or the reason why it cannot
 * be read.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { faultAt } from './json-syntax.ts';
import type { Entry, DirectoryPart, Unusable } from './directory-listing.ts';

/**
 * Limits the size of a file. No template comes near it, and a stray dump must not be loaded into
 * memory.
 */
const FILE_BYTES = 16 * 1024 * 1024;

interface Broken {
  where: string;
  why: string;
  fix: string;
}

/** The fields that a template states, or the reason why it cannot be read. */
export type Stated = { value: Record<string, unknown> } | Broken;

const mapping = z.record(z.string(), z.unknown());

/** Returns all fields that the files of a template state, unchanged. */
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
  const text = decode(bytes);
  if (text === undefined) {
    return { where, why: 'the text is not UTF-8', fix: 'save the file as UTF-8' };
  }
  return where.toLowerCase().endsWith('.json') ? parseJson(where, text) : parseYaml(where, text);
}

/**
 * Decodes a text and drops a byte order mark. Returns undefined if the bytes are not valid UTF-8.
 */
function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function parseJson(where: string, text: string): Parsed {
  try {
    return { parsed: JSON.parse(text) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return {
      where: `${where}:${positionOf(text, faultAt(text))}`,
      why: 'the JSON is malformed here',
      fix: 'mend the syntax: a comma, a quote or a bracket is missing, or one too many',
    };
  }
}

/** Returns the line and column, both counted from 1. */
function positionOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
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

/** Lists the templates in a directory by their file names, and derives a name for that state. */
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { Invalid } from '../../domain/errors.ts';
import { unreadable } from '../shared/files/local-file.ts';

export interface Entry {
  key: string;
  /** The path relative to the directory, with forward slashes. */
  where: string;
  form: 'file' | 'folder' | Unusable;
  /** The files of the template, with paths relative to the directory. */
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

/** Returns all templates by key and path. Throws Invalid if the directory does not exist. */
export async function listEntries(path: string): Promise<Entry[]> {
  const names = await readdir(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') {
      throw new Invalid(`${path}: this is no directory; name one in the configuration`);
    }
    throw unreadable(path, error, 'directory');
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
export function readingOf(entries: readonly Entry[]): string {
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
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === undefined) throw error;
    if (code === 'ELOOP') return { fault: 'broken link' };
    if (code !== 'ENOENT') return { fault: 'unreadable' };
    const itself = await lstat(join(path, where)).catch(() => undefined);
    return { fault: itself ? 'broken link' : 'gone' };
  }
}

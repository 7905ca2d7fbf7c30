/**
 * Loads the module named by `contacts.map`. It is loaded once per process, so that the code that
 * runs is the code that was hashed.
 */
import { hash } from 'node:crypto';
import { createRequire } from 'node:module';
import { Invalid } from '../domain/errors.ts';
import { readSmallFile } from '../domain/values/config-file.ts';
import type { MapRecord } from '../domain/record-mapping.ts';
import type { Mapping } from '../sources/shared/mapped-source.ts';

export interface LoadedMap extends Mapping {
  /** The hash of the module's text, without the modules that it imports. */
  hash: string;
  /** Whether the module exports the list of fields that it reads. */
  saysReads: boolean;
}

const loaded = new Map<string, LoadedMap>();

/** Loads the module. If it cannot be used, throws Invalid with a one-line message. */
export function loadMap(path: string): LoadedMap {
  const known = loaded.get(path);
  if (known) return known;
  let text: Buffer;
  try {
    text = readSmallFile(path);
  } catch (error) {
    throw new Invalid(`${path}: contacts.map cannot be read (${codeOf(error) ?? 'unknown'})`, {
      fix: 'correct the path',
    });
  }
  const found = moduleAt(path);
  const map = memberOf(found, 'default');
  if (!isMap(map)) {
    throw new Invalid(`${path}: has no default export that is a function`, { fix: example });
  }
  const reads = memberOf(found, 'reads') ?? [];
  if (!isNames(reads)) {
    throw new Invalid(`${path}: reads is no list of fields`, {
      fix: "export const reads = ['email']",
    });
  }
  const saysReads = reads.length > 0;
  const fresh = { name: path, map, reads, saysReads, hash: hash('sha256', text.toString('utf8')) };
  loaded.set(path, fresh);
  return fresh;
}

const example = 'write export default function map(record) { return { ...record }; }';

function moduleAt(path: string): unknown {
  try {
    return createRequire(path)(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING') {
      const mend = 'put it elsewhere, or write it in JavaScript';
      throw new Invalid(`${path}: TypeScript is not run under node_modules`, { fix: mend });
    }
    if (code === 'ERR_REQUIRE_ASYNC_MODULE') {
      throw new Invalid(`${path}: waits (await) while it is loaded`, {
        fix: 'have it begin at once',
      });
    }
    const name = error instanceof Error ? error.name : 'it throws';
    // Node reports the line of the error in the first line of the stack.
    const stack = error instanceof Error ? (error.stack ?? '') : '';
    const line = /^\S*:(\d+)$/m.exec(stack.split('\n')[0] ?? '')?.[1];
    const place = line === undefined ? '' : `:${line}`;
    throw new Invalid(`${path}${place}: cannot be loaded (${code ?? name})`, {
      fix: `try: node ${path}`,
    });
  }
}

function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null;
  return isObject && name in value ? Reflect.get(value, name) : undefined;
}

function isMap(value: unknown): value is MapRecord {
  return typeof value === 'function';
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '');
}

function codeOf(error: unknown): string | undefined {
  const code = memberOf(error, 'code');
  return typeof code === 'string' ? code : undefined;
}

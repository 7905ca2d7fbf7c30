/**
 * Creates the sources that a configuration names, and loads only their code: that of all types
 * takes a twentieth of a short command. The module of `contacts.map` is loaded once per process, so
 * that the code that runs is the code that was hashed.
 */
import type { Config } from '../config/config.ts';
import { traitsOf } from '../config/schema/source-types.ts';
import { systemClock } from '../http/system-clock.ts';
import { flagsIn } from '../records/contact/values/field-statement.ts';
import { vocabulary } from '../records/contact/values/value-vocabulary.ts';
import { codeOf, Invalid } from '../domain/errors.ts';
import { standardInput } from '../sources/shared/files/file-origin.ts';
import { mappedSource, type Mapping } from '../sources/shared/mapped-source.ts';
import type { WriteBack, Source } from '../sources/source.ts';
import { hash } from 'node:crypto';
import { createRequire } from 'node:module';
import { readSmallFile } from '../domain/values/config-file.ts';
import type { MapRecord } from '../domain/record-mapping.ts';

/** Shared by the whole process, because standard input can be read only once. */
const input = standardInput(() => process.stdin);
const surroundings = { clock: systemClock, random: Math.random, input };

type Contacts = NonNullable<Config['contacts']>;
type Templates = NonNullable<Config['templates']>;

/** Creates the sources of a configuration. Each call creates another one. */
export interface Sources {
  contacts: (() => Source) | undefined;
  templates: (() => Source) | undefined;
  returns: (() => WriteBack) | undefined;
}

/** What is not named is undefined. Throws Invalid if `contacts.map` cannot be used. */
export async function loadSources({ contacts, templates }: Config): Promise<Sources> {
  return {
    contacts: contacts && (await contactSource(contacts)),
    templates: templates && (await templateSource(templates)),
    returns: contacts?.returns && (await contactReturns(contacts.source, contacts.returns)),
  };
}

async function contactSource(contacts: Contacts): Promise<() => Source> {
  const { map, source, id } = contacts;
  if (map === undefined) return sourceCreator(source, id, () => optOutsOf(contacts));
  const mapping = loadMap(map);
  if (traitsOf(source.type)?.readsNamedFields && !mapping.saysReads) {
    const why = `does not say which fields it reads, and ${source.type} gives none unasked`;
    throw new Invalid(`${mapping.name}: ${why}`, { fix: "export const reads = ['…']" });
  }
  // The mapping writes the opt-out field, so the source does not know it.
  const create = await sourceCreator(source, id);
  return () => mappedSource(create(), mapping);
}

/** Returns a source by its options alone, to read a sample: no column has a purpose yet. */
export async function openSource(source: Contacts['source']): Promise<Source> {
  return (await sourceCreator(source, ''))();
}

async function sourceCreator(
  source: Contacts['source'],
  id: string,
  optOuts: () => ReturnType<typeof optOutsOf> = () => [],
): Promise<() => Source> {
  if (source.type === 'csv') {
    const { csvSource } = await import('../sources/csv/csv-source.ts');
    return () => csvSource(source, surroundings);
  }
  if (source.type === 'xlsx') {
    const { xlsxSource } = await import('../sources/xlsx/xlsx-source.ts');
    return () => xlsxSource(source, surroundings);
  }
  if (source.type === 'ndjson') {
    const { ndjsonSource } = await import('../sources/ndjson/ndjson-source.ts');
    return () => ndjsonSource(source, surroundings);
  }
  if (source.type === 'http') {
    const { httpSource } = await import('../sources/http/http-source.ts');
    return () => httpSource(source, { ...surroundings, id });
  }
  if (source.type === 'hubspot') {
    const { hubspotSource } = await import('../sources/hubspot/hubspot-source.ts');
    return () => hubspotSource(source, surroundings);
  }
  if (source.type === 'salesforce') {
    const { salesforceSource } = await import('../sources/salesforce/salesforce-source.ts');
    return () => salesforceSource(source, { ...surroundings, unsubscribed: optOuts() });
  }
  const { sqlSource } = await import('../sources/sql/sql-source.ts');
  return () => sqlSource(source, { ...surroundings, id });
}

/** Returns the opt-out fields and how to interpret them, for a source that searches by them. */
function optOutsOf({ unsubscribed, channels }: Contacts) {
  const all = flagsIn('contacts.unsubscribed', unsubscribed).map(({ stated }) => stated);
  const byChannel = channels.flatMap(({ subscription }) => {
    if (typeof subscription === 'string' || !('optOut' in subscription)) return [];
    const { optOut: field, yes, no } = subscription;
    return [{ field, yes, no }];
  });
  return [...all, ...byChannel].map((stated) => {
    if (typeof stated === 'object' && 'when' in stated) return stated;
    const { field, ...own } = typeof stated === 'string' ? { field: stated } : stated;
    const read = vocabulary('unsubscribed', own, systemClock.now);
    const says = (value: unknown): 'yes' | 'no' | 'unknown' => {
      const found = read(value);
      if (typeof found === 'object') return 'unknown';
      return found === 'yes' ? 'yes' : 'no';
    };
    return { field, says };
  });
}

async function contactReturns(
  source: Contacts['source'],
  returns: NonNullable<Contacts['returns']>,
): Promise<() => WriteBack> {
  if (returns.type === 'http') {
    const { httpReturns } = await import('../sources/http/http-source.ts');
    return () => httpReturns(returns, surroundings);
  }
  if (returns.type === 'csv') {
    const { csvReturns } = await import('../sources/shared/files/file-write-back.ts');
    return () => csvReturns(returns);
  }
  if (returns.type === 'ndjson') {
    const { ndjsonReturns } = await import('../sources/shared/files/file-write-back.ts');
    return () => ndjsonReturns(returns);
  }
  if (returns.type === 'hubspot' && source.type === 'hubspot') {
    const { hubspotReturns } = await import('../sources/hubspot/hubspot-source.ts');
    return () => hubspotReturns(source, returns, surroundings);
  }
  if (returns.type === 'salesforce' && source.type === 'salesforce') {
    const { salesforceReturns } = await import('../sources/salesforce/salesforce-source.ts');
    return () => salesforceReturns(source, returns, surroundings);
  }
  if (returns.type === 'sql') {
    const { sqlReturns } = await import('../sources/sql/sql-source.ts');
    const { url, statement, allowPlain = false, ...rest } = returns;
    if (url !== undefined) {
      return () => sqlReturns(statement, { ...rest, url, allowPlain }, surroundings);
    }
    if (source.type === 'sql') return () => sqlReturns(statement, source, surroundings);
  }
  throw new Error('returns and source were found to fit when the configuration was read');
}

async function templateSource({ source }: Templates): Promise<() => Source> {
  if (source.type === 'directory') {
    const { directorySource } = await import('../sources/directory/directory-source.ts');
    return () => directorySource(source);
  }
  if (source.type === 'http') {
    const { httpSource } = await import('../sources/http/http-source.ts');
    return () => httpSource(source, { ...surroundings, id: 'key' });
  }
  const { ndjsonSource } = await import('../sources/ndjson/ndjson-source.ts');
  return () => ndjsonSource(source, surroundings);
}

interface LoadedMap extends Mapping {
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
    throw new Invalid(`${path}: contacts.map cannot be read (${codeOf(error) || 'unknown'})`, {
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
    throw new Invalid(`${path}${place}: cannot be loaded (${code || name})`, {
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

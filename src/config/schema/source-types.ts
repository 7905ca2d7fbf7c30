/** Lists the types of sources and of write-back, with what the schema has to know of each. */
import { z } from 'zod';
import { placeOf } from '../../domain/values/config-file.ts';
import { csvOptions, csvReturnsOptions } from '../../sources/csv/options.ts';
import { directoryOptions } from '../../sources/directory/options.ts';
import { httpOptions, httpReturnsOptions } from '../../sources/http/options.ts';
import { hubspotOptions, hubspotReturnsOptions } from '../../sources/hubspot/options.ts';
import { ndjsonOptions, ndjsonReturnsOptions } from '../../sources/ndjson/options.ts';
import { salesforceOptions, salesforceReturnsOptions } from '../../sources/salesforce/options.ts';
import { absoluteAddress, sqlOptions, sqlReturnsOptions } from '../../sources/sql/options.ts';
import { xlsxOptions } from '../../sources/xlsx/options.ts';

export const contactSource = z
  .discriminatedUnion('type', [
    csvOptions,
    xlsxOptions,
    ndjsonOptions,
    httpOptions,
    hubspotOptions,
    salesforceOptions,
    sqlOptions,
  ])
  .describe('Where the CRM records come from');

export const templateSource = z
  .discriminatedUnion('type', [directoryOptions, ndjsonOptions, httpOptions])
  .describe('Where the templates come from');

export const returns = z
  .discriminatedUnion('type', [
    csvReturnsOptions,
    ndjsonReturnsOptions,
    httpReturnsOptions,
    sqlReturnsOptions,
    hubspotReturnsOptions,
    salesforceReturnsOptions,
  ])
  .describe(
    'Write-back: how opt-outs on the platform are reported to the CRM; by default they are not reported',
  );

interface Traits {
  /** Whether it can always read a single record; `http` can if `one` is configured. */
  readsOne: boolean;
  /** The field that holds the id of a record; undefined: the configuration may name any. */
  id?: string;
  /** Whether it reads only the fields that the configuration names. */
  readsNamedFields: boolean;
}

const traits: Readonly<Record<z.output<typeof contactSource>['type'], Traits>> = {
  csv: { readsOne: false, readsNamedFields: false },
  xlsx: { readsOne: false, readsNamedFields: false },
  ndjson: { readsOne: false, readsNamedFields: false },
  http: { readsOne: false, readsNamedFields: false },
  hubspot: { readsOne: true, id: 'id', readsNamedFields: true },
  salesforce: { readsOne: true, id: 'Id', readsNamedFields: true },
  sql: { readsOne: true, readsNamedFields: true },
};

const traitsByType = new Map<unknown, Traits>(Object.entries(traits));

/** Returns the properties of a type of contact source; undefined: there is no such type. */
export function traitsOf(type: unknown): Traits | undefined {
  return traitsByType.get(type);
}

/** Returns whether a source can read a single record. The source may be invalid otherwise. */
export function readsOne(source: unknown): boolean {
  if (typeof source !== 'object' || source === null) return false;
  if ('type' in source && traitsOf(source.type)?.readsOne) return true;
  return 'one' in source && Boolean(source.one);
}

type Options =
  | z.output<typeof contactSource>
  | z.output<typeof templateSource>
  | z.output<typeof returns>;

/** Makes the paths in a source's options absolute; they are relative to the configuration file. */
export function withAbsolutePaths<T extends Options>(
  options: T,
  absolute: (path: string) => string,
): T {
  const placed = { ...options };
  if (placed.type === 'sql') {
    if (placed.url !== undefined) placed.url = absoluteAddress(placed.url, absolute);
    if (placed.ca !== undefined) placed.ca = absolute(placed.ca);
  }
  if ('path' in placed && placeOf(placed.path) === 'file') placed.path = absolute(placed.path);
  if ('tokenFile' in placed) placed.tokenFile = placed.tokenFile && absolute(placed.tokenFile);
  if ('auth' in placed && placed.auth.privateKeyFile) {
    placed.auth = { ...placed.auth, privateKeyFile: absolute(placed.auth.privateKeyFile) };
  }
  return placed;
}

/** Creates the source that a configuration names. config/schema/source-types.ts lists the types. */
import type { Config } from '../../config/config.ts';
import { traitsOf } from '../../config/schema/source-types.ts';
import { systemClock } from '../../http/system-clock.ts';
import { flagsIn, type ListedFlag } from '../../records/contact/values/field-statement.ts';
import { vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { Invalid } from '../../domain/errors.ts';
import { csvReturns } from '../../sources/csv/write-back.ts';
import { csvSource } from '../../sources/csv/csv-source.ts';
import { directorySource } from '../../sources/directory/directory-source.ts';
import { httpReturns } from '../../sources/http/write-back.ts';
import { httpSource } from '../../sources/http/http-source.ts';
import { hubspotReturns } from '../../sources/hubspot/write-back.ts';
import { hubspotSource } from '../../sources/hubspot/hubspot-source.ts';
import { ndjsonReturns } from '../../sources/ndjson/write-back.ts';
import { standardInput } from '../../sources/shared/files/standard-input.ts';
import { mappedSource } from '../../sources/shared/mapped-source.ts';
import { ndjsonSource } from '../../sources/ndjson/ndjson-source.ts';
import { salesforceReturns } from '../../sources/salesforce/write-back.ts';
import { salesforceSource } from '../../sources/salesforce/salesforce-source.ts';
import type { WriteBack } from '../../sources/write-back.ts';
import type { Source } from '../../sources/source.ts';
import { sqlReturns } from '../../sources/sql/write-back.ts';
import { sqlSource } from '../../sources/sql/sql-source.ts';
import { trytonSource } from '../../sources/tryton/tryton-source.ts';
import { xlsxSource } from '../../sources/xlsx/xlsx-source.ts';
import { loadMap } from './mapping-module.ts';

/** Shared by the whole process, because standard input can be read only once. */
const input = standardInput(() => process.stdin);
const surroundings = { clock: systemClock, random: Math.random, input };

type Contacts = NonNullable<Config['contacts']>;

/** Creates the source of contacts. Throws Invalid if `contacts.map` cannot be used. */
export function contactSource(contacts: Contacts): Source {
  if (contacts.map === undefined) return unmapped(contacts);
  const mapping = loadMap(contacts.map);
  const { type } = contacts.source;
  if (traitsOf(type)?.readsNamedFields && !mapping.saysReads) {
    const why = `does not say which fields it reads, and ${type} gives none unasked`;
    throw new Invalid(`${mapping.name}: ${why}`, { fix: "export const reads = ['…']" });
  }
  // The mapping writes the opt-out field, so the source does not know it.
  return mappedSource(unmapped({ ...contacts, unsubscribed: undefined }), mapping);
}

function unmapped({ source, id, unsubscribed }: Contacts): Source {
  if (source.type === 'http') return httpSource(source, { ...surroundings, id });
  if (source.type === 'sql') return sqlSource(source, { ...surroundings, id });
  if (source.type === 'hubspot') return hubspotSource(source, surroundings);
  if (source.type === 'tryton') return trytonSource(source, surroundings);
  if (source.type === 'salesforce') {
    return salesforceSource(source, { ...surroundings, unsubscribed: optOutsOf(unsubscribed) });
  }
  if (source.type === 'xlsx') return xlsxSource(source, surroundings);
  return source.type === 'csv'
    ? csvSource(source, surroundings)
    : ndjsonSource(source, surroundings);
}

/** Returns the opt-out fields and how to interpret them, for a source that searches by them. */
function optOutsOf(stated: Contacts['unsubscribed']) {
  return flagsIn('contacts.unsubscribed', stated).map((one) => optOutOf(one.stated));
}

function optOutOf(stated: ListedFlag['stated']) {
  if (typeof stated === 'object' && 'when' in stated) return stated;
  const { field, ...own } = typeof stated === 'string' ? { field: stated } : stated;
  const read = vocabulary('unsubscribed', own, systemClock.now);
  const says = (value: unknown): 'yes' | 'no' | 'unknown' => {
    const found = read(value);
    if (typeof found === 'object') return 'unknown';
    return found === 'yes' ? 'yes' : 'no';
  };
  return { field, says };
}

/**
 * Creates the write-back that reports opt-outs to the CRM, or returns undefined if none is
 * configured. HubSpot, Salesforce and SQL use the connection of their source.
 */
export function contactReturns({
  source,
  returns,
}: NonNullable<Config['contacts']>): WriteBack | undefined {
  if (!returns) return undefined;
  if (returns.type === 'http') return httpReturns(returns, surroundings);
  if (returns.type === 'csv') return csvReturns(returns);
  if (returns.type === 'ndjson') return ndjsonReturns(returns);
  if (returns.type === 'hubspot' && source.type === 'hubspot') {
    return hubspotReturns(source, returns, surroundings);
  }
  if (returns.type === 'salesforce' && source.type === 'salesforce') {
    return salesforceReturns(source, returns, surroundings);
  }
  if (returns.type === 'sql') {
    const { url, statement, allowPlain = false, ...rest } = returns;
    if (url !== undefined) {
      return sqlReturns(statement, { ...rest, url, allowPlain }, surroundings);
    }
    if (source.type === 'sql') return sqlReturns(statement, source, surroundings);
  }
  throw new Error('returns and source were found to fit when the configuration was read');
}

/** Creates the source of templates. */
export function templateSource({ source }: NonNullable<Config['templates']>): Source {
  if (source.type === 'http') return httpSource(source, { ...surroundings, id: 'key' });
  return source.type === 'directory' ? directorySource(source) : ndjsonSource(source, surroundings);
}

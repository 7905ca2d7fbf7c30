/** From the configuration of a source to the source: the only list of those there are. */
import type { Config } from '../config/config.ts';
import { systemClock } from '../http/time.ts';
import { csvSource } from '../source/csv/csv.ts';
import { directorySource } from '../source/directory/directory.ts';
import { httpSource } from '../source/http/http.ts';
import { hubspotSource } from '../source/hubspot/hubspot.ts';
import { ndjsonSource } from '../source/ndjson/ndjson.ts';
import { salesforceSource } from '../source/salesforce/salesforce.ts';
import type { Source } from '../source/source.ts';
import { sqlSource } from '../source/sql/sql.ts';
import { trytonSource } from '../source/tryton/tryton.ts';

const surroundings = { clock: systemClock, random: Math.random };

export function contactSource(contacts: NonNullable<Config['contacts']>): Source {
  const { source, id, unsubscribed } = contacts;
  if (source.type === 'http') return httpSource(source, { ...surroundings, id });
  if (source.type === 'sql') return sqlSource(source, { ...surroundings, id });
  if (source.type === 'hubspot') return hubspotSource(source, surroundings);
  if (source.type === 'tryton') return trytonSource(source, surroundings);
  if (source.type === 'salesforce') {
    return salesforceSource(source, { ...surroundings, unsubscribed });
  }
  return source.type === 'csv'
    ? csvSource(source, surroundings)
    : ndjsonSource(source, surroundings);
}

export function templateSource({ source }: NonNullable<Config['templates']>): Source {
  if (source.type === 'http') return httpSource(source, { ...surroundings, id: 'key' });
  return source.type === 'directory' ? directorySource(source) : ndjsonSource(source, surroundings);
}

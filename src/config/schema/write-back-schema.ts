/** The YAML of the way back into the CRM, and what it needs of the source. */
import { normalize } from 'node:path';
import { z } from 'zod';
import { csvReturnsOptions } from '../../sources/csv/options.ts';
import { httpReturnsOptions } from '../../sources/http/options.ts';
import { hubspotReturnsOptions } from '../../sources/hubspot/options.ts';
import { ndjsonReturnsOptions } from '../../sources/ndjson/options.ts';
import { salesforceReturnsOptions } from '../../sources/salesforce/options.ts';
import { sqlReturnsOptions } from '../../sources/sql/options.ts';

export const returns = z
  .discriminatedUnion('type', [
    csvReturnsOptions,
    ndjsonReturnsOptions,
    httpReturnsOptions,
    sqlReturnsOptions,
    hubspotReturnsOptions,
    salesforceReturnsOptions,
  ])
  .describe('Where the CRM is told who left on the platform; without it nobody tells it');

/** What does not fit the rest of contacts, with the field it concerns. */
export function returnsFaults(given: {
  returns?: z.output<typeof returns> | undefined;
  source?: { type?: unknown; path?: unknown } | undefined;
  channels?: unknown;
}): [path: string[], message: string][] {
  const { returns: back, source } = given;
  if (back === undefined || source === undefined) return [];
  if ('path' in back && /^(-$|https?:)/i.test(back.path)) {
    return [[['path'], 'is no file that can be added to → name one']];
  }
  if ('path' in back && isText(source.path) && normalize(back.path) === normalize(source.path)) {
    return [[['path'], 'is the file of the source → name another one']];
  }
  if (back.type === 'sql' && back.url === undefined && source.type !== 'sql') {
    return [[['url'], 'is missing → add it: the source is no database']];
  }
  if (back.type !== 'hubspot' && back.type !== 'salesforce') return [];
  if (back.type !== source.type) {
    const message = `${back.type} is told with what its source has to get in → use the source ${back.type}, or another way back`;
    return [[['type'], message]];
  }
  const named = Object.keys((back.type === 'hubspot' ? back.subscriptions : back.fields) ?? {});
  const where = back.type === 'hubspot' ? 'subscriptions' : 'fields';
  const known = idsOf(given.channels);
  return named
    .filter((id) => !known.includes(id))
    .map((id) => [[where, id], 'is no channel of this mirror → write the id of one of channels']);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function idsOf(channels: unknown): unknown[] {
  if (!Array.isArray(channels)) return [];
  return channels.map((one: unknown) =>
    typeof one === 'object' && one !== null && 'id' in one ? one.id : undefined,
  );
}

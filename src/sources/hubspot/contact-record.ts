/**
 * A contact of HubSpot as a record: `{ id, createdAt, updatedAt, archived, properties }`.
 *
 * When contacts are merged, the ids of the merged ones name nothing any more. HubSpot lists these
 * ids in the remaining contact, and answers with that contact when one of them is asked for. An
 * opt-out of a merged contact is known here by its id. So the remaining contact is given once more
 * under the id of each merged one, like a person whose address has changed and whose opt-outs move
 * along. Several records of one address are one person, and the strictest of them counts.
 */
import { fieldAt } from '../../domain/values/record-field.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';

/** The ids of merged contacts, in two spellings: `7;8`, and `7:1700000000000;8:1700000000000`. */
export const mergedProperties = ['hs_merged_object_ids', 'hs_calculated_merged_vids'];

/** The answer that a contact comes from. */
export interface Origin {
  /** The place of a contact that has no id. */
  where: string;
  /** The text that it was read from, or more. */
  text: string;
  /** Whether archived contacts were asked for; not every answer says so itself. */
  archived: boolean;
}

/** Makes records of contacts. */
export interface ContactRecords {
  /** Returns the contact, and the same under the id of each contact merged into it. */
  all(value: unknown, origin: Origin): SourceRecord[];
  /**
   * Returns the contact that was answered when `id` was asked for: its own, or that of a merged
   * one.
   */
  one(id: string, value: unknown, origin: Origin): SourceRecord;
}

/** Creates the records of one reading. */
export function contactRecords(fields: readonly string[]): ContactRecords {
  const records = jsonRecords(fields);
  /** Returns the record under another id, if the value is an object at all. */
  const under = (id: string | undefined, value: unknown, { where, text, archived }: Origin) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    const named = id === undefined ? {} : { id };
    return records.recordOf(isObject ? { archived, ...value, ...named } : value, where, text);
  };
  return {
    all(value, origin) {
      const id = idOf(value);
      if (id === undefined) return [under(id, value, origin)];
      const losers = mergedInto(value).map((loser) =>
        under(loser, value, { ...origin, where: `contact ${loser}, merged into ${id}` }),
      );
      return [under(id, value, { ...origin, where: `contact ${id}` }), ...losers];
    },
    one: under,
  };
}

/** Returns the id of a contact; undefined when it has none that HubSpot gives. */
export function idOf(value: unknown): string | undefined {
  const id = fieldAt(value, 'id');
  const text = typeof id === 'number' ? String(id) : id;
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text : undefined;
}

/** Returns the ids of the contacts that were merged into this one. */
export function mergedInto(value: unknown): string[] {
  const lists = mergedProperties.map((name) => fieldAt(value, `properties.${name}`));
  const ids = lists
    .flatMap((list) => (typeof list === 'string' ? list.split(';') : []))
    .map((entry) => entry.split(':', 1)[0]?.trim() ?? '')
    .filter((id) => /^\d{1,20}$/.test(id) && id !== idOf(value));
  return [...new Set(ids)];
}

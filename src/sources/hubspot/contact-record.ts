/**
 * A contact of HubSpot as a record: `{ id, createdAt, updatedAt, archived, properties }`.
 *
 * When contacts are merged, nothing stands under the ids of the losers any more; HubSpot names
 * them in the winner, and answers the winner to whoever asks for one of them. But an opt-out of a
 * loser is known here by her id. So the winner's record is given once more under the id of each
 * loser: as somebody whose address has changed to the winner's, and who takes her opt-outs along.
 * Several records of one address are one person, and the strictest of them counts.
 */
import { fieldAt } from '../../domain/values/record-field.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';

/** The ids of the losers, in two spellings: `7;8`, and `7:1700000000000;8:1700000000000`. */
export const mergedProperties = ['hs_merged_object_ids', 'hs_calculated_merged_vids'];

/** Of an answer. */
export interface Origin {
  /** The place of one that has no id. */
  where: string;
  /** What it was read from, or more. */
  text: string;
  /** Whether those were asked for that are archived: not every answer says so itself. */
  archived: boolean;
}

export interface ContactRecords {
  /** The contact, and the same under the id of each that was merged into it. */
  all(value: unknown, origin: Origin): SourceRecord[];
  /** The contact that is answered when this id is asked for: its own, or that of a loser. */
  one(id: string, value: unknown, origin: Origin): SourceRecord;
}

export function contactRecords(fields: readonly string[]): ContactRecords {
  const records = jsonRecords(fields);
  /** Under that id, where it is an object at all. */
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

/** Undefined where it has none that HubSpot gives. */
export function idOf(value: unknown): string | undefined {
  const id = fieldAt(value, 'id');
  const text = typeof id === 'number' ? String(id) : id;
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text : undefined;
}

export function mergedInto(value: unknown): string[] {
  const lists = mergedProperties.map((name) => fieldAt(value, `properties.${name}`));
  const ids = lists
    .flatMap((list) => (typeof list === 'string' ? list.split(';') : []))
    .map((entry) => entry.split(':', 1)[0]?.trim() ?? '')
    .filter((id) => /^\d{1,20}$/.test(id) && id !== idOf(value));
  return [...new Set(ids)];
}

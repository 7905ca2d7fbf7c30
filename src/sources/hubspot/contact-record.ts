/**
 * Converts a HubSpot contact into a record: `{ id, createdAt, updatedAt, archived, properties }`.
 *
 * When contacts are merged, the ids of the merged contacts no longer refer to contacts of their
 * own. HubSpot lists these ids in the remaining contact, and returns that contact when one of them
 * is requested. The engine knows an opt-out of a merged contact by the merged id. The remaining
 * contact is therefore yielded again under the id of each merged contact, so that the opt-outs
 * recorded under that id carry over, as they do when a person's address changes. Several records
 * with the same address are one
 * person, and the strictest of them counts.
 */
import { fieldAt } from '../../domain/values/record-field.ts';
import { isRecord, jsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';

/** The ids of merged contacts, in two formats: `7;8` and `7:1700000000000;8:1700000000000`. */
export const mergedProperties = ['hs_merged_object_ids', 'hs_calculated_merged_vids'];

interface Origin {
  /** The position of a contact that has no id. */
  where: string;
  /** The text from which it was parsed; it may contain more than this contact. */
  text: string;
  /** Whether archived contacts were requested; not every response states this itself. */
  archived: boolean;
}

export function contactRecords(fields: readonly string[]) {
  const records = jsonRecords(fields);
  /** Returns the record under another id, provided that the value is an object. */
  const under = (id: string | undefined, value: unknown, { where, text, archived }: Origin) => {
    const named = id === undefined ? {} : { id };
    return records.recordOf(
      isRecord(value) ? { archived, ...value, ...named } : value,
      where,
      text,
    );
  };
  return {
    /** Returns the contact, and a copy under the id of each contact merged into it. */
    all(value: unknown, origin: Origin): SourceRecord[] {
      const id = idOf(value);
      if (id === undefined) return [under(id, value, origin)];
      const losers = mergedInto(value).map((loser) =>
        under(loser, value, { ...origin, where: `contact ${loser}, merged into ${id}` }),
      );
      return [under(id, value, { ...origin, where: `contact ${id}` }), ...losers];
    },
    /** Returns the contact that a request for an id brought, under its id or the merged one. */
    one: under,
  };
}

/** Returns the id of a contact, or undefined if it has no id in HubSpot's format. */
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

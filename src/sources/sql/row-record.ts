/** A row as a record. */
import { textOf } from '../../domain/values/record-field.ts';
import type { JsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import type { Relation } from './relation-query.ts';
import type { Raw } from './drivers/read-session.ts';
import { shown } from './value-text.ts';

export interface Records {
  /** With its key, and its id as a text; '' where it has none. */
  of(row: readonly Raw[], where: string): { record: SourceRecord; key: string; id: string };
}

export function recordsOf(
  { columns, at }: Relation,
  { json, zone }: { json: JsonRecords; zone: string | undefined },
): Records {
  return {
    of(row, where) {
      const values = columns.map((column, place) => shown(row[place] ?? null, column, zone));
      const value = Object.fromEntries(columns.map(({ name }, place) => [name, values[place]]));
      return {
        record: json.recordOf(value, where, row.some(mayHoldNul) ? String.raw`\u0000` : ''),
        key: textOf(values[at.key]) ?? '',
        id: textOf(values[at.id]) ?? '',
      };
    },
  };
}

/** In itself, or in JSON. */
function mayHoldNul(raw: Raw): boolean {
  return typeof raw === 'string' && (raw.includes('\0') || raw.includes(String.raw`\u0000`));
}

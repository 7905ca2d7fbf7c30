/** Represents a record as it was read, before merges and conversions are resolved. */
import { Unavailable } from '../../domain/errors.ts';
import { longId, type ObjectName } from './protocol/record-ids.ts';
import type { Shape, Spelling } from './field-selection.ts';

/** A record with the fields needed to resolve merges. */
export interface Row {
  id: string;
  object: ObjectName;
  isDeleted: boolean;
  /** The id of the remaining record, if this one was merged into it. */
  master: string | undefined;
  /** Whether the lead was converted, and the id of the contact that it became. */
  isConverted: boolean;
  contact: string | undefined;
  /** Every requested field, under its name in the configuration; null if it is empty or missing. */
  values: Record<string, unknown>;
}

/** Returns the value of a field by its name or dotted path. */
type Reads = (name: string, spelling: Spelling) => unknown;

/** Returns the row for a record. Throws Unavailable for a record without an id. */
export function rowOf({ object, fields }: Shape, read: Reads): Row {
  const id = idIn(read('Id', 'text'));
  if (id === undefined) {
    throw new Unavailable('Salesforce answered a record without its Id', { acted: 'maybe' });
  }
  const values = [...fields].map(([name, spelling]): [string, unknown] => {
    const value = spelling && read(name, spelling);
    return [name, name === 'Id' ? id : plain(value)];
  });
  return {
    id,
    object,
    isDeleted: read('IsDeleted', 'truth') === true,
    master: idIn(read('MasterRecordId', 'text')),
    isConverted: read('IsConverted', 'truth') === true,
    contact: idIn(read('ConvertedContactId', 'text')),
    values: Object.fromEntries(values),
  };
}

/** Reads fields from JSON. Each step of a path is a nested field, in Salesforce's spelling. */
export function fromJson(record: unknown): Reads {
  return (name) => name.split('.').reduce(stepInto, record);
}

/** Reads fields from a row of CSV. */
export function fromText(columns: ReadonlyMap<string, number>, cells: readonly string[]): Reads {
  return (name, spelling) => {
    const cell = cells[columns.get(name.toLowerCase()) ?? -1] ?? '';
    if (cell === '') return null;
    if (spelling === 'truth') return cell.toLowerCase() === 'true';
    return spelling === 'number' && Number.isFinite(Number(cell)) ? Number(cell) : cell;
  };
}

function stepInto(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Object.hasOwn(value, name)) return Reflect.get(value, name);
  const other = Object.keys(value).find((key) => key.toLowerCase() === name.toLowerCase());
  return other === undefined ? undefined : Reflect.get(value, other);
}

/**
 * Converts a time to ISO 8601, because Salesforce writes +0000 instead of Z. Returns other values
 * unchanged.
 */
function plain(value: unknown): unknown {
  if (typeof value !== 'string') return value ?? null;
  return value.replace(/^(\d{4}-\d\d-\d\dT[\d:.]+)\+0000$/, '$1Z');
}

function idIn(value: unknown): string | undefined {
  return typeof value === 'string' ? longId(value) : undefined;
}

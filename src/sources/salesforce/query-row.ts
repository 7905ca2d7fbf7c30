/** One record as it was read, before it is known whom it stands for. */
import { Unavailable } from '../../domain/errors.ts';
import { longId, type ObjectName } from './protocol/record-ids.ts';
import type { Shape, Spelling } from './field-selection.ts';

export interface Row {
  id: string;
  object: ObjectName;
  isDeleted: boolean;
  /** The record that was kept when this one was merged into it. */
  master: string | undefined;
  /** Of a lead: whether it was converted, and the contact that it became. */
  isConverted: boolean;
  contact: string | undefined;
  /** Every field that is asked for, by the name the configuration has; null: none, or empty. */
  values: Record<string, unknown>;
}

/** Answers the value of a field by its name or dotted path. */
type Reads = (name: string, spelling: Spelling) => unknown;

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

/** From JSON: each step of a path is a field of its own, in the case that Salesforce has it in. */
export function fromJson(record: unknown): Reads {
  return (name) => name.split('.').reduce(stepInto, record);
}

/** From a row of text. */
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

/** A time as ISO 8601 has it: what Salesforce writes as +0000 is Z. */
function plain(value: unknown): unknown {
  if (typeof value !== 'string') return value ?? null;
  return value.replace(/^(\d{4}-\d\d-\d\dT[\d:.]+)\+0000$/, '$1Z');
}

function idIn(value: unknown): string | undefined {
  return typeof value === 'string' ? longId(value) : undefined;
}

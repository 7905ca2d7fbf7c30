/** Of which records the events of a CRM tell. */
import { fieldAt } from '../model/field.ts';
import { textOf } from '../model/scalar.ts';

const longestId = 500;

/** When two of HubSpot's records become one, these name the others. */
const merged = ['primaryObjectId', 'newObjectId', 'mergedObjectIds'];

export interface Naming {
  format: 'standard' | 'hubspot';
  /** Dotted path. */
  id: string;
}

/**
 * Each id once. A body is an event or a list of them, and at the path stands an id or a list of
 * them; an event that names no record is passed over.
 */
export function idsIn(body: unknown, { format, id }: Naming): string[] {
  const fields = format === 'hubspot' ? [id, ...merged] : [id];
  const events: unknown[] = Array.isArray(body) ? body : [body];
  const named = events.flatMap((event) => fields.flatMap((field) => fieldAt(event, field)));
  return [...new Set(named.flatMap(idOf))];
}

function idOf(value: unknown): string[] {
  if (typeof value === 'boolean') return [];
  const text = textOf(value) ?? '';
  return text === '' || text.length > longestId ? [] : [text];
}

/** Of which records the events of a CRM tell. */
import { fieldAt, textOf } from '../domain/values/record-field.ts';

const longestId = 500;

/** When two of HubSpot's records become one, these name the others. */
const merged = ['primaryObjectId', 'newObjectId', 'mergedObjectIds'];

/** HubSpot's number for contacts. */
const contactType: unknown = '0-1';

export interface Naming {
  format: 'standard' | 'hubspot';
  /** Dotted path. */
  id: string;
}

export interface Named {
  ids: string[];
  /** Those of them that the CRM has erased for good, as it says: for privacy. */
  erased: string[];
  /** There are events of something else, which ask for nothing. */
  others: boolean;
}

/**
 * Each id once. A body is an event or a list of them, and at the path stands an id or a list of
 * them; an event that names no record is passed over.
 */
export function toldIn(body: unknown, { format, id }: Naming): Named {
  const fields = format === 'hubspot' ? [id, ...merged] : [id];
  const events: unknown[] = Array.isArray(body) ? body : [body];
  const ours = format === 'hubspot' ? events.filter(isOfContact) : events;
  const idsAt = (some: unknown[], paths: string[]) => [
    ...new Set(
      some.flatMap((event) => paths.flatMap((path) => fieldAt(event, path))).flatMap(idOf),
    ),
  ];
  return {
    ids: idsAt(ours, fields),
    erased: format === 'hubspot' ? idsAt(ours.filter(isErasure), [id]) : [],
    others: ours.length < events.length,
  };
}

/**
 * What HubSpot tells of companies or deals, and of who belongs to whom, is of no contact. Its older
 * events name the object (`contact.creation`), the newer ones its number (`object.creation`).
 */
function isOfContact(event: unknown): boolean {
  const type = fieldAt(event, 'subscriptionType');
  if (typeof type !== 'string') return true;
  const [object, what] = type.split('.');
  if (what === 'associationChange') return false;
  return object === 'object'
    ? [undefined, contactType].includes(fieldAt(event, 'objectTypeId'))
    : object === 'contact';
}

/** What of an object is erased has to say that it is a contact: nothing is erased on a guess. */
function isErasure(event: unknown): boolean {
  const type = fieldAt(event, 'subscriptionType');
  if (type === 'contact.privacyDeletion') return true;
  return type === 'object.privacyDeletion' && fieldAt(event, 'objectTypeId') === contactType;
}

function idOf(value: unknown): string[] {
  if (typeof value === 'boolean') return [];
  const text = textOf(value) ?? '';
  return text === '' || text.length > longestId || !text.isWellFormed() ? [] : [text];
}

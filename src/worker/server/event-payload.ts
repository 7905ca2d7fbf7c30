/** Finds the records that a CRM's events name. */
import { fieldAt, textOf } from '../../domain/values/record-field.ts';

const longestId = 500;

/** When HubSpot records are merged, these fields name the other records. */
const merged = ['primaryObjectId', 'newObjectId', 'mergedObjectIds'];

/** HubSpot's type number for contacts. */
const contactType: unknown = '0-1';

/** Defines where a CRM's events name their record. */
export interface Naming {
  format: 'standard' | 'hubspot';
  /** The dotted path of the id. */
  id: string;
}

/** The records that a body names, without duplicates. */
export interface Named {
  ids: string[];
  /** The subset of `ids` that, according to the CRM, was erased for privacy. */
  erased: string[];
  /** Whether there are events about other objects, which require no action. */
  others: boolean;
}

/**
 * Returns the records that a body names. A body is one event or a list of events, and the path
 * leads to one id or a list of ids. An event that names no record is skipped.
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
 * Returns whether a HubSpot event concerns a contact. Events about companies, deals and
 * associations do not. Older events name the object (`contact.creation`), newer ones its type
 * number (`object.creation`).
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

/**
 * Returns whether the event states that a contact was erased. An event about an object must state
 * that the object is a contact, because nothing may be erased on a guess.
 */
function isErasure(event: unknown): boolean {
  const type = fieldAt(event, 'subscriptionType');
  if (type === 'contact.privacyDeletion') return true;
  return type === 'object.privacyDeletion' && fieldAt(event, 'objectTypeId') === contactType;
}

/** Returns the id as text, or nothing for a value that cannot be an id. */
function idOf(value: unknown): string[] {
  if (typeof value === 'boolean') return [];
  const text = textOf(value) ?? '';
  return text === '' || text.length > longestId || !text.isWellFormed() ? [] : [text];
}

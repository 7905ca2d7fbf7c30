/**
 * Selects the fields to read for each object: the fields that the configuration names, if the
 * object has them, and those that this source itself needs. The API describes the fields. A name
 * that no object has is a mistake in the configuration. A text that could be more than a name never
 * reaches a query.
 */
import { pathSegment } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { listed, quoted, hintsFor } from '../shared/field-suggestions.ts';
import type { ObjectName } from './protocol/record-ids.ts';
import type { Session } from './api-session.ts';

/** How a value is represented in a format that contains only text. */
export type Spelling = 'truth' | 'number' | 'text';

export interface Shape {
  object: ObjectName;
  /** Every requested field with its representation; undefined if this object does not have it. */
  fields: ReadonlyMap<string, Spelling | undefined>;
  /** The fields that a query selects. */
  select: readonly string[];
}

/** A field that every response contains but no record has. */
const ANSWERED = 'attributes.type';
const fieldName = /^[A-Za-z]\w{0,80}(?:\.[A-Za-z]\w{0,80}){0,5}$/;
const needed = ['Id', 'IsDeleted', 'MasterRecordId', 'IsConverted', 'ConvertedContactId'];

const described = z.object({
  fields: z.array(
    z.object({ name: z.string(), type: z.string(), relationshipName: z.string().nullish() }),
  ),
});
type Described = z.infer<typeof described>['fields'];

/** Returns the shapes of objects. Throws Invalid for a field that none of them has. */
export async function describeShapes(
  session: Session,
  objects: readonly ObjectName[],
  fields: readonly string[],
): Promise<Shape[]> {
  const names = fields.filter((field) => field !== ANSWERED);
  for (const name of names) {
    if (fieldName.test(name)) continue;
    throw new Invalid(`${quoted(name)} is no name of a Salesforce field`, {
      fix: 'write it as Setup does',
    });
  }
  const found: [ObjectName, Described][] = [];
  for (const object of objects) {
    const { value } = await session.ask({ path: `/sobjects/${pathSegment(object)}/describe` });
    found.push([object, described.safeParse(value).data?.fields ?? []]);
  }
  const missing = names.filter((name) => found.every(([, there]) => !spellingOf(name, there)));
  if (missing.length > 0) {
    const all = found.flatMap(([, there]) =>
      there.flatMap(({ name, relationshipName }) =>
        relationshipName ? [name, `${relationshipName}.Name`] : name,
      ),
    );
    const hints = hintsFor(missing, all);
    const more = hints.length > 0 ? hints : [`fields found: ${listed([...new Set(all)])}`];
    const verb = objects.length > 1 ? 'have' : 'has';
    const what = `${objects.join(' and ')} ${verb} no field ${missing.map(quoted).join(', ')}`;
    throw new Invalid(`${session.host}: ${[what, ...more].join('; ')}`, {
      fix: 'correct the configuration, or let the user see the field',
    });
  }
  return found.map(([object, there]) => {
    const spellings = new Map(names.map((name) => [name, spellingOf(name, there)]));
    const own = needed.filter((name) => there.some((field) => field.name === name));
    const select = new Set([...own, ...names.filter((name) => spellings.get(name))]);
    return { object, fields: spellings, select: [...select] };
  });
}

/** The types of fields that hold no text, number or flag. */
const unreadable = ['base64', 'address', 'location', 'complexvalue'];

/** Returns the names of the fields of an object that can be read as values. */
export async function salesforceFields(session: Session, object: ObjectName): Promise<string[]> {
  const { value } = await session.ask({ path: `/sobjects/${pathSegment(object)}/describe` });
  const { fields = [] } = described.safeParse(value).data ?? {};
  return fields.filter(({ type }) => !unreadable.includes(type)).map(({ name }) => name);
}

/** Returns how a field is represented. Only the first step of a path is checked. */
function spellingOf(name: string, there: Described): Spelling | undefined {
  const [first, ...rest] = name.split('.');
  if (rest.length > 0) {
    return there.some((field) => field.relationshipName === first) ? 'text' : undefined;
  }
  const field = there.find((one) => one.name === name);
  if (!field) return undefined;
  if (field.type === 'boolean') return 'truth';
  return ['int', 'long', 'double', 'currency', 'percent'].includes(field.type) ? 'number' : 'text';
}

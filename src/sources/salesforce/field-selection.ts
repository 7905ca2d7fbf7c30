/**
 * What of each object is read: the fields that the configuration names, as far as the object has
 * them, and what this source needs itself. Which those are the API describes; a name that none of
 * the objects has is a slip of the pen, and one that could be more than a name reaches no query.
 */
import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { listed, nearest, quoted } from '../shared/field-suggestions.ts';
import type { ObjectName } from './protocol/record-ids.ts';
import type { Session } from './api-session.ts';

/** How a value is spelled where everything is text. */
export type Spelling = 'truth' | 'number' | 'text';

export interface Shape {
  object: ObjectName;
  /** Every field that is asked for, and how it is spelled; undefined: this object lacks it. */
  fields: ReadonlyMap<string, Spelling | undefined>;
  /** What a query has to select. */
  select: readonly string[];
}

/** What no record has, but every answer. */
const ANSWERED = 'attributes.type';
const fieldName = /^[A-Za-z]\w{0,80}(?:\.[A-Za-z]\w{0,80}){0,5}$/;
const needed = ['Id', 'IsDeleted', 'MasterRecordId', 'IsConverted', 'ConvertedContactId'];

const described = z.object({
  fields: z.array(
    z.object({ name: z.string(), type: z.string(), relationshipName: z.string().nullish() }),
  ),
});
type Described = z.infer<typeof described>['fields'];

/** Throws Invalid for a field that is none, or that no object has, and what a session throws. */
export async function shapesOf(
  session: Session,
  { objects, fields }: { objects: readonly ObjectName[]; fields: readonly string[] },
): Promise<Shape[]> {
  const names = fields.filter((field) => field !== ANSWERED);
  for (const name of names) {
    if (fieldName.test(name)) continue;
    throw new Invalid(`${quoted(name)} is no name of a Salesforce field → write it as Setup does`);
  }
  const found: [ObjectName, Described][] = [];
  for (const object of objects) {
    const { value } = await session.ask({ path: `/sobjects/${object}/describe` });
    found.push([object, described.safeParse(value).data?.fields ?? []]);
  }
  const missing = names.filter((name) => found.every(([, there]) => !spellingOf(name, there)));
  if (missing.length > 0) throw new Invalid(`${session.host}: ${missingMessage(missing, found)}`);
  return found.map(([object, there]) => shapeOf(object, there, names));
}

function shapeOf(object: ObjectName, there: Described, names: readonly string[]): Shape {
  const fields = new Map(names.map((name) => [name, spellingOf(name, there)]));
  const own = needed.filter((name) => there.some((field) => field.name === name));
  const asked = names.filter((name) => fields.get(name));
  return { object, fields, select: [...new Set([...own, ...asked])] };
}

/** Of a path, only its first step is known here. */
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

function missingMessage(missing: readonly string[], found: [ObjectName, Described][]): string {
  const objects = found.map(([object]) => object).join(' and ');
  const names = found.flatMap(([, there]) =>
    there.flatMap(({ name, relationshipName }) =>
      relationshipName ? [name, `${relationshipName}.Name`] : name,
    ),
  );
  const hints = missing.flatMap((name) => {
    const near = nearest(name, names);
    return near === undefined ? [] : [`did you mean ${quoted(near)} for ${quoted(name)}?`];
  });
  const there = hints.length > 0 ? hints : [`fields found: ${listed([...new Set(names)])}`];
  const what = `${objects} ${found.length > 1 ? 'have' : 'has'} no field ${missing.map(quoted).join(', ')}`;
  const fix = 'correct the configuration, or let the user see the field';
  return `${[what, ...there].join('; ')} → ${fix}`;
}

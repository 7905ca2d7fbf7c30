/** What is read: the columns of it that matter, and the statements that read them. */
import { Invalid } from '../../domain/errors.ts';
import { listed, nearest, quoted } from '../shared/field-suggestions.ts';
import type { SqlOptions } from './options.ts';
import type { Column, Raw, Session } from './drivers/read-session.ts';

export interface Relation {
  /** As it stands behind `from`. */
  from: string;
  /** Every column that is read; `at` names the places of some among them. */
  columns: Column[];
  at: { key: number; id: number; updatedAt: number | undefined };
}

/** Which columns of a table or query the configuration names. */
export interface RelationQuery {
  fields: readonly string[];
  /** The column that tells one record from another. */
  id: string;
}

/** Throws Invalid where one is not there; a part of a JSON column may be named by a dotted path. */
export async function relationOf(
  session: Session,
  options: SqlOptions,
  { fields, id }: RelationQuery,
): Promise<Relation> {
  const from = fromOf(session, options);
  const all = await session.columns(from);
  const { key = id, updatedAt } = options;
  const named = [...fields, id, key, ...(updatedAt === undefined ? [] : [updatedAt])];
  const found = named.map((field) => columnFor(field, all));
  const missing = named.filter((_, at) => found[at] === undefined);
  if (missing.length > 0) throw new Invalid(`${session.name}: ${lack(missing, all)}`);
  const columns = [...new Set(found.filter((column) => column !== undefined))];
  for (const { name } of columns) {
    if (all.filter((column) => column.name === name).length === 1) continue;
    const twice = `several columns are named ${quoted(name)}`;
    throw new Invalid(`${session.name}: ${twice} → give each a name of its own in query`);
  }
  const placeOf = (name: string) => {
    const at = columns.findIndex((column) => column.name === name);
    if (at >= 0) return at;
    const what = `${quoted(name)} is a part of a column, where a whole one is needed`;
    throw new Invalid(`${session.name}: ${what} → give it a name of its own in query`);
  };
  return {
    from,
    columns,
    at: {
      key: placeOf(key),
      id: placeOf(id),
      updatedAt: updatedAt === undefined ? undefined : placeOf(updatedAt),
    },
  };
}

function fromOf(session: Session, { table = '', query }: SqlOptions): string {
  if (query === undefined) return table.split('.').map(session.quote).join('.');
  // A comment at its end would swallow what follows.
  return `(\n${query.replace(/[\s;]+$/, '')}\n) ${session.quote('crm')}`;
}

/** By its exact name, else by the beginning of a dotted path. */
function columnFor(field: string, all: readonly Column[]): Column | undefined {
  const parts = field.split('.');
  const names = parts.map((_, at) => parts.slice(0, parts.length - at).join('.'));
  const [exact] = names;
  return names
    .map((name) => all.find((column) => column.name === name))
    .find((column) => column && (column.name === exact || mayNest(column)));
}

function mayNest({ holds, type = '' }: Column): boolean {
  return holds === 'json' || (holds === 'any' && /^jsonb?$/i.test(type));
}

function lack(missing: readonly string[], all: readonly Column[]): string {
  const what = missing.length === 1 ? 'there is no column' : 'there are no columns';
  const names = all.map(({ name }) => name);
  const asked = [...new Set(missing)];
  const hints = asked.flatMap((name) => {
    const near = nearest(name, names);
    return near === undefined ? [] : [`did you mean ${quoted(near)} for ${quoted(name)}?`];
  });
  return [
    `${what} ${listed(asked)}`,
    `columns found: ${listed(names)}`,
    ...hints,
    'correct the configuration or the query',
  ].join('; ');
}

/** A statement that grows, and the values bound in it so far. */
export interface Statement {
  values: Raw[];
  bind(value: Raw, column: Column): string;
}

export function statementFor(session: Session): Statement {
  const values: Raw[] = [];
  return {
    values,
    bind: (value, column) => session.place(values.push(value), column),
  };
}

/** Queries. What enters one is a checked name, an id, a time, or the condition of the options. */
import type { Shape } from './field-selection.ts';

export interface Query {
  shape: Shape;
  /** Conditions that all have to be met. */
  where?: readonly (string | undefined)[];
  order?: string;
}

export function textOf({ shape, where = [], order }: Query): string {
  const conditions = where.filter((one) => one !== undefined).map((one) => `(${one})`);
  return [
    `SELECT ${shape.select.join(', ')} FROM ${shape.object}`,
    ...(conditions.length > 0 ? [`WHERE ${conditions.join(' AND ')}`] : []),
    ...(order === undefined ? [] : [`ORDER BY ${order}`]),
  ].join(' ');
}

/** `ids`: long ones. */
export function isOneOf(field: string, ids: readonly string[]): string {
  return `${field} IN (${ids.map((id) => `'${id}'`).join(', ')})`;
}

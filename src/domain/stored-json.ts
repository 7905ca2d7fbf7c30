import type { z } from 'zod';
import { Invalid } from './errors.ts';
import { isObject } from './values/record-field.ts';

interface JsonCodec<Value> {
  encode(value: Value): string;
  /** Throws Invalid if the text is damaged or has another form. */
  decode(text: string): Value;
}

/**
 * Returns the codec of values that only this program writes, decoded without a check of their form.
 * `what` names the value in the error.
 */
export function storedJson<Value>(what: string): JsonCodec<Value> {
  const parse: JsonCodec<Value>['decode'] = JSON.parse;
  return codec(what, parse);
}

/** The codec of values from another program or version, or whose form has defaults. */
export function checkedJson<Value>(what: string, schema: z.ZodType<Value>): JsonCodec<Value> {
  return codec(what, (text) => schema.parse(JSON.parse(text)));
}

function codec<Value>(what: string, parse: JsonCodec<Value>['decode']): JsonCodec<Value> {
  return {
    encode: (value) => JSON.stringify(value),
    decode(text) {
      try {
        return parse(text);
      } catch (cause) {
        throw new Invalid(`${what} cannot be read: it is damaged, or of another version`, {
          fix: 'run the same version everywhere; if that is so, restore a backup of the snapshot',
          cause,
        });
      }
    },
  };
}

/** A row or a change with the decoded value of its body. */
export type Decoded<Row extends { body: string }, Value> = Row & { readonly value: Value };

/**
 * Returns what adds a body's decoded value to a row. The text is stored, hashed and compared;
 * decisions use the value. Throws Invalid for another form.
 */
export function decoder<Value>(schema: z.ZodType<Value>) {
  const body = checkedJson('the body of a record', schema);
  return <Row extends { body: string }>(row: Row): Decoded<Row, Value> => ({
    ...row,
    value: body.decode(row.body),
  });
}

/**
 * Returns the value of a JSON text, or undefined if the text is not JSON. A whole number that a
 * double cannot represent remains text, so that two ids never become equal.
 */
export function parseJson(text: string): unknown {
  try {
    if (!/\d{16}/.test(text)) return JSON.parse(text);
    return JSON.parse(text, (_, value: unknown, context?: { source?: string }) => {
      const isRounded = typeof value === 'number' && !Number.isSafeInteger(value);
      return isRounded && /^-?\d+$/.test(context?.source ?? '') ? context?.source : value;
    });
  } catch {
    return undefined;
  }
}

/** Returns a JSON value in which everything is changed that is no list and no object. */
export function mapLeaves(value: unknown, change: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => mapLeaves(one, change));
  if (!isObject(value)) return change(value);
  const entries = Object.entries(value).map(([name, one]) => [name, mapLeaves(one, change)]);
  return Object.fromEntries(entries);
}

/** The maximum depth of lists and objects that is accepted. No useful value is deeper. */
export const mostLevels = 500;

/** Returns whether a value is nested deeper than that, which would overflow recursive code. */
export function isTooDeep(value: unknown): boolean {
  let level: object[] = isObject(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === mostLevels) return true;
    level = level.flatMap((one) => Object.values(one).filter(isObject));
  }
  return false;
}

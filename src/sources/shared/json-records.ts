/** Checks JSON records, and adds the requested fields that are missing. */
import { fieldAt, fieldOrEnd } from '../../domain/values/record-field.ts';
import { listed, quoted } from './field-suggestions.ts';
import type { SourceRecord } from '../source.ts';

const LISTED_DEPTH = 3;

export type JsonRecords = ReturnType<typeof jsonRecords>;

/** Creates the checks of a read: a field that no record has is a mistake. */
export function jsonRecords(fields: readonly string[]) {
  const unseen = new Set(fields);
  let first: object | undefined;
  return {
    /** Returns the record for a value that was parsed from `text`, which may contain more. */
    recordOf(value: unknown, where: string, text: string): SourceRecord {
      if (!isRecord(value)) {
        const fix = 'give a JSON object for each record';
        return { where, broken: 'is no JSON object', fix };
      }
      if (text.includes('\\u0000') && holdsNul(value)) {
        return { where, broken: 'holds a NUL character', fix: 'remove it from the record' };
      }
      first ??= value;
      for (const field of unseen) if (fieldAt(value, field) !== undefined) unseen.delete(field);
      const absent = fields.filter((field) => fieldAt(value, field) === undefined);
      if (absent.length === 0) return { where, value };
      // A path that ends in a text or a list is not absent: its value cannot be read.
      const empty = absent.filter((field) => (fieldOrEnd(value, field) ?? null) === null);
      return { where, value: { ...value, ...Object.fromEntries(empty.map((at) => [at, null])) } };
    },
    /** Returns the error if no record had one of the requested fields, or undefined. */
    lacking(): string | undefined {
      if (first === undefined || unseen.size === 0) return undefined;
      const names = pathsOf(first, LISTED_DEPTH);
      return (
        `no record has ${[...unseen].map(quoted).join(', ')}; ` +
        `fields of the first one: ${listed(names)}; correct the configuration or the CRM`
      );
    },
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Avoids recursion, because a value may be nested very deeply. */
function holdsNul(value: unknown): boolean {
  const rest = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    if (typeof next === 'string' && next.includes('\0')) return true;
    if (typeof next !== 'object' || next === null) continue;
    for (const [name, inner] of Object.entries(next)) rest.push(name, inner);
  }
  return false;
}

function pathsOf(value: object, depth: number): string[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    const isNested = isRecord(inner) && depth > 1;
    return isNested ? pathsOf(inner, depth - 1).map((path) => `${name}.${path}`) : [name];
  });
}

/** Converts the schema's issues into messages. The text comes from keys, never from values. */
import type { z } from 'zod';
import { fixOf } from '../domain/schema-fault.ts';
import { spotOf, type Tree, valueAt } from './yaml-document.ts';
import { choicesOf, editorSchema, fieldsAt } from './editor-schema.ts';
import type { Mistake, Path } from './config-mistake.ts';

type Issue = z.core.$ZodIssue;
type Words = Pick<Mistake, 'wrong' | 'mend'>;

/** Looks up in the schema the texts that explain a path. */
interface Guide {
  /** Returns the purpose of a field in brackets, or '' if the schema states none. */
  meaning(path: Path): string;
  /** Returns the allowed words, if they are few and fixed. */
  words(path: Path): string[];
  /** Returns the allowed keys. If there is a choice, returns the keys for the given type. */
  keys(path: Path, type: unknown): string[];
}

/** Converts the schema's issues into mistakes. */
export function complain(issues: readonly Issue[], tree: Tree): Mistake[] {
  const guide = makeGuide();
  return issues.flatMap(chosen).flatMap((issue) => {
    const path = issue.path.filter((step) => typeof step !== 'symbol');
    if (issue.code !== 'unrecognized_keys') return [explain(issue, { path, tree, guide })];
    const known = guide.keys(path, valueAt(tree.value, [...path, 'type']));
    return issue.keys.map((key) => {
      const inner = [...path, key];
      const place = spotOf(tree, inner).key;
      return { path: inner, place, wrong: 'is not known here', mend: suggest(key, known) };
    });
  });
}

/**
 * Returns the issues of the closest alternative, for a value that may be a text or one of several
 * mappings.
 */
function chosen(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const branches = issue.errors.toSorted(
    (a, b) => Number(isOther(a)) - Number(isOther(b)) || strangeKeys(a) - strangeKeys(b),
  );
  const found = branches[0] ?? [];
  if (found.length === 0) return [issue];
  return found.flatMap((one) => chosen({ ...one, path: [...issue.path, ...one.path] }));
}

/** Returns whether the issues concern a value of an entirely different type. */
function isOther([first]: readonly Issue[]): boolean {
  if (first === undefined || first.path.length > 0) return false;
  if (first.code === 'invalid_union') return first.errors.length > 0 && first.errors.every(isOther);
  return first.code === 'invalid_type';
}

/** Returns how many keys of the value are unknown to an alternative. */
function strangeKeys(issues: readonly Issue[]): number {
  return issues.flatMap((one) => (one.code === 'unrecognized_keys' ? one.keys : [])).length;
}

function explain(issue: Issue, at: { path: Path; tree: Tree; guide: Guide }): Mistake {
  const { path, tree, guide } = at;
  const spot = spotOf(tree, path);
  const value = valueAt(tree.value, path);
  const absent = value === undefined && issue.code !== 'custom';
  const { wrong, mend } = absent ? missing(path, guide) : phrase(issue, { path, value, guide });
  const origin = value === undefined ? [] : spot.variables.map((name) => `\${${name}}`);
  const from = origin.length > 0 ? ` (it comes from ${origin.join(' and ')})` : '';
  const index: unknown = issue.code === 'custom' ? issue.params?.['at'] : undefined;
  const exact = typeof index === 'number' ? spot.inside?.(index) : undefined;
  const place = value === undefined ? spot.key : (exact ?? spot.value);
  return { path, place, wrong: wrong + from, mend };
}

function missing(path: Path, guide: Guide): Words {
  const key = path.at(-1);
  if (typeof key === 'number') return { wrong: 'is empty', mend: 'fill the entry or remove it' };
  const example = `"${key}: ${guide.words(path)[0] ?? '…'}"`;
  return { wrong: 'is missing', mend: `add ${example}${guide.meaning(path)}` };
}

function phrase(issue: Issue, at: { path: Path; value: unknown; guide: Guide }): Words {
  const meaning = at.guide.meaning(at.path);
  if (issue.code === 'invalid_type') {
    const [wanted, form] = kinds[issue.expected] ?? [issue.expected, issue.expected];
    const quotes = issue.expected === 'string' && typeof at.value !== 'object';
    const mend = quotes ? 'put it in quotes' : `write ${form}${meaning}`;
    return { wrong: `is not ${wanted}`, mend };
  }
  if (issue.code === 'invalid_value' || issue.code === 'invalid_union')
    return { wrong: 'is not known here', mend: `use ${at.guide.words(at.path).join(' or ')}` };
  if (issue.code === 'too_small' && issue.origin !== 'number')
    return { wrong: 'is empty', mend: `fill it${meaning}` };
  if (issue.code === 'too_small')
    return { wrong: `is below ${issue.minimum}`, mend: `write ${issue.minimum} or more` };
  if (issue.code === 'too_big')
    return { wrong: `is above ${issue.maximum}`, mend: `write ${issue.maximum} or less` };
  return { wrong: issue.message, mend: fixOf(issue) ?? `correct it${meaning}` };
}

/** Describes the types that zod expects: the name of each, and how it is written. */
const kinds: Record<string, [name: string, form: string]> = {
  string: ['a text', 'a text'],
  number: ['a number', 'a number'],
  int: ['a whole number', 'a whole number'],
  boolean: ['true or false', 'true or false'],
  object: ['a mapping', '"name: value" lines'],
  array: ['a list', '"- entry" lines'],
};

function makeGuide(): Guide {
  const schema = editorSchema();
  const choicesAt = (path: Path) => fieldsAt(schema, path).flatMap(choicesOf);
  return {
    meaning(path) {
      const text = fieldsAt(schema, path).find((field) => field.description)?.description;
      return text ? ` (${text})` : '';
    },
    words(path) {
      const words = choicesAt(path).flatMap(({ enum: all, const: one }) => all ?? one ?? []);
      return [...new Set(words.map((word) => JSON.stringify(word).replaceAll('"', '')))];
    },
    keys(path, type) {
      const choices = choicesAt(path);
      const typed = choices.filter((choice) => isOfType(choice, type));
      const fitting = typed.length > 0 ? typed : choices;
      return [...new Set(fitting.flatMap(({ properties }) => Object.keys(properties ?? {})))];
    },
  };
}

/** Returns whether an alternative belongs to a type, that is, whether its `type` is that word. */
function isOfType(choice: ReturnType<typeof fieldsAt>[number], type: unknown): boolean {
  const words = fieldsAt(choice, ['type']).flatMap(choicesOf);
  return words.some((word) => word.const !== undefined && word.const === type);
}

function suggest(key: string, known: readonly string[]): string {
  if (known.includes(key)) return 'remove it: it does not go with the other keys here';
  const near = known
    .map((name) => ({ name, steps: distance(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.max(2, name.length / 3) && steps < name.length)
    .toSorted((a, b) => a.steps - b.steps)[0];
  return near ? `did you mean ${near.name}?` : `known here: ${known.join(', ')}`;
}

/**
 * Returns the number of letters to add, drop or change (Levenshtein distance). Long keys are never
 * considered similar.
 */
function distance(a: string, b: string): number {
  if (a.length > 60) return Number.POSITIVE_INFINITY;
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const line = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const change = (above[column] ?? 0) + (letter === other ? 0 : 1);
      line.push(Math.min(change, (above[column + 1] ?? 0) + 1, (line[column] ?? 0) + 1));
    }
    above = line;
  }
  return above.at(-1) ?? 0;
}

/** Reads the answer that a field of a CRM record, or a condition on it, gives. */
import type { Condition, ConditionResult } from '../../../domain/condition.ts';
import { isOptOutField } from '../../../domain/opt-out-names.ts';
import { fieldAt, fieldOrEnd, textOf } from '../../../domain/values/record-field.ts';
import type { ProblemCause } from '../../../domain/problem-causes.ts';
import type { ColumnShape, Fault, UnknownWord } from '../../../domain/record.ts';
import { mostCharacters } from '../../../domain/unknown-words.ts';
import { dateIn } from './date-text.ts';
import { vocabulary, type OwnWords, type Unknown, type Use } from './value-vocabulary.ts';
import { withCommas } from '../../../domain/values/counted.ts';

/** The setting for an answer: a field with known words or its own, or a condition. */
export type Flag = string | When | Named<'yes' | 'no'>;
export type StatedField = string | When | Named<'in' | 'out' | 'none'> | OptOutField;

interface When {
  readonly when: Condition;
}

/** A field with words by meaning. `yes: any`: every value but none and the words for no. */
type Named<Words extends string> = { readonly field: string } & {
  readonly [Word in Words]?: readonly string[] | (Word extends 'yes' ? 'any' : never) | undefined;
};

/** A column of who does not want a channel: yes opts out, the rest is `else`. */
interface OptOutField {
  readonly optOut: string;
  readonly yes?: readonly string[] | 'any' | undefined;
  readonly no?: readonly string[] | undefined;
  readonly else?: 'in' | undefined;
}

type Answer = 'yes' | 'no' | 'none';

/** The reason why there is no answer. `unknown` is set if a field's value is the reason. */
export interface Unanswered {
  fault: Fault;
  unknown?: UnknownWord;
}

/** Returns the answer of a record, and adds to `reading` what it learns about its column. */
export type Ask = (record: Record<string, unknown>, reading?: ColumnReading) => Answer | Unanswered;

/** What is known, and learnt, about columns that may hold dates. */
export interface ColumnReading {
  /** Whether a serial number of Excel is a date. */
  serialsAreDates: boolean;
  shapes: ColumnShape[];
  /** The columns with a serial number that was not taken for a date. */
  serials: string[];
}

/** The question that a setting answers, its place in the configuration, and the clock. */
interface Asked {
  use: Use;
  option: string;
  called: string;
  now: () => number;
}

export interface ListedFlag {
  /** `contacts.unsubscribed`, or `contacts.unsubscribed[0]` if the option holds a list. */
  option: string;
  stated: Flag;
}

/** Returns the settings of an option: one, those of its list, or none. */
export function flagsIn(option: string, stated: Flag | readonly Flag[] | undefined): ListedFlag[] {
  if (stated === undefined) return [];
  const all: readonly Flag[] = [stated].flat();
  const isList = Array.isArray(stated);
  return all.map((one, at) => ({ option: isList ? `${option}[${at}]` : option, stated: one }));
}

/** Returns the names of the source fields that a setting reads. */
export function namesIn(stated: Flag | StatedField | undefined): readonly string[] {
  if (stated === undefined) return [];
  if (typeof stated === 'string') return [stated];
  if ('when' in stated) return stated.when.fields;
  return ['optOut' in stated ? stated.optOut : stated.field];
}

/** Returns the function that reads the answer of a setting from a record. */
export function asking(stated: Flag | StatedField, asked: Asked): Ask {
  if (typeof stated === 'string') return askingField(stated, {}, asked);
  if ('when' in stated) {
    return (record) => {
      const answer = judged(stated.when, record, asked);
      return typeof answer === 'string' ? answer : { fault: { ...answer.fault, mayOptOut: true } };
    };
  }
  if ('optOut' in stated) {
    const { optOut, yes, no, else: rest } = stated;
    const ask = askingField(optOut, { yes, no }, { ...asked, use: 'unsubscribed', rest });
    return (...given) => {
      const answer = ask(...given);
      if (typeof answer !== 'string') return answer;
      if (answer === 'yes') return 'no';
      return rest === 'in' ? 'yes' : 'none';
    };
  }
  const isNamed = 'in' in stated || 'out' in stated || 'none' in stated;
  const own = isNamed ? { yes: stated.in, no: stated.out, none: stated.none } : stated;
  return askingField(stated.field, own, asked);
}

function askingField(
  field: string,
  own: OwnWords,
  { use, option, now, rest }: Asked & { rest?: 'in' | undefined },
): Ask {
  const valueIn = rest === 'in' ? fieldOrEnd : fieldAt;
  const isConsent = use === 'subscription';
  const isAlone = isConsent && isOptOutField(field);
  const read = vocabulary(use, isAlone ? { ...own, standAlone: true } : own, now);
  const key = option.slice(option.lastIndexOf('.') + 1);
  const isOptOut = key === 'optOut';
  // YAML reads every quoted word as text. An unquoted word, such as -, may have another meaning.
  const lists = isConsent ? 'in: ["…"], out: ["…"], none: ["…"]' : 'yes: ["…"], no: ["…"]';
  const column = `${isOptOut ? key : 'field'}: ${JSON.stringify(field)}`;
  const otherwise = rest === undefined ? '' : `, else: ${rest}`;
  const setting = isOptOut ? 'subscription' : use;
  const place = isOptOut || key === use ? `: ${setting}` : ` in ${key}`;
  const fix = `name it${place}: { ${column}, ${lists}${otherwise} }`;
  return (record, reading) => {
    const written = valueIn(record, field);
    const found = read(written);
    if (reading && use !== 'subscription' && found !== 'none') {
      const isPast = found === 'yes' && dateIn(textOf(written) ?? '', now()) !== undefined;
      const isFuture = typeof found !== 'string' && found.unknown === 'future';
      if (typeof found !== 'string' && found.isSerial) reading.serials.push(field);
      else reading.shapes.push({ column: field, isDate: isPast || isFuture });
    }
    if (typeof found === 'string') return found;
    if (found.isSerial && reading?.serialsAreDates) return 'yes';
    const { unknown, text } = found;
    const { cause, says } = wrong[unknown];
    const value = text?.slice(0, mostCharacters);
    const reason = `"${field}" ${says}`;
    const fault = { cause, reason, fix, option, value, mayOptOut: true } as const;
    return { fault, unknown: { option, fix, unknown, text } };
  };
}

const wrong: Record<Unknown['unknown'], { cause: ProblemCause; says: string }> = {
  word: { cause: 'unknown-word', says: 'holds no known word' },
  future: { cause: 'date-in-future', says: 'is a date in the future' },
  'no single value': { cause: 'no-single-value', says: 'is no single value' },
};

/** Returns the answer of a condition. Any other result is a fault rather than an answer. */
export function judged(
  when: Condition,
  record: Record<string, unknown>,
  { use, called }: { use: Use; called: string },
): Answer | Unanswered {
  const verdict = when.judge(record);
  if ('failsOn' in verdict) return { fault: notEvaluated(called, verdict) };
  if (typeof verdict.gives === 'boolean') return verdict.gives ? 'yes' : 'no';
  const isOpen = use === 'subscription';
  if (isOpen && verdict.gives === null) return 'none';
  return { fault: notAnAnswer(called, isOpen ? 'true, false nor null' : 'true nor false') };
}

/** Returns the fault of a condition that fails; `longest`: a value has more characters. */
export function notEvaluated(
  option: string,
  { failsOn, longest }: Extract<ConditionResult, { failsOn: unknown }>,
): Fault {
  const names = [...new Set(failsOn)].map((name) => `"${name}"`).join(', ');
  if (longest !== undefined) {
    const most = withCommas(longest);
    return {
      cause: 'condition-failed',
      reason: `${option} cannot be evaluated: ${names} has more than ${most} characters`,
      fix: 'shorten it in the CRM, or leave the field out of the condition',
    };
  }
  return {
    cause: 'condition-failed',
    reason: `${option} cannot be evaluated${names && ` with this value of ${names}`}`,
    fix: 'correct it in the CRM, or have the condition allow for it',
  };
}

/** Returns the fault of a condition whose result is not one of the expected ones. */
export function notAnAnswer(option: string, wanted: string): Fault {
  const reason = `${option} gives neither ${wanted}`;
  return { cause: 'condition-failed', reason, fix: 'correct the condition' };
}

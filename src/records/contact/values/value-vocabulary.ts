/**
 * Determines the meaning of a CRM field's value (docs/values-and-conditions.md). Values are
 * compared after trimming, ignoring case.
 *
 *   value                              subscription   unsubscribed   deleted
 *   true, yes, y, t, 1, on             in             yes            yes
 *   false, no, n, f, 0, off            out            no             no
 *   opt_in, subscribed                 in             no             unknown
 *   opt_out, unsubscribed              out            yes            unknown
 *   empty, null                        no opinion     no             no
 *   0000-00-00                         unknown        no             no
 *   a date that is not in the future   unknown        yes            yes
 *   a serial number of Excel (45900)   unknown        yes*           yes*
 *   anything else                      unknown        unknown        unknown
 *
 * *  if all other values of the column are dates; otherwise it is unknown.
 *
 * A field's own words extend these and take precedence; `yes: any` matches every value that is
 * neither empty nor a word for no. Words that stand alone replace the table: then only they and an
 * empty value have a meaning. Nothing is guessed: an unknown value makes its record invalid.
 *
 * A list, such as the tags of a person, is a yes for `unsubscribed` and `deleted` if one of its
 * elements is, and the field names its words for yes. Other elements say nothing; one that holds a
 * term of opting out and is not named makes its record invalid.
 */
import { isAboutOptOut } from '../../../domain/opt-out-names.ts';
import type { UnknownWord } from '../../../domain/record.ts';
import { textOf, wordOf } from '../../../domain/values/record-field.ts';
import { dateIn, isSerialDate } from './date-text.ts';

export type Use = 'subscription' | 'unsubscribed' | 'deleted';

/** yes: wants mail, wants no mail, or is gone. none: no opinion on a subscription, else a no. */
type Meaning = 'yes' | 'no' | 'none';

export interface OwnWords {
  yes?: readonly string[] | 'any' | undefined;
  no?: readonly string[] | undefined;
  none?: readonly string[] | undefined;
  /** Whether these are the only words with a meaning. */
  standAlone?: boolean | undefined;
}

export interface Unknown {
  unknown: UnknownWord['unknown'];
  text: string | undefined;
  /** Whether the value is a date if the other values of its column are dates. */
  isSerial?: true;
}

const affirmative = ['true', 'yes', 'y', 't', '1', 'on'];
const negative = ['false', 'no', 'n', 'f', '0', 'off'];
const inWords = ['opt_in', 'subscribed'];
const outWords = ['opt_out', 'unsubscribed'];

const builtIn: Readonly<Record<Use, { yes: readonly string[]; no: readonly string[] }>> = {
  subscription: { yes: [...affirmative, ...inWords], no: [...negative, ...outWords] },
  unsubscribed: { yes: [...affirmative, ...outWords], no: [...negative, ...inWords] },
  deleted: { yes: affirmative, no: negative },
};

/** Returns the reader of one field's values; `now` is in milliseconds since the epoch. */
export function vocabulary(
  use: Use,
  own: OwnWords,
  now: () => number,
): (value: unknown) => Meaning | Unknown {
  const { yes, no } = own.standAlone === true ? { yes: [], no: [] } : builtIn[use];
  const lists: [Meaning, readonly string[]][] = [
    ['yes', yes],
    ['no', no],
    ['yes', own.yes === 'any' ? [] : (own.yes ?? [])],
    ['no', own.no ?? []],
    ['none', own.none ?? []],
  ];
  const words = new Map(
    lists.flatMap(([meaning, list]) => list.map((word) => [wordOf(word), meaning])),
  );
  const read: ReturnType<typeof vocabulary> = (value) => {
    const text = textOf(value);
    if (
      Array.isArray(value) &&
      use !== 'subscription' &&
      own.yes !== undefined &&
      own.yes.length > 0
    ) {
      const all: readonly unknown[] = value;
      const isList = { unknown: 'no single value', text: undefined } as const;
      const found = all.map((element) => (Array.isArray(element) ? isList : read(element)));
      if (found.includes('yes')) return 'yes';
      const isOpen = (one: Meaning | Unknown): one is Unknown =>
        typeof one === 'object' && (one.unknown !== 'word' || isAboutOptOut(one.text ?? ''));
      return found.find(isOpen) ?? 'none';
    }
    if (text === undefined) return { unknown: 'no single value', text };
    if (text === '') return 'none';
    const known = words.get(text) ?? words.get(wordOf(text));
    if (known) return known;
    const date = use === 'subscription' ? undefined : dateIn(text, now());
    if (date === 'zero') return 'none';
    if (date === 'past' || own.yes === 'any') return 'yes';
    if (date === 'future') return { unknown: 'future', text };
    const isSerial = use !== 'subscription' && isSerialDate(text, now());
    return { unknown: 'word', text, ...(isSerial && { isSerial }) };
  };
  return read;
}

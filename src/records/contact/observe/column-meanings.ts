/** Tells what each configured column of a CRM record means, value by value. */
import { fieldAt, textOf } from '../../../domain/values/record-field.ts';
import { consentReader } from './consent-time.ts';
import { asksOf, type ContactFields } from './desired-contact.ts';
import { isAddress } from '../values/email-address.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import {
  type Ask,
  type Flag,
  namesIn,
  type ColumnReading,
  type StatedField,
} from '../values/field-statement.ts';

/**
 * What a value means. in, out, none: for a channel. yes, no: for `deleted` and `unsubscribed`. id,
 * address, time: a usable value of those columns. unknown: no known meaning.
 */
export type ColumnMeaning =
  | 'in'
  | 'out'
  | 'none'
  | 'yes'
  | 'no'
  | 'id'
  | 'address'
  | 'time'
  | 'empty'
  | 'unknown';

/** A value of a column: its text, undefined for a list or an object, and what it means. */
export interface ColumnValue {
  text: string | undefined;
  means: ColumnMeaning;
  /** Whether it is a date, and means yes, if the other values of the column are dates. */
  isSerial?: boolean;
}

/** One setting of `contacts` that reads the CRM record. */
export interface MappedColumn {
  option: string;
  /** The channel that the setting decides; undefined for the other settings. */
  channel: string | undefined;
  /** The fields that the setting reads: one, or those of its condition. */
  fields: readonly string[];
  /**
   * What its values are. own: nearly every record has another one, such as an id or an address.
   * words: one with a known meaning is a word, and no personal data. texts: anything.
   */
  holds: 'own' | 'words' | 'texts';
  read(record: Record<string, unknown>): ColumnValue;
}

/** Returns the configured columns. `now` returns milliseconds since the epoch. */
export function mappedColumns(fields: ContactFields, now: () => number): MappedColumn[] {
  const { id, email, deleted, consentAt, channels } = fields;
  const asks = asksOf(fields, now);
  const gone = { option: 'contacts.deleted', stated: deleted, ask: asks.deleted };
  const flags = [gone, ...asks.unsubscribed].flatMap(({ option, stated, ask }) =>
    stated === undefined ? [] : [statedColumn({ option, stated, ask, words: flagMeanings })],
  );
  const consent = consentAt === undefined ? undefined : consentReader(consentAt);
  const perChannel = asks.channels.flatMap(({ id: channel, option, ask }, at) => {
    const stated = channels[at]?.subscription;
    if (stated === undefined) return [];
    return [statedColumn({ option, channel, stated, ask, words: channelMeanings })];
  });
  return [
    ownColumn('contacts.id', id, () => 'id'),
    ownColumn('contacts.email', email, (text) =>
      isAddress(contactKey(text)) ? 'address' : 'unknown',
    ),
    ...flags,
    ...(consent === undefined
      ? []
      : [
          ownColumn('contacts.consentAt', consent.field, (text) =>
            consent.read(text) === undefined ? 'unknown' : 'time',
          ),
        ]),
    ...perChannel,
  ];
}

/** Returns a column that takes a serial number of Excel for a date, if it is one of these. */
export function withDates(column: MappedColumn, dateColumns: readonly string[]): MappedColumn {
  if (!column.fields.every((field) => dateColumns.includes(field))) return column;
  const read: MappedColumn['read'] = (record) => {
    const value = column.read(record);
    return value.isSerial ? { ...value, means: 'yes' } : value;
  };
  return { ...column, read };
}

function ownColumn(
  option: string,
  field: string,
  meaning: (text: string) => ColumnMeaning,
): MappedColumn {
  return {
    option,
    channel: undefined,
    fields: [field],
    holds: 'own',
    read(record) {
      const text = textOf(fieldAt(record, field));
      if (text === undefined) return { text, means: 'unknown' };
      return { text, means: text === '' ? 'empty' : meaning(text) };
    },
  };
}

const channelMeanings = { yes: 'in', no: 'out', none: 'none' } as const;
const flagMeanings = { yes: 'yes', no: 'no', none: 'no' } as const;

interface Stated {
  option: string;
  channel?: string;
  stated: Flag | StatedField;
  ask: Ask;
  words: typeof channelMeanings | typeof flagMeanings;
}

function statedColumn({ option, channel, stated, ask, words }: Stated): MappedColumn {
  const fields = namesIn(stated);
  const isOfWords =
    typeof stated === 'string' ||
    (!('when' in stated) && !('yes' in stated && stated.yes === 'any'));
  return {
    option,
    channel,
    fields,
    holds: isOfWords ? 'words' : 'texts',
    read(record) {
      const reading: ColumnReading = { serialsAreDates: false, shapes: [], serials: [] };
      const answer = ask(record, reading);
      const texts = fields.map((field) => textOf(fieldAt(record, field)));
      const text = texts.includes(undefined) ? undefined : texts.join(' · ');
      const means = typeof answer === 'string' ? words[answer] : 'unknown';
      return { text, means, isSerial: reading.serials.length > 0 };
    },
  };
}

/** Tells what the columns of a person's CRM record hold, and what that means. */
import { isDecisiveOption } from '../../domain/values/decisive-options.ts';
import type { ColumnMeaning, MappedColumn } from '../../records/contact/observe/column-meanings.ts';

/** A configured column of a record. */
export interface CrmColumn {
  /** The option of the configuration. */
  option: string;
  /** The channel that it decides; null for the other settings. */
  channel: string | null;
  fields: readonly string[];
  /** Null if the value may not be shown. */
  value: string | null;
  /** Whether the value is a date. */
  date: boolean;
  means: ColumnMeaning;
}

const aDate = /\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{4}/;

/**
 * Returns what a column holds. Without `addresses`, a value is shown only if it is a known word; a
 * date is named as one.
 */
export function columnOf(
  { option, channel, fields, holds, read }: MappedColumn,
  { value, addresses }: { value: Record<string, unknown>; addresses: boolean },
): CrmColumn {
  const { text, means } = read(value);
  const isDate = text !== undefined && aDate.test(text);
  const isWord = holds === 'words' && means !== 'unknown' && !isDate;
  return {
    option,
    channel: channel ?? null,
    fields,
    value: text !== undefined && (addresses || isWord) ? text : null,
    date: isDate,
    means,
  };
}

/** Names the columns of the CRM that decide about a channel, with their values. */
export function columnLines(
  channel: string,
  records: readonly { columns: CrmColumn[]; place: string }[],
): string[] {
  return records.flatMap(({ columns, place }) =>
    columns
      .filter((one) => one.channel === channel || isSaid(one))
      .map(({ option, fields, value, date, means }) => {
        const setting = option.slice(option.lastIndexOf('.') + 1);
        const names = fields.map((field) => `"${field}"`).join(', ');
        const held = heldValue({ value, date });
        const columnWord = fields.length === 1 ? 'column' : 'columns';
        return `${setting}: ${columnWord} ${names} ${held}: ${meaningWords[means] ?? means} (${place})`;
      }),
  );
}

/** Returns whether a column states that the person is deleted or unsubscribed from everything. */
function isSaid({ channel, option, means }: CrmColumn): boolean {
  return channel === null && isDecisiveOption(option) && means !== 'no' && means !== 'empty';
}

function heldValue({ value, date }: Pick<CrmColumn, 'value' | 'date'>): string {
  if (value === '') return 'is empty';
  if (value === null) return date ? 'holds a date' : 'holds another value';
  return `holds ${JSON.stringify(value)}${date ? ', a date' : ''}`;
}

const meaningWords: Readonly<Record<string, string>> = {
  none: 'no opinion',
  empty: 'no opinion',
  unknown: 'no known meaning',
};

/** Says what was recognized in a source, and why, and shows what its first people would be. */
import { styledTable, sectionLines } from '../../views/render/text.ts';
import { renderLine } from '../../compose/output/text-style.ts';
import { isPlain } from '../../domain/unknown-words.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { fieldAt, textOf, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { quoted } from '../../sources/shared/record-fields.ts';
import type { Table } from '../../views/sections.ts';
import { type Chosen, nameWithValues, recordsOf } from './column-words.ts';
import { wordFlag } from './flags.ts';
import { statementOf, subscriptionOf } from './mirror-file.ts';
import type { Proposal } from './propose.ts';
import type { Sample } from './sample.ts';

interface Showing {
  asTheyAre: boolean;
  width?: number;
}

/** Returns the lines about the source, its columns, those that are not used, and its people. */
export function previewLines(sample: Sample, proposal: Proposal, showing: Showing): string[] {
  const { options, records, columns, flaw, isWhole, notes = [] } = sample;
  const { id, email, unsubscribed, deleted, channels, without } = proposal;
  const { type, ...more } = options;
  const extra = Object.entries(more).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? `${name}: ${value}` : [],
  );
  const read = `${isWhole ? '' : 'the first '}${counted(records, 'record')}`;
  const roles: [string, Chosen | undefined][] = [
    ['id', id],
    ['email', email],
    ...(unsubscribed.length > 0 ? unsubscribed : [undefined]).map(
      (one): [string, Chosen | undefined] => ['unsubscribed', one],
    ),
    ['deleted', deleted],
    ...channels.map((one): [string, Chosen] => [one.id, one]),
  ];
  const rows = roles.map(([role, chosen]) =>
    chosen
      ? [role, chosen.column.name, chosen.why ?? 'as you said']
      : [role, 'no column', 'none is recognized'],
  );
  return [
    `${type}: ${read}, ${counted(columns.length, 'column')}${extra.length > 0 ? ` (${extra.join(', ')})` : ''}`,
    ...(flaw === undefined ? [] : [`  not complete: ${flaw}`]),
    ...notes.map((note) => `  ${note}`),
    ...styledTable(rows, { indent: 2 }).map((line) => renderLine(line, false)),
    ...without.map(
      ({ id: channel, name }) =>
        `  No column for the platform's channel ${channel} (${name}): add --channel ${channel}=COLUMN`,
    ),
    ...channels.flatMap((channel) => {
      const { column, unknown } = channel;
      const { asTheyAre } = showing;
      if (unknown.length === 0) return [];
      const shown = unknown.filter((value) => asTheyAre || isPlain(value)).slice(0, mostNamed);
      const others = recordsOf(unknown) - recordsOf(shown);
      const words = shown.map(({ text, records: n }) => `"${text}" ${withCommas(n)}×`);
      const rest = asTheyAre ? 'other words' : 'words that only --addresses shows';
      if (others > 0) words.push(`${counted(others, 'record')} with ${rest}`);
      const flag = wordFlag(column.name, { 'in|out|none': [shown[0]?.text ?? 'WORD'] });
      return [
        `  Unknown in ${column.name}: ${words.join(', ')}.`,
        `    These records stay invalid until the words are named: --words ${quoted(flag)}`,
      ];
    }),
    ...unusedLines(proposal),
    '',
    ...peopleLines(sample, proposal, showing),
  ];
}

const mostNamed = 5;

const mostUnused = 20;

function unusedLines({ unused: { named, likely, others } }: Proposal): string[] {
  if (named.length + likely.length === 0) return [];
  const shown = likely.slice(0, mostUnused);
  const more = likely.length - shown.length;
  const look = others === 1 ? 'looks' : 'look';
  return [
    '',
    'These columns are not used. If one says that a person must not be mailed, add --unsubscribed',
    'COLUMN. If one says that a person is gone, add --deleted COLUMN, which is no opt-out:',
    ...[...named, ...shown].map((column) => `  ${nameWithValues(column)}`),
    ...(more > 0 ? [`  and ${withCommas(more)} more, which the configuration lists`] : []),
    ...(others > 0 ? [`  and ${counted(others, 'column')} that ${look} like none of these`] : []),
  ];
}

/** At most twenty people: each channel with what decides it, or why the record is not used. */
function peopleLines(
  { first }: Sample,
  { id, email, unsubscribed, deleted, channels }: Proposal,
  { asTheyAre, width = Infinity }: Showing,
): string[] {
  const { now } = systemClock;
  const fields = {
    id: id.column.name,
    email: email.column.name,
    unsubscribed: unsubscribed.map(statementOf),
    deleted: deleted && statementOf(deleted),
    channels: channels.map((one) => ({ id: one.id, subscription: subscriptionOf(one) })),
  };
  const desire = contactDesire(fields, now);
  const readers = unsubscribed.map(({ words: { yes, no } }) =>
    vocabulary('unsubscribed', { yes, no }, now),
  );
  const people = first.map(({ where, value }): PersonRow => {
    const row = desire(value, where);
    const { invalid } = row;
    const { channels: wishes, presence } = decodeContact.desired(row).value;
    const heldBy = ({ column: { name, values } }: Chosen): string => {
      const text = textOf(fieldAt(value, name)) ?? '';
      const records = values.find((one) => wordOf(one.text) === wordOf(text))?.records ?? 0;
      return text !== '' && (asTheyAre || isPlain({ text, records })) ? ` (${text})` : '';
    };
    const by = (one: Chosen): string => `${one.column.name}${heldBy(one)}`;
    const out = unsubscribed.find(
      ({ column: { name } }, nth) => readers[nth]?.(fieldAt(value, name)) === 'yes',
    );
    return {
      who: asTheyAre ? (row.key ?? row.alias ?? '') : where,
      channels: channels.map((one) => {
        const wish = wishes[one.id];
        return `${wish ? wishWords[wish] : '–'}${out || invalid ? '' : heldBy(one)}`;
      }),
      notes: [
        invalid ? fateWords(invalid.noAddress ? 'skipped' : 'invalid', invalid.reason) : '',
        deleted && presence === 'flagged' ? fateWords('gone', by(deleted)) : '',
        out ? fateWords('unsubscribed', by(out)) : '',
      ],
    };
  });
  const ids = channels.map((one) => one.id);
  const others = styledTable([ids, ...people.map((one) => one.channels)]);
  const taken = Math.max(...others.map((line) => renderLine(line, false).length));
  const room = Math.max(width - 4 - taken, leastShown);
  const fitting = people.map((one) => ({ ...one, who: cut(one.who, room) }));
  const none = '– = no opinion: neither subscribed nor unsubscribed';
  const title = `The first ${first.length} people (${none}):`;
  const lines = sectionLines([{ title, table: peopleTable(ids, fitting) }]);
  return lines.map((line) => renderLine(line, false));
}

const leastShown = 8;

/** Cuts a text to a width. */
export function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** What becomes of a record, in the order in which `check` shows one of each. */
export const fates = ['mapped', 'invalid', 'gone', 'unsubscribed', 'outside'] as const;
export type Fate = (typeof fates)[number];

/** Says what becomes of a record; `by`: what says so, such as a column with its value. */
export function fateWords(fate: Fate | 'skipped', by?: string): string {
  if (fate === 'mapped') return '';
  if (fate === 'skipped') return 'skipped: no address';
  if (fate === 'outside') return 'out of scope (contacts.include)';
  if (fate === 'invalid') return `invalid: ${by}`;
  if (fate === 'gone') return `gone: ${by ?? 'the CRM says that this person is deleted'}`;
  return `no mail: ${by ?? 'unsubscribed from everything'}`;
}

export const wishWords = { opt_in: 'in', opt_out: 'out' } as const;

export interface PersonRow {
  who: string;
  channels: readonly string[];
  notes: readonly string[];
}

/** `channels` are the ids. */
export function peopleTable(channels: readonly string[], people: readonly PersonRow[]): Table {
  const rows = people.map(({ who, channels: states, notes }) => {
    return [who, ...states, notes.filter((note) => note !== '').join('; ')];
  });
  return { columns: ['', ...channels, ''], rows };
}

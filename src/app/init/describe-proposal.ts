/** Says what was recognized in a source, and why, and shows what its first people would be. */
import { isPlain } from '../../domain/unknown-words.ts';
import { quoted } from '../../sources/shared/record-fields.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { styledTable } from '../../compose/output/table.ts';
import { wordFlag } from './flags.ts';
import { recordsOf, nameWithValues, type Chosen } from './column-words.ts';
import type { Proposal } from './propose.ts';
import type { Sample } from './sample.ts';
import { fieldAt, textOf, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { renderLine } from '../../compose/output/text-style.ts';
import { sectionLines } from '../../views/render/text.ts';
import { statementOf, subscriptionOf } from './mirror-file.ts';
import type { Table } from '../../views/sections.ts';

/** Returns the lines about the source, its columns, and the columns that are not used. */
export function described(sample: Sample, proposal: Proposal, asTheyAre: boolean): string[] {
  const { id, email, unsubscribed, deleted, channels, without } = proposal;
  const roles = [
    ['id', id],
    ['email', email],
    ...(unsubscribed.length > 0 ? unsubscribed : [undefined]).map(
      (one) => ['unsubscribed', one] as const,
    ),
    ['deleted', deleted],
    ...channels.map((one) => [one.id, one] as const),
  ] as const;
  const { options, records, columns, flaw, isWhole, notes = [] } = sample;
  const { type, ...more } = options;
  const extra = Object.entries(more).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? `${name}: ${value}` : [],
  );
  const read = `${isWhole ? '' : 'the first '}${counted(records, 'record')}`;
  const rows = roles.map(([role, chosen]) => [
    role,
    chosen ? chosen.column.name : 'no column',
    chosen ? (chosen.why ?? 'as you said') : 'none is recognized',
  ]);
  return [
    `${type}: ${read}, ${counted(columns.length, 'column')}${extra.length > 0 ? ` (${extra.join(', ')})` : ''}`,
    ...(flaw === undefined ? [] : [`  not complete: ${flaw}`]),
    ...notes.map((note) => `  ${note}`),
    ...styledTable(rows, { indent: 2 }).map((line) => renderLine(line, false)),
    ...without.map(
      ({ id: channel, name }) =>
        `  No column for the platform's channel ${channel} (${name}): add --channel ${channel}=COLUMN`,
    ),
    ...channels.flatMap(({ column, unknown }) => {
      const plain = unknown.filter((value) => asTheyAre || isPlain(value));
      const shown = plain.slice(0, mostNamed);
      const others = recordsOf(unknown) - recordsOf(shown);
      const words = shown.map(({ text, records: n }) => `"${text}" ${withCommas(n)}×`);
      const rest = asTheyAre ? 'other words' : 'words that only --addresses shows';
      if (others > 0) words.push(`${counted(others, 'record')} with ${rest}`);
      if (words.length === 0) return [];
      const flag = wordFlag(column.name, { 'in|out|none': [shown[0]?.text ?? 'WORD'] });
      return [
        `  Unknown in ${column.name}: ${words.join(', ')}.`,
        `    These records stay invalid until the words are named: --words ${quoted(flag)}`,
      ];
    }),
    ...unusedLines(proposal),
  ];
}

const mostNamed = 5;

const mostUnused = 20;

function unusedLines({ unused: { named, likely, others } }: Proposal): string[] {
  if (named.length + likely.length === 0) return [];
  const shown = likely.slice(0, mostUnused);
  const more = likely.length - shown.length;
  return [
    '',
    'These columns are not used. If one says that a person must not be mailed, add --unsubscribed',
    'COLUMN. If one says that a person is gone, add --deleted COLUMN, which is no opt-out:',
    ...[...named, ...shown].map((column) => `  ${nameWithValues(column)}`),
    ...(more > 0 ? [`  and ${withCommas(more)} more, which the configuration lists`] : []),
    ...(others > 0
      ? [
          `  and ${counted(others, 'column')} that ${others === 1 ? 'looks' : 'look'} like none of these`,
        ]
      : []),
  ];
}

/** At most twenty people: each channel with what decides it, or why the record is not used. */
export function previewOf(
  { first }: Sample,
  proposal: Proposal,
  { asTheyAre, width = Number.POSITIVE_INFINITY }: { asTheyAre: boolean; width?: number },
): string[] {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const desire = contactDesire(
    {
      id: id.column.name,
      email: email.column.name,
      unsubscribed: unsubscribed.map(statementOf),
      deleted: deleted && statementOf(deleted),
      channels: channels.map((one) => ({ id: one.id, subscription: subscriptionOf(one) })),
    },
    systemClock.now,
  );
  const optOuts = unsubscribed.map((chosen) => {
    const { yes, no } = chosen.words;
    const read = vocabulary('unsubscribed', { yes, no }, systemClock.now);
    return {
      chosen,
      isOut: (record: unknown) => read(fieldAt(record, chosen.column.name)) === 'yes',
    };
  });
  const people = first.map(({ where, value }): PersonRow => {
    const row = desire(value, where);
    const { channels: wishes, presence } = decodeContact.desired(row).value;
    const heldBy = ({ column: { name, values } }: Chosen): string => {
      const text = textOf(fieldAt(value, name)) ?? '';
      const records = values.find((one) => wordOf(one.text) === wordOf(text))?.records ?? 0;
      return text !== '' && (asTheyAre || isPlain({ text, records })) ? ` (${text})` : '';
    };
    const by = (chosen: Chosen): string => `${chosen.column.name}${heldBy(chosen)}`;
    const { invalid } = row;
    const out = optOuts.find(({ isOut }) => isOut(value))?.chosen;
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
  const others = styledTable([ids, ...people.map((one) => one.channels)]).map(
    (line) => renderLine(line, false).length,
  );
  const room = Math.max(width - 4 - Math.max(...others), leastShown);
  const fitting = people.map((one) => ({ ...one, who: cut(one.who, room) }));
  const none = '– = no opinion: neither subscribed nor unsubscribed';
  const title = `The first ${first.length} people (${none}):`;
  return sectionLines([{ title, table: peopleTable(ids, fitting) }]).map((line) =>
    renderLine(line, false),
  );
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

/** Returns the table of people; `channels` are the ids. */
export function peopleTable(channels: readonly string[], people: readonly PersonRow[]): Table {
  return {
    columns: ['', ...channels, ''],
    rows: people.map(({ who, channels: is, notes }) => [
      who,
      ...is,
      notes.filter((note) => note !== '').join('; '),
    ]),
  };
}

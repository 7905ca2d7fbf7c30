/** Says what was recognized in a source, and why, and shows what its first people would be. */
import { isPlain } from '../../domain/unknown-words.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { table } from '../../compose/output/table.ts';
import { wordFlag } from './column-flags.ts';
import { recordsOf, nameWithValues, type Chosen } from './column-words.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './sample/sample.ts';
import { fieldAt, textOf, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { statementOf, subscriptionOf } from './mirror-file.ts';

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
    ...table(rows, { indent: 2 }),
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

const wishWords = { opt_in: 'in', opt_out: 'out' } as const;

/**
 * Returns a heading and a table of at most twenty people: each channel with the value that decides
 * it, or why the record is not used.
 */
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
  const rows = first.map(({ where, value }) => {
    const row = desire(value, where);
    const { channels: wishes, presence } = decodeContact.desired(row).value;
    const who = asTheyAre ? (row.key ?? row.alias ?? '') : where;
    const because = (chosen: Chosen | undefined): string => {
      const text = chosen && textOf(fieldAt(value, chosen.column.name));
      if (!chosen || text === undefined || text === '') return '';
      const { values } = chosen.column;
      const records = values.find((one) => wordOf(one.text) === wordOf(text))?.records ?? 0;
      return asTheyAre || isPlain({ text, records }) ? ` (${text})` : '';
    };
    const out = optOuts.find(({ isOut }) => isOut(value))?.chosen;
    const noMail = out !== undefined;
    const each = channels.map((one) => {
      const wish = wishes[one.id];
      return `${wish ? wishWords[wish] : '–'}${noMail || row.invalid ? '' : because(one)}`;
    });
    const notes = [
      row.invalid?.noAddress === true ? 'skipped: no address' : '',
      row.invalid && row.invalid.noAddress !== true ? `invalid: ${row.invalid.reason}` : '',
      presence === 'flagged' ? `gone: ${deleted?.column.name ?? ''}${because(deleted)}` : '',
      noMail ? `no mail: ${out.column.name}${because(out)}` : '',
    ];
    return [who, ...each, notes.filter((note) => note !== '').join('; ')];
  });
  const all = [['', ...channels.map((one) => one.id), ''], ...rows];
  const rest = table(all.map(([_, ...cells]) => cells.slice(0, -1)));
  const room = Math.max(width - 4 - Math.max(...rest.map(({ length }) => length)), leastShown);
  for (const row of all) row[0] = cut(row[0] ?? '', room);
  return [
    `The first ${first.length} people (– = no opinion: neither subscribed nor unsubscribed):`,
    ...table(all, { indent: 2 }),
  ];
}

const leastShown = 8;

/** Cuts a text to a width. */
export function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

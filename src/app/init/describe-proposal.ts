/** Says what was recognized in a source, and why. */
import { isPlain } from '../../domain/unknown-words.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { table } from '../../compose/output/table.ts';
import { wordFlag } from './flag-lists.ts';
import { recordsOf, said } from './column-values.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './sample/sample.ts';

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
  const rows = roles.map(([role, chosen]) => [
    role,
    chosen ? chosen.column.name : 'no column',
    chosen ? (chosen.why ?? 'as you said') : 'none is recognized',
  ]);
  return [
    ...sourceLines(sample),
    ...table(rows, { indent: 2 }),
    ...without.map(
      ({ id: channel, name }) =>
        `  No column for the platform's channel ${channel} (${name}): add --channel ${channel}=COLUMN`,
    ),
    ...strangeLines(proposal, asTheyAre),
    ...unusedLines(proposal),
  ];
}

/** How many unknown words of a column are named. */
const mostNamed = 5;

/** Returns lines for each channel whose column holds unknown words, with the flag to name one. */
function strangeLines({ channels }: Proposal, asTheyAre: boolean): string[] {
  return channels.flatMap(({ column, unknown }) => {
    const plain = unknown.filter((value) => asTheyAre || isPlain(value));
    const shown = plain.slice(0, mostNamed);
    const others = recordsOf(unknown) - recordsOf(shown);
    const words = shown.map(({ text, records }) => `"${text}" ${withCommas(records)}×`);
    const more = asTheyAre ? 'other words' : 'words that only --addresses shows';
    const rest = `${counted(others, 'record')} with ${more}`;
    const all = [...words, ...(others > 0 ? [rest] : [])];
    if (all.length === 0) return [];
    const flag = wordFlag(column.name, { 'in|out|none': [shown[0]?.text ?? 'WORD'] });
    return [
      `  Unknown in ${column.name}: ${all.join(', ')}.`,
      `    These records stay invalid until the words are named: --words ${quoted(flag)}`,
    ];
  });
}

function sourceLines({ options, records, columns, flaw, isWhole, notes = [] }: Sample): string[] {
  const { type, ...more } = options;
  const extra = Object.entries(more).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? `${name}: ${value}` : [],
  );
  const read = `${isWhole ? '' : 'the first '}${counted(records, 'record')}`;
  return [
    `${type}: ${read}, ${counted(columns.length, 'column')}${extra.length > 0 ? ` (${extra.join(', ')})` : ''}`,
    ...(flaw === undefined ? [] : [`  not complete: ${flaw}`]),
    ...notes.map((note) => `  ${note}`),
  ];
}

/** How many unused columns are shown. */
const mostUnused = 20;

function unusedLines({ unused: { named, likely, others } }: Proposal): string[] {
  if (named.length + likely.length === 0) return [];
  const shown = likely.slice(0, mostUnused);
  const more = likely.length - shown.length;
  return [
    '',
    'These columns are not used. If one says that a person must not be mailed, add --unsubscribed',
    'COLUMN. If one says that a person is gone, add --deleted COLUMN, which is no opt-out:',
    ...[...named, ...shown].map((column) => `  ${said(column)}`),
    ...(more > 0 ? [`  and ${withCommas(more)} more, which the configuration lists`] : []),
    ...(others > 0
      ? [
          `  and ${counted(others, 'column')} that ${others === 1 ? 'looks' : 'look'} like none of these`,
        ]
      : []),
  ];
}

/** Writes the configuration that `init` proposes, with its reasons as comments. */
import { relative, sep } from 'node:path';
import { stringify } from 'yaml';
import { isPlain } from '../../domain/unknown-words.ts';
import type { Chosen, Proposal, Words } from './propose-columns.ts';
import type { Column, Sample, Value } from './read-sample.ts';

/** What a configuration is written from. */
export interface Draft {
  mirror: string;
  /** The absolute path of the export. */
  file: string;
  /** The absolute path of the folder that the configuration is written to. */
  folder: string;
  sample: Sample;
  proposal: Proposal;
}

/** Returns the text of the configuration. Values that may be personal data are not in it. */
export function configurationText({ mirror, file, folder, sample, proposal }: Draft): string {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const path = relative(folder, file).split(sep).join('/');
  const { type } = sample.options;
  const place = type === 'sql' ? { url: `sqlite:${placed(path)}` } : { path: placed(path) };
  const source = { type, ...place, ...sample.options };
  const flag = (name: string, chosen: Chosen | undefined, none: string): string[] =>
    chosen
      ? [...comments(chosen), `  ${name}: ${inline(statementOf(chosen))}`]
      : [`  # ${name}: COLUMN   ${none}`];
  return [
    `# Proposed by \`crm-mirror init\` from ${path}: ${sample.records} records.`,
    '# Check each line that has a reason above it, then run: crm-mirror plan',
    '',
    `mirror: ${mirror}`,
    `snapshot: ./var/${mirror}.sqlite # made at the first run`,
    '',
    'platform:',
    '  url: ${PLATFORM_URL:-http://127.0.0.1:4010}',
    '  apiKey: ${PLATFORM_API_KEY}',
    '',
    'contacts:',
    `  source: ${inline(source)}`,
    ...reason(id),
    `  id: ${inline(id.column.name)}`,
    ...reason(email),
    `  email: ${inline(email.column.name)}`,
    ...flag('unsubscribed', unsubscribed, 'yes = this person wants no mail at all'),
    ...flag('deleted', deleted, 'yes = the CRM says that this person is gone'),
    ...proposal.unused.map((column) => `  # not used: ${said(column)}`),
    '  channels:',
    ...channels.flatMap((channel) => [
      `    - id: ${inline(channel.id)}`,
      ...comments(channel).map((line) => `    ${line}`),
      `      subscription: ${inline(statementOf(channel))}`,
    ]),
    '',
  ].join('\n');
}

function placed(path: string): string {
  return path.startsWith('.') ? path : `./${path}`;
}

/** Returns a column as the configuration states it: its name, or with the words that it needs. */
export function statementOf({ column, words }: Chosen): string | ({ field: string } & Words) {
  return Object.keys(words).length === 0 ? column.name : { field: column.name, ...words };
}

/** Returns a value as YAML on one line. */
function inline(value: unknown): string {
  const text = stringify(value, { collectionStyle: 'flow', lineWidth: 0 });
  return text.trimEnd();
}

/** Returns the name of a column with its frequent values. */
export function said(column: Column): string {
  const values = frequent(column.values);
  return [column.name, ...(values.length > 0 ? [`(${values.join(', ')})`] : [])].join(' ');
}

function reason({ why }: Chosen): string[] {
  return why === undefined ? [] : [`  # ${why}`];
}

function comments(chosen: Chosen): string[] {
  const { column, unknown } = chosen;
  const empty = column.filled === 0 ? ['it is empty'] : [];
  const counts = column.values.length <= mostWords ? frequent(column.values) : [];
  const strange = unknown.reduce((sum, { records }) => sum + records, 0);
  const invalid = `${strange} records hold a word without a known meaning, and are invalid until it is named`;
  return [
    ...reason(chosen),
    ...(counts.length > 0 || empty.length > 0
      ? [`  # values: ${[...counts, ...empty].join(', ')}`]
      : []),
    ...(strange > 0 ? [`  # ${invalid}`] : []),
  ];
}

const mostCounted = 8;
/** A column with more different values holds dates or free text. */
const mostWords = 30;

/** Returns the values that several records hold, with their counts; others may be personal data. */
function frequent(values: readonly Value[]): string[] {
  const plain = values.filter((value) => value.records >= 3 && isPlain(value));
  const shown = plain.slice(0, mostCounted).map(({ text, records }) => `${text} ${records}`);
  const others = values.length - shown.length;
  return others > 0 && shown.length > 0 ? [...shown, `${others} other values`] : shown;
}

/** Writes the configuration that `init` proposes, with its reasons as comments. */
import { basename, relative, sep } from 'node:path';
import { Document, stringify, visit } from 'yaml';
import { counted } from '../../domain/values/counted.ts';
import { visibleLine } from '../../compose/output/visible-text.ts';
import { frequent, holdsDates, recordsOf, said } from './column-values.ts';
import type { ChannelColumn } from './channel-columns.ts';
import type { Chosen, Words } from './column-words.ts';
import { localPlatform } from './platform-channels.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './sample/sample.ts';

/** What a configuration is written from. */
export interface Draft {
  mirror: string;
  /** The absolute path of the folder that the configuration is written to. */
  folder: string;
  sample: Sample;
  proposal: Proposal;
}

/** Returns the text of the configuration. Values that may be personal data are not in it. */
export function configurationText({ mirror, folder, sample, proposal }: Draft): string {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const source = sourceIn(folder, sample);
  const flag = (name: string, chosen: Chosen | undefined, none: string): string[] =>
    chosen
      ? [...comments(chosen), `  ${name}: ${literal(statementOf(chosen))}`]
      : [`  # ${name}: COLUMN # ${none}`];
  return [
    comment(`Proposed by \`crm-mirror init\` from ${readFrom(sample)}.`),
    '# Look at each line that has a reason above it.',
    '',
    `mirror: ${literal(mirror)}`,
    `snapshot: ./var/${mirror}.sqlite # made at the first run`,
    '',
    'platform:',
    `  url: \${PLATFORM_URL:-${localPlatform}} # without PLATFORM_URL: the local emulator`,
    '  apiKey: ${PLATFORM_API_KEY}',
    '',
    'contacts:',
    ...(sample.notes ?? []).map((note) => comment(note, 2)),
    ...sourceText(source),
    ...reason(id),
    `  id: ${literal(id.column.name)}`,
    ...reason(email),
    `  email: ${literal(email.column.name)}`,
    ...(optOutLines(unsubscribed) ??
      flag(
        'unsubscribed',
        unsubscribed[0],
        'a yes in it means that the person wants no mail at all',
      )),
    ...flag('deleted', deleted, 'a yes in it means that the person is gone'),
    ...unusedLines(proposal),
    '  channels:',
    ...channels.flatMap((channel) => [
      `    - id: ${literal(channel.id)}`,
      ...(channel.name === undefined ? [] : [`      name: ${literal(channel.name)}`]),
      ...comments(channel).map((line) => `    ${line}`),
      `      subscription: ${literal(subscriptionOf(channel))}`,
    ]),
    '',
  ].join('\n');
}

/** Returns the list of several opt-out columns; undefined: there are no several. */
function optOutLines(unsubscribed: readonly Chosen[]): string[] | undefined {
  if (unsubscribed.length < 2) return undefined;
  const entries = unsubscribed.flatMap((chosen) => [
    ...comments(chosen).map((line) => `  ${line}`),
    `    - ${literal(statementOf(chosen))}`,
  ]);
  return [
    '  # a yes in any of them means that the person wants no mail at all',
    '  unsubscribed:',
    ...entries,
  ];
}

function unusedLines({ unused: { named, likely, others } }: Proposal): string[] {
  const rest = `not used: ${counted(others, 'other column')}`;
  return [
    ...[...named, ...likely].map((column) => comment(`not used: ${said(column)}`, 2)),
    ...(others > 0 ? [comment(rest, 2)] : []),
  ];
}

/** Returns the options of the source. The path of a file is relative to the configuration. */
function sourceIn(folder: string, { options, file }: Sample): Record<string, unknown> {
  if (file === undefined) return options;
  const { type, ...more } = options;
  const path = escaped(placed(relative(folder, file).split(sep).join('/')));
  return { type, ...(type === 'sql' ? { url: `sqlite:${path}` } : { path }), ...more };
}

const mostInline = 80;

/** Returns the source on one line, or on several if it is long. */
function sourceText(source: Record<string, unknown>): string[] {
  const line = `  source: ${inline(source)}`;
  if (line.length <= mostInline) return [line];
  const lines = stringify(source, { lineWidth: 0 }).trimEnd().split('\n');
  return ['  source:', ...lines.map((one) => `    ${one}`)];
}

function readFrom({ origin, file, records, isWhole }: Sample): string {
  const name = file === undefined ? origin : basename(file);
  return `${isWhole ? '' : 'the first '}${counted(records, 'record')} of ${name}`;
}

function placed(path: string): string {
  return path.startsWith('.') ? path : `./${path}`;
}

/** Returns a column as the configuration states it: its name, or with the words that it needs. */
export function statementOf({ column, words }: Chosen): string | ({ field: string } & Words) {
  return Object.keys(words).length === 0 ? column.name : { field: column.name, ...words };
}

/** Returns the column of a channel as the configuration states it. */
export function subscriptionOf(channel: ChannelColumn) {
  const { column, words, optOut } = channel;
  if (optOut === undefined) return statementOf(channel);
  return { optOut: column.name, ...words, ...(optOut === 'else in' && { else: 'in' as const }) };
}

/** Returns a value as YAML on one line, with `${NAME}` as a variable of the environment. */
function inline(value: unknown): string {
  const document = new Document(value);
  visit(document, {
    Scalar(_, scalar) {
      if (/\p{Cc}/u.test(String(scalar.value))) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  const text = document.toString({
    collectionStyle: 'flow',
    lineWidth: 0,
    doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
  });
  return text.trimEnd();
}

/** Returns a value as YAML on one line, in which `${` stands for itself. */
function literal(value: unknown): string {
  return escaped(inline(value));
}

/** Escapes `${`, which would begin a variable. */
function escaped(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** Returns a comment on one line, whatever the names and values in it hold. */
function comment(text: string, indent = 0): string {
  return `${' '.repeat(indent)}# ${visibleLine(text)}`;
}

function reason({ why }: Chosen): string[] {
  return why === undefined ? [] : [comment(why, 2)];
}

function comments(chosen: Chosen): string[] {
  const { column, unknown } = chosen;
  if (column.filled === 0) return [...reason(chosen), '  # it is empty in all records'];
  const { length } = column.values;
  const dates = `${counted(length, 'different date')}: a date means yes`;
  const counts = length <= mostWords ? frequent(column.values) : [];
  const values = holdsDates(column) ? [dates] : counts;
  const strange = recordsOf(unknown);
  const invalid = `invalid: ${counted(strange, 'record')} with a word that is not named here`;
  return [
    ...reason(chosen),
    ...(values.length > 0 ? [comment(`it holds ${values.join(', ')}`, 2)] : []),
    ...(strange > 0 ? [comment(invalid, 2)] : []),
  ];
}

/** A column with more different values holds dates or free text. */
const mostWords = 30;

/** Writes and checks the configuration, with its reasons as comments; names the next command. */
import { basename, relative, sep, dirname, resolve } from 'node:path';
import { Document, stringify, visit, parseDocument } from 'yaml';
import { counted } from '../../domain/values/counted.ts';
import { visibleLine } from '../../compose/output/text-style.ts';
import {
  frequent,
  holdsDates,
  recordsOf,
  nameWithValues,
  type Chosen,
  type Words,
} from './column-words.ts';
import type { ChannelColumn, Proposal } from './propose.ts';
import { type Sample, localPlatform } from './sample.ts';
import { existsSync, writeFileSync } from 'node:fs';
import { Invalid } from '../../domain/errors.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { exitCode } from '../../compose/output/failure-report.ts';

interface Draft {
  output: string;
  mirror: string;
  sample: Sample;
  proposal: Proposal;
}

/** Values that may be personal data are not in the text. */
function configurationText({ output, mirror, sample, proposal }: Draft): string {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const { options, file, records, isWhole } = sample;
  const { type, ...more } = options;
  let source: Record<string, unknown> = options;
  if (file !== undefined) {
    // The path of a file is relative to the configuration.
    const path = relative(dirname(resolve(output)), file)
      .split(sep)
      .join('/');
    const placed = escaped(path.startsWith('.') ? path : `./${path}`);
    const place = type === 'sql' ? { url: `sqlite:${placed}` } : { path: placed };
    source = { type, ...place, ...more };
  }
  const sourceLine = `  source: ${inline(source)}`;
  const sourceLines = stringify(source, { lineWidth: 0 }).trimEnd().split('\n');
  const origin = file === undefined ? sample.origin : basename(file);
  const some = `${isWhole ? '' : 'the first '}${counted(records, 'record')}`;
  const { named, likely, others } = proposal.unused;
  const flag = (name: string, chosen: Chosen | undefined, none: string): string[] =>
    chosen
      ? [...comments(chosen), `  ${name}: ${literal(statementOf(chosen))}`]
      : [`  # ${name}: COLUMN # ${none}`];
  return [
    comment(`Proposed by \`crm-mirror init\` from ${some} of ${origin}.`),
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
    ...(sourceLine.length <= mostInline
      ? [sourceLine]
      : ['  source:', ...sourceLines.map((line) => `    ${line}`)]),
    ...reason(id),
    `  id: ${literal(id.column.name)}`,
    ...reason(email),
    `  email: ${literal(email.column.name)}`,
    ...(unsubscribed.length < 2
      ? flag(
          'unsubscribed',
          unsubscribed[0],
          'a yes in it means that the person wants no mail at all',
        )
      : [
          '  # a yes in any of them means that the person wants no mail at all',
          '  unsubscribed:',
          ...unsubscribed.flatMap((chosen) => [
            ...comments(chosen).map((line) => `  ${line}`),
            `    - ${literal(statementOf(chosen))}`,
          ]),
        ]),
    ...flag('deleted', deleted, 'a yes in it means that the person is gone'),
    ...[...named, ...likely].map((column) => comment(`not used: ${nameWithValues(column)}`, 2)),
    ...(others > 0 ? [comment(`not used: ${counted(others, 'other column')}`, 2)] : []),
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

const mostInline = 80;

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

/** Throws Invalid if the file exists. */
export function refuseExisting(output: string): void {
  if (!existsSync(resolve(output))) return;
  throw new Invalid(`${output} exists, and init overwrites nothing`, {
    fix: 'name another file with --output, or move that one away',
  });
}

/** Undefined: nothing is wrong with it. */
export function nameFault(mirror: string): string | undefined {
  return /^[a-z0-9-]{1,40}$/.test(mirror) ? undefined : 'write up to 40 of a-z, 0-9 and -';
}

/** Writes the file, runs `check` if the platform's key is set, and returns its exit code. */
export async function writeConfiguration(draft: Draft, shell: Shell): Promise<number> {
  const { output, mirror, sample } = draft;
  const { print, call } = shell;
  refuseExisting(output);
  const fix = nameFault(mirror);
  if (fix !== undefined) throw new Invalid(`--mirror ${mirror} is no name of a mirror`, { fix });
  const text = configurationText(draft);
  if (parseDocument(text).errors.length > 0) {
    // A file that cannot be loaded is not left behind.
    throw new Invalid(`${output} would be no YAML, so it is not written`, {
      fix: 'give the columns and words plain names in the CRM, or write the configuration by hand',
    });
  }
  writeFileSync(resolve(output), text, { flag: 'wx', mode: 0o644 });
  print('');
  print(`Wrote ${output}.`);
  const unset = Object.keys(sample.env ?? {}).filter((name) => !shell.env[name]);
  for (const name of unset) {
    print(`Keep ${name} in the environment: ${output} reads it from there.`);
  }
  const env = { ...sample.env, ...shell.env };
  if (!env['PLATFORM_API_KEY'] || call === undefined) {
    print('Next: set PLATFORM_URL and PLATFORM_API_KEY in the environment, then');
    print(`  crm-mirror check -c ${output}`);
    return exitCode('done');
  }
  print('');
  // The lines of check are rendered already: their colours must not be shown as codes.
  const shown: Shell['print'] = (line) => print(typeof line === 'string' ? { styled: line } : line);
  const code = await call(['check', '-c', output], { ...shell, env, print: shown });
  print('');
  print(
    code === exitCode('done') || code === exitCode('rejected')
      ? `Next: crm-mirror plan -c ${output}`
      : `Next: correct ${output}, then crm-mirror check -c ${output}`,
  );
  return code;
}

/** Returns a name for the mirror from that of the source: lower case, with hyphens. */
export function mirrorName(origin: string): string {
  const plain = basename(origin)
    .replace(/(\.(csv|tsv|txt|tab|ndjson|jsonl?|xlsx|sqlite3?|db3?|gz))+$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40);
  return plain === '' ? 'mirror' : plain;
}

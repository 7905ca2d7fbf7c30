/**
 * The conversation of `init` on a terminal fills in the flags of a command line, question by
 * question, so that the same can be done without it. Nothing is written before its end.
 */
import { platformChannels, readSample } from './read-sample.ts';
import { existsSync } from 'node:fs';
import { codeOfStop, exitCode } from '../../compose/output/failure-report.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { isExpected, renderProblem } from '../../domain/errors.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { countsOf, mayBeAny, recordsOf, valuesOf } from './column-words.ts';
import {
  columnsIn,
  commandLine,
  type Flags,
  idAndColumn,
  Undecided,
  type Question,
  withFlags,
  wordFlag,
  wordsOf,
} from './flags.ts';
import { mirrorName, nameFault, writeConfiguration } from './mirror-file.ts';
import { previewLines } from './preview.ts';
import { propose } from './propose.ts';
import type { Sample, PlatformChannel } from './sample.ts';
import { Cancelled, createTalk, type MenuItem, type Talk } from './talk.ts';

/** Asks, writes, checks, and prints the command line that does the same. */
export async function converse(given: Flags, shell: Shell): Promise<number> {
  const { stop } = shell;
  const talk = createTalk('crm-mirror init', stop);
  let agreed: Awaited<ReturnType<typeof agree>>;
  try {
    agreed = await agree(given, talk, shell);
  } catch (error) {
    if (!(error instanceof Cancelled) && !stop.aborted) throw error;
    talk.end('Nothing was written.', 'cancelled');
    return stop.aborted ? codeOfStop(stop.reason) : exitCode('interrupted');
  }
  talk.end('Nothing more to ask.', 'done');
  const code = await writeConfiguration(agreed.draft, shell);
  shell.print('');
  shell.print('The same without questions:');
  shell.print(`  ${commandLine(agreed.flags)}`);
  return code;
}

async function agree(asGiven: Flags, talk: Talk, shell: Shell) {
  const { flags: located, source, sample } = await locate(asGiven, talk, shell);
  const { channels: platform, note } = await platformChannels(shell.env, shell.stop);
  if (note !== undefined) talk.warn(note);
  // Each column gets a value of its own, so that an answer can take back one of them.
  const namesIn = (lists: readonly string[]) =>
    lists.flatMap((list) => columnsIn(list, sample.columns));
  const { unsubscribed, unused = [] } = located;
  const given = { ...located, unused: namesIn(unused) };
  if (unsubscribed) given.unsubscribed = namesIn(unsubscribed);
  const leftAlone = new Set<string>();
  const { flags, proposal } = await settle(given, { sample, platform, leftAlone, talk });
  const output = await talk.ask('Where is the configuration written to?', {
    initial: flags.output,
    fault: (path) =>
      existsSync(path) ? 'this file exists, and init overwrites nothing' : undefined,
  });
  const mirror = await talk.ask('What is the name of this mirror?', {
    initial: flags.mirror ?? mirrorName(sample.origin),
    fault: nameFault,
  });
  return {
    flags: { ...flags, source: sample.named ?? source, output, mirror },
    draft: { output, mirror, sample, proposal },
  };
}

/** Asks for the source until a sample of it can be read. */
async function locate(given: Flags, talk: Talk, { stop: signal, env }: Shell) {
  const flags = { ...given };
  for (;;) {
    if (flags.source === undefined) Object.assign(flags, await askSource(talk));
    const { source = '' } = flags;
    talk.show([`Reading ${source.replace(/:[^:@/]*@/, ':…@')} …`]);
    try {
      return { flags, source, sample: await readSample({ ...flags, source, env, signal }) };
    } catch (error) {
      signal.throwIfAborted();
      if (!isExpected(error)) throw error;
      if (error instanceof Undecided && error.question.about === 'table') {
        const tables = error.question.among.map((value) => ({ value, label: value }));
        flags.table = await talk.choose('Which table holds the people?', tables);
      } else {
        talk.warn(error.problems.map(renderProblem).join('\n'));
        Object.assign(flags, { source: undefined, table: undefined, header: undefined });
      }
    }
  }
}

const places = [
  { value: 'file', label: 'a file', hint: 'CSV, Excel, JSON lines, SQLite' },
  { value: 'sql', label: 'a database', hint: 'PostgreSQL, MySQL, MariaDB' },
  { value: 'http', label: 'an HTTP API', hint: 'a list of people as JSON' },
  { value: 'hubspot', label: 'HubSpot', hint: 'needs HUBSPOT_TOKEN' },
  { value: 'salesforce', label: 'Salesforce', hint: 'needs SALESFORCE_URL and an app' },
] as const;

async function askSource(talk: Talk): Promise<Partial<Flags>> {
  const place = await talk.choose('Where are the people?', places);
  if (place === 'file') {
    const fault = (path: string) => (existsSync(path) ? undefined : `there is no file ${path}`);
    return { source: await talk.ask('Which file?', { example: 'people.csv', fault }) };
  }
  if (place === 'sql') {
    const example = 'postgres://USER@HOST/DATABASE';
    talk.show(['A password is not written: name it ${DATABASE_URL} to read it from there.']);
    return { source: await talk.ask('What is the address of the database?', { example }) };
  }
  if (place !== 'http') return { source: place };
  const example = 'https://crm.example/api/contacts';
  const source = await talk.ask('What is the address of the list?', { example });
  if (!(await talk.agree('Does it need a header, such as Authorization?'))) return { source };
  const header = await talk.ask('Which header? Take its secret from the environment.', {
    initial: 'Authorization: Bearer ${CRM_TOKEN}',
  });
  return { source, header: [header] };
}

interface Subject {
  sample: Sample;
  platform: readonly PlatformChannel[];
  /** The channels of the platform of which the person says that they get no column. */
  leftAlone: Set<string>;
  talk: Talk;
}

const changes = [
  { value: 'write', label: 'Yes, write it' },
  ...(['id', 'email', 'unsubscribed', 'deleted', 'channels', 'words'] as const).map((value) => ({
    value,
    label: `Change ${value}`,
  })),
] as const;

async function settle(given: Flags, on: Subject) {
  const { sample, talk } = on;
  const asked = new Set<string>();
  let flags = given;
  for (;;) {
    const found = await complete(flags, on, asked);
    const { proposal } = found;
    ({ flags } = found);
    talk.show(previewLines(sample, proposal, { asTheyAre: true, width: talk.width() }));
    const wish = await talk.choose('Is this right?', changes);
    if (wish === 'write') return { flags, proposal };
    const { id, email, unsubscribed, deleted, channels } = proposal;
    const optOuts = unsubscribed.map(({ column }) => column.name);
    const channel = channels.map((one) => `${one.id}=${one.column.name}`);
    if (wish === 'channels') {
      const present = channels.map(({ column }) => column.name);
      flags = await askChannels({ ...flags, channel }, on, present);
    } else if (wish === 'unsubscribed') flags = await askOptOuts(flags, on, optOuts);
    else if (wish === 'words') {
      // Every column stays as it was proposed.
      asked.clear();
      flags = {
        ...flags,
        id: id.column.name,
        email: email.column.name,
        unsubscribed: optOuts.length > 0 && optOuts,
        deleted: deleted?.column.name ?? false,
        channel,
        words: [],
      };
    } else {
      const initial = proposal[wish]?.column.name;
      const chosen = await askRole(wish, on, [], initial);
      flags = { ...withoutWords(flags, chosen === initial ? [] : [initial]), [wish]: chosen };
    }
  }
}

async function complete(given: Flags, on: Subject, asked: Set<string>) {
  const { sample, platform, leftAlone, talk } = on;
  let flags = given;
  for (;;) {
    try {
      const proposal = propose(sample, flags, { asTheyAre: true, platform, leftAlone });
      const strange = proposal.channels.find(
        ({ column, unknown }) => unknown.length > 0 && !asked.has(column.name),
      );
      if (!strange) return { flags, proposal };
      asked.add(strange.column.name);
      flags = await nameWords(flags, { use: 'subscription', ...strange }, talk);
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      talk.warn(error.problems[0].reason);
      flags = await decide(flags, error.question, on);
    }
  }
}

const flagAnswers = [
  { value: 'unknown', label: 'I do not know', hint: 'ends here, and writes nothing' },
  { value: 'unused', label: 'something else: do not use it' },
  { value: 'unsubscribed', label: 'with a yes in it: wants no mail at all' },
  { value: 'channel', label: 'the consent to a channel' },
] as const;

const polarities = [
  { value: 'optOut', label: 'no mail', hint: 'everything else is no opinion' },
  { value: 'elseIn', label: 'no mail, and everybody else wants it' },
  { value: 'words', label: 'something else: say what each word means' },
  { value: 'other', label: 'take another column' },
] as const;

async function decide(given: Flags, question: Question, on: Subject): Promise<Flags> {
  const { talk, sample } = on;
  if (question.about === 'table') throw new Error('the table is asked for with the source');
  if (question.about === 'channels') {
    return askChannels(given, on, question.among, question.channels);
  }
  if (question.about === 'words') return decideWords(given, question, on);
  if ('column' in question) {
    const { column } = question;
    const { name } = column;
    if (question.about === 'flag') {
      const values = countsOf(column, sample.records, true);
      const message = `${name} looks like a flag (${values}). What does it say?`;
      const answer = await talk.choose(message, flagAnswers);
      if (answer === 'unknown') throw new Cancelled();
      if (answer === 'channel') {
        const id = await askChannel(on, question.channels);
        return withFlags(given, { channel: [...question.channels, `${id}=${name}`] });
      }
      return withFlags(given, { [answer]: [name] });
    }
    const message = `${name} is named like an opt-out. What does a yes in it mean?`;
    const way = await talk.choose(message, polarities);
    if (way === 'other') return askChannels(given, on, []);
    if (way !== 'words') return withFlags(given, { [way]: [name] });
    return nameWords(given, { use: 'subscription', column, unknown: column.values }, talk);
  }
  const { about, among } = question;
  const initial = firstFree(listColumns(sample, among), takenIn(given));
  return { ...given, [about]: await askRole(about, on, among, initial) };
}

const none = '\0none';
const rest = '\0rest';

const purposes = {
  id: 'Which column is the id of a person? It must never change.',
  email: 'Which column is the email address?',
  unsubscribed: 'Which column says that a person wants no mail at all?',
  deleted: 'Which column says that a person is gone?',
};

/** False: none. The columns `among` which it may be are listed first. */
async function askRole(
  role: keyof typeof purposes,
  { sample, talk }: Subject,
  among: readonly string[],
  initial = among[0],
): Promise<string | false> {
  const isOptional = role === 'unsubscribed' || role === 'deleted';
  const answers = [
    ...(isOptional ? [{ value: none, label: 'no column says so' }] : []),
    ...listColumns(sample, among),
  ];
  const chosen = await talk.choose(purposes[role], answers, initial);
  return chosen === none ? false : chosen;
}

async function askOptOuts(flags: Flags, on: Subject, present: readonly string[]): Promise<Flags> {
  const named: string[] = [];
  do {
    const others = present.filter((name) => !named.includes(name));
    const next = await askRole('unsubscribed', on, others);
    if (next === false) break;
    named.push(next);
  } while (await on.talk.agree('Does another column say so, too?'));
  if (named.length === 0) return { ...flags, unsubscribed: false };
  const unused = present.filter((name) => !named.includes(name));
  return withFlags({ ...flags, unsubscribed: [...new Set(named)] }, { unused });
}

/** Asks for the columns of all channels but `kept`. Enter alone takes none for the platform's. */
async function askChannels(
  flags: Flags,
  on: Subject,
  among: readonly string[],
  kept: readonly string[] = [],
): Promise<Flags> {
  const { sample, leftAlone, talk } = on;
  const columns = listColumns(sample, among);
  const before = new Map((flags.channel ?? []).map(idAndColumn));
  const channel = [...kept];
  const matched = kept.filter((one) => !flags.channel?.includes(one)).map(idAndColumn);
  if (matched.length > 0) {
    talk.show(matched.map(([id, column]) => `${id}: the column ${column}, which is named like it`));
  }
  for (const { id, name } of withoutColumn(on, kept)) {
    const message = `Which column holds the consent to ${name} (${id})?`;
    const skip = { value: none, label: 'none of them' };
    const column = await talk.choose(message, [skip, ...columns], before.get(id) ?? none);
    if (column === none) leftAlone.add(id);
    else channel.push(`${id}=${column}`);
  }
  while (channel.length === 0 || (await talk.agree('Is there another channel?'))) {
    const id = await askChannelId(talk, channel);
    const free = firstFree(columns, takenIn({ ...flags, channel }));
    const message = `Which column holds the consent to ${id}?`;
    channel.push(`${id}=${await talk.choose(message, columns, free)}`);
  }
  // What was said about the column of a channel holds while it is one.
  const isUsed = (name: string) => channel.some((one) => one.endsWith(`=${name}`));
  const { optOut = [], elseIn = [] } = flags;
  const former = [...optOut, ...elseIn].filter((name) => !isUsed(name));
  const polarity = { optOut: optOut.filter(isUsed), elseIn: elseIn.filter(isUsed) };
  return { ...withoutWords(flags, former), channel, ...polarity };
}

async function askChannel(on: Subject, channels: readonly string[]): Promise<string> {
  const open = withoutColumn(on, channels);
  if (open.length === 0) return askChannelId(on.talk, channels);
  const answers = open.map(({ id, name }) => ({ value: id, label: `${name} (${id})` }));
  const another = { value: none, label: 'another channel' };
  const id = await on.talk.choose('The consent to which channel?', [...answers, another]);
  return id === none ? askChannelId(on.talk, channels) : id;
}

async function askChannelId(talk: Talk, channels: readonly string[]): Promise<string> {
  const ids = channels.map((one) => idAndColumn(one)[0]);
  return talk.ask('What is the id of the channel on the platform?', {
    example: ['ch_news', 'ch_product'].find((one) => !ids.includes(one)) ?? 'ch_events',
    fault: (text) => {
      if (ids.includes(text)) return 'this channel has its column already';
      return /[=\s]/.test(text) ? 'an id has no spaces and no =' : undefined;
    },
  });
}

function withoutColumn({ platform }: Subject, channels: readonly string[]): PlatformChannel[] {
  return platform.filter(({ id }) => !channels.some((one) => idAndColumn(one)[0] === id));
}

/** Returns the columns that the flags use already. */
function takenIn({ id, email, unsubscribed, deleted, channel = [] }: Flags): string[] {
  const roles = [id, email, deleted, ...(unsubscribed || [])].filter(
    (one) => typeof one === 'string',
  );
  return [...roles, ...channel.map((one) => idAndColumn(one)[1])];
}

function firstFree(columns: readonly MenuItem[], taken: readonly string[]): string | undefined {
  return columns.find(({ value }) => !taken.includes(value))?.value;
}

function listColumns({ columns }: Sample, among: readonly string[]): MenuItem[] {
  const likely = columns.filter(({ name }) => among.includes(name));
  const others = columns.filter((column) => !likely.includes(column));
  return [...likely, ...others].map((column) => ({
    value: column.name,
    label: column.name,
    hint: valuesOf(column),
  }));
}

type WordsQuestion = Extract<Question, { about: 'words' }>;

async function decideWords(flags: Flags, question: WordsQuestion, on: Subject): Promise<Flags> {
  const { use, column, unknown, ofChannel } = question;
  const { talk } = on;
  const { name } = column;
  const isOptOut = use === 'unsubscribed' && !ofChannel;
  const other = isOptOut ? 'it says something else: do not use it' : 'take another column';
  const ways = [
    { value: 'name', label: 'say what its words mean' },
    ...(use !== 'subscription' && mayBeAny(question)
      ? [{ value: 'any', label: 'every word that is not a no means yes' }]
      : []),
    { value: 'other', label: other },
  ];
  const records = recordsOf(unknown);
  const hold = records === 1 ? 'holds an unknown word' : 'hold unknown words';
  const way = await talk.choose(`${counted(records, 'record')} of ${name} ${hold}.`, ways);
  if (way === 'name') return nameWords(flags, question, talk);
  if (way === 'any') return withWord(flags, wordFlag(name, { yes: 'any' }));
  if (isOptOut) {
    const others = (flags.unsubscribed || []).filter((one) => one !== name);
    const { unsubscribed: _, ...rest } = flags;
    return withFlags(rest, { unused: [name], ...(others.length > 0 && { unsubscribed: others }) });
  }
  if (use !== 'deleted') return askChannels(flags, on, []);
  const deleted = await askRole('deleted', on, []);
  return { ...withoutWords(flags, deleted === name ? [] : [name]), deleted };
}

const mostAsked = 12;

const meanings = {
  subscription: [
    { value: none, label: 'leave it invalid', hint: 'reported; nobody is opted in by it' },
    { value: 'in', label: 'in', hint: 'wants this mail' },
    { value: 'out', label: 'out', hint: 'does not want it' },
    { value: 'none', label: 'no opinion', hint: 'neither subscribed nor unsubscribed' },
    { value: rest, label: 'leave it and all other words invalid' },
  ],
  unsubscribed: [
    { value: 'yes', label: 'yes', hint: 'wants no mail at all' },
    { value: 'no', label: 'no' },
  ],
  deleted: [
    { value: 'no', label: 'no' },
    { value: 'yes', label: 'yes', hint: 'is gone from the CRM' },
  ],
} as const satisfies Record<WordsQuestion['use'], readonly MenuItem[]>;

async function nameWords(
  flags: Flags,
  { use, column, unknown }: Omit<WordsQuestion, 'about'>,
  talk: Talk,
): Promise<Flags> {
  let named = flags;
  for (const { text, records } of unknown.slice(0, mostAsked)) {
    const message = `${column.name}: what does "${text}" mean? (${counted(records, 'record')})`;
    const answers: readonly MenuItem[] = meanings[use];
    const meaning = await talk.choose(message, answers);
    if (meaning === rest) return named;
    if (meaning !== none) named = withWord(named, wordFlag(column.name, { [meaning]: [text] }));
  }
  const more = unknown.length - mostAsked;
  if (more > 0) talk.show([`${withCommas(more)} other words of ${column.name} stay invalid.`]);
  return named;
}

function withWord(flags: Flags, word: string): Flags {
  return withoutWords(withFlags(flags, { words: [word] }), []);
}

/** Returns the flags without the words of these columns: they would make each an opt-out. */
function withoutWords(flags: Flags, columns: readonly (string | undefined)[]): Flags {
  const words = [...wordsOf(flags.words ?? [])].filter(([column]) => !columns.includes(column));
  return { ...flags, words: words.map(([column, lists]) => wordFlag(column, lists)) };
}

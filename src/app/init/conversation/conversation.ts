/**
 * The conversation of `init` on a terminal. It fills in the flags of a command line, question by
 * question, so that the same can be done again without it. What cannot be decided without a guess
 * becomes a question. Nothing is written before its end.
 */
import { existsSync } from 'node:fs';
import type { Shell } from '../../../compose/process-shell.ts';
import { codeOfStop, exitCode } from '../../../compose/output/exit-codes.ts';
import { countsOf, recordsOf, valuesOf, mayBeAny } from '../column-words.ts';
import { described, previewOf } from '../describe-proposal.ts';
import { columnsIn, wordFlag, wordsOf } from '../column-flags.ts';
import { choicesOf, commandLine, type Flags } from '../init-flags.ts';
import { type PlatformChannel, platformChannels } from '../platform-channels.ts';
import { type Proposal, propose } from '../propose-columns.ts';
import { type Sample, type Role, Undecided, type Question } from '../sample/sample.ts';
import { mirrorName, nameFault, writeConfiguration } from '../mirror-file.ts';
import { Cancelled, createTalk, type Talk, type MenuItem } from './talk.ts';
import { isExpected, renderProblem } from '../../../domain/errors.ts';
import { readSample } from '../sample/read-sample.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';

/** Asks, writes, checks, and prints the command line that does the same. */
export async function converse(given: Flags, shell: Shell): Promise<number> {
  const talk = createTalk('crm-mirror init', shell.stop);
  const found = await agreed(given, talk, shell).catch((error: unknown) => {
    if (!(error instanceof Cancelled) && !shell.stop.aborted) throw error;
    talk.end('Nothing was written.', 'cancelled');
    return undefined;
  });
  if (!found) return shell.stop.aborted ? codeOfStop(shell.stop.reason) : exitCode('interrupted');
  const { flags, draft } = found;
  talk.end('Nothing more to ask.', 'done');
  const code = await writeConfiguration(draft, shell);
  shell.print('');
  shell.print('The same without questions:');
  shell.print(`  ${commandLine(flags)}`);
  return code;
}

async function agreed(asGiven: Flags, talk: Talk, shell: Shell) {
  const { flags: located, sample } = await locate(asGiven, talk, shell);
  const { channels: platform, note } = await platformChannels(shell.env, shell.stop);
  if (note !== undefined) talk.warn(note);
  // Each column gets a value of its own, so that an answer can take back one of them.
  const namesIn = (lists: readonly string[]) =>
    lists.flatMap((list) => columnsIn(list, sample.columns));
  const { unsubscribed, unused = [] } = located;
  const given = {
    ...located,
    unused: namesIn(unused),
    ...(unsubscribed && { unsubscribed: namesIn(unsubscribed) }),
  };
  const { flags, proposal } = await settled(given, { sample, platform, talk });
  const output = await talk.ask('Where is the configuration written to?', {
    initial: flags.output,
    fault: (path) =>
      existsSync(path) ? 'this file exists, and init overwrites nothing' : undefined,
  });
  const mirror = await talk.ask('What is the name of this mirror?', {
    initial: flags.mirror ?? mirrorName(sample.origin),
    fault: nameFault,
  });
  const draft = { output, mirror, sample, proposal };
  const { named: source = flags.source } = sample;
  return { flags: { ...flags, ...(source !== undefined && { source }), output, mirror }, draft };
}

interface Settled {
  flags: Flags;
  proposal: Proposal;
}

/** Asks until everything is decided and the person accepts the preview. */
async function settled(given: Flags, on: Subject): Promise<Settled> {
  const asked = new Set<string>();
  let flags = given;
  for (;;) {
    const { proposal, ...rest } = await complete(flags, on, asked);
    ({ flags } = rest);
    on.talk.show(described(on.sample, proposal, true));
    const showing = { asTheyAre: true, width: on.talk.width() };
    on.talk.show(['', ...previewOf(on.sample, proposal, showing)]);
    const changes = [
      { value: 'write', label: 'Yes, write it' },
      ...['id', 'email', 'unsubscribed', 'deleted', 'channels', 'words'].map((value) => ({
        value,
        label: `Change ${value}`,
      })),
    ];
    const wish = await on.talk.choose('Is this right?', changes);
    if (wish === 'write') return { flags, proposal };
    if (wish === 'words') asked.clear();
    flags = await changed(flags, wish, proposal, on);
  }
}

/** Asks what is not decided, and for the meaning of each unknown word, once for each column. */
async function complete(given: Flags, on: Subject, asked: Set<string>): Promise<Settled> {
  let flags = given;
  for (;;) {
    try {
      const { platform, sample } = on;
      const proposal = propose(sample, choicesOf(flags, { asTheyAre: true, platform }));
      const strange = proposal.channels.find(
        ({ column, unknown }) => unknown.length > 0 && !asked.has(column.name),
      );
      if (!strange) return { flags, proposal };
      asked.add(strange.column.name);
      const question = { about: 'words', use: 'subscription', ...strange } as const;
      flags = await nameWords(flags, question, on);
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      on.talk.warn(error.problems[0].reason);
      flags = await decided(flags, error.question, on);
    }
  }
}

async function changed(
  flags: Flags,
  wish: string,
  proposal: Proposal,
  on: Subject,
): Promise<Flags> {
  if (wish === 'channels') return askChannels({ ...flags, channel: [] }, on);
  const optOuts = proposal.unsubscribed.map(({ column }) => column.name);
  if (wish === 'words') {
    // Every column stays as it was proposed.
    const { words: _words, ...others } = flags;
    const { id, email, deleted, channels } = proposal;
    return {
      ...others,
      id: id.column.name,
      email: email.column.name,
      unsubscribed: optOuts.length > 0 && optOuts,
      deleted: deleted?.column.name ?? false,
      channel: channels.map((one) => `${one.id}=${one.column.name}`),
    };
  }
  if (wish === 'unsubscribed') return askOptOuts(flags, on, optOuts);
  const roles = ['id', 'email', 'deleted'] as const;
  const role = roles.find((one) => one === wish) ?? 'id';
  const initial = proposal[role]?.column.name;
  const chosen = await askRole(role, on, { among: [], initial });
  return { ...withoutWords(flags, chosen === initial ? [] : [initial]), [role]: chosen };
}

async function locate(
  flags: Flags,
  talk: Talk,
  shell: Shell,
): Promise<{ flags: Flags & { source: string }; sample: Sample }> {
  const { stop: signal, env } = shell;
  const { source } = flags;
  if (source === undefined) {
    return locate({ ...flags, ...(await askSource(talk)) }, talk, shell);
  }
  talk.show([`Reading ${source.replace(/:[^:@/]*@/, ':…@')} …`]);
  try {
    const sample = await readSample({ ...flags, source, env, signal });
    return { flags: { ...flags, source }, sample };
  } catch (error) {
    signal.throwIfAborted();
    if (!isExpected(error)) throw error;
    if (error instanceof Undecided && error.question.about === 'table') {
      const tables = error.question.among.map((value) => ({ value, label: value }));
      const table = await talk.choose('Which table holds the people?', tables);
      return locate({ ...flags, table }, talk, shell);
    }
    talk.warn(error.problems.map(renderProblem).join('\n'));
    const { source: _source, table: _table, header: _header, ...rest } = flags;
    return locate(rest, talk, shell);
  }
}

const places = [
  { value: 'file', label: 'a file', hint: 'CSV, Excel, JSON lines, SQLite' },
  { value: 'sql', label: 'a database', hint: 'PostgreSQL, MySQL, MariaDB' },
  { value: 'http', label: 'an HTTP API', hint: 'a list of people as JSON' },
  { value: 'hubspot', label: 'HubSpot', hint: 'needs HUBSPOT_TOKEN' },
  { value: 'salesforce', label: 'Salesforce', hint: 'needs SALESFORCE_URL and an app' },
] as const;

async function askSource(talk: Talk): Promise<Pick<Flags, 'source' | 'header'>> {
  const place = await talk.choose('Where are the people?', places);
  if (place === 'file') {
    const fault = (path: string) => (existsSync(path) ? undefined : `there is no file ${path}`);
    return { source: await talk.ask('Which file?', { example: 'people.csv', fault }) };
  }
  if (place === 'sql') {
    const example = 'postgres://USER@HOST/DATABASE';
    const hint = 'A password is not written: name it ${DATABASE_URL} to read it from there.';
    talk.show([hint]);
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
  talk: Talk;
}

const purposes: Readonly<Record<Role, string>> = {
  id: 'Which column is the id of a person? It must never change.',
  email: 'Which column is the email address?',
  unsubscribed: 'Which column says that a person wants no mail at all?',
  deleted: 'Which column says that a person is gone?',
};

const none = '\0none';
const rest = '\0rest';

const flagAnswers = [
  { value: 'unknown', label: 'I do not know', hint: 'ends here, and writes nothing' },
  { value: 'unused', label: 'something else: do not use it' },
  { value: 'unsubscribed', label: 'with a yes in it: wants no mail at all' },
] as const;

const polarities = [
  { value: 'optOut', label: 'no mail', hint: 'everything else is no opinion' },
  { value: 'elseIn', label: 'no mail, and everybody else wants it' },
  { value: 'words', label: 'something else: say what each word means' },
  { value: 'other', label: 'take another column' },
] as const;

async function decided(flags: Flags, question: Question, on: Subject): Promise<Flags> {
  if (question.about === 'words') return decideWords(flags, question, on);
  if (question.about === 'channels') return askChannels(flags, on, question.among);
  if (question.about === 'table') throw new Error('the table is asked for with the source');
  const { talk, sample } = on;
  if (question.about === 'flags') {
    const unused = [...(flags.unused ?? [])];
    const unsubscribed: string[] = [];
    for (const column of question.among) {
      const values = countsOf(column, sample.records, true);
      const message = `${column.name} looks like a flag (${values}). What does it say?`;
      const answer = await talk.choose(message, flagAnswers);
      if (answer === 'unknown') throw new Cancelled();
      (answer === 'unused' ? unused : unsubscribed).push(column.name);
    }
    const named = [...(flags.unsubscribed || []), ...unsubscribed];
    return { ...flags, unused, ...(unsubscribed.length > 0 && { unsubscribed: named }) };
  }
  if (question.about === 'polarity') {
    const { column } = question;
    const { name } = column;
    const message = `${name} is named like an opt-out. What does a yes in it mean?`;
    const way = await talk.choose(message, polarities);
    if (way === 'other') return askChannels({ ...flags, channel: [] }, on);
    if (way === 'words') {
      const { values: unknown } = column;
      return nameWords(flags, { about: 'words', use: 'subscription', column, unknown }, on);
    }
    return { ...flags, [way]: [...(flags[way] ?? []), name] };
  }
  return { ...flags, [question.about]: await askRole(question.about, on, question) };
}

/** Asks which column has a role; false: none. */
async function askRole(
  role: Role,
  { sample, talk }: Subject,
  { among, initial }: { among: readonly string[]; initial?: string | undefined },
): Promise<string | false> {
  const isOptional = role === 'unsubscribed' || role === 'deleted';
  const answers = [
    ...(isOptional ? [{ value: none, label: 'no column says so' }] : []),
    ...columnsOf(sample, among),
  ];
  const present = initial ?? among[0];
  const chosen = await talk.choose(purposes[role], answers, present);
  return chosen === none ? false : chosen;
}

async function askOptOuts(flags: Flags, on: Subject, present: readonly string[]): Promise<Flags> {
  const first = await askRole('unsubscribed', on, { among: present, initial: present[0] });
  if (first === false) return { ...flags, unsubscribed: false };
  const named = [first];
  while (await on.talk.agree('Does another column say so, too?')) {
    const rest = present.filter((name) => !named.includes(name));
    const next = await askRole('unsubscribed', on, { among: rest, initial: rest[0] });
    if (next === false) break;
    named.push(next);
  }
  const unused = present.filter((name) => !named.includes(name));
  return {
    ...flags,
    unsubscribed: [...new Set(named)],
    unused: [...(flags.unused ?? []), ...unused],
  };
}

async function askChannels(
  flags: Flags,
  { sample, platform, talk }: Subject,
  among: readonly string[] = [],
): Promise<Flags> {
  const columns = columnsOf(sample, among);
  const channel: string[] = [];
  for (const { id, name } of platform) {
    const skip = { value: none, label: 'no column: leave this channel alone' };
    const message = `Which column is the consent to ${name} (${id})?`;
    const column = await talk.choose(message, [...columns, skip]);
    if (column !== none) channel.push(`${id}=${column}`);
  }
  while (channel.length === 0 || (await talk.agree('Is there another channel?'))) {
    const id = await talk.ask('What is the id of the channel on the platform?', {
      example: 'ch_news',
      fault: (text) => (/[=\s]/.test(text) ? 'an id has no spaces and no =' : undefined),
    });
    const column = await talk.choose(`Which column is the consent to ${id}?`, columns);
    channel.push(`${id}=${column}`);
  }
  // What was said about the column of a channel holds while it is one.
  const isUsed = (name: string) => channel.some((one) => one.endsWith(`=${name}`));
  const { optOut = [], elseIn = [] } = flags;
  const former = [...optOut, ...elseIn].filter((name) => !isUsed(name));
  return {
    ...withoutWords(flags, former),
    channel,
    optOut: optOut.filter(isUsed),
    elseIn: elseIn.filter(isUsed),
  };
}

function columnsOf({ columns }: Sample, among: readonly string[]): MenuItem[] {
  const likely = columns.filter(({ name }) => among.includes(name));
  const others = columns.filter((column) => !likely.includes(column));
  return [...likely, ...others].map((column) => ({
    value: column.name,
    label: column.name,
    hint: valuesOf(column),
  }));
}

type WordsQuestion = Extract<Question, { about: 'words' }>;

const mostAsked = 12;

async function decideWords(flags: Flags, question: WordsQuestion, on: Subject): Promise<Flags> {
  const { use, column, unknown, ofChannel } = question;
  const { talk } = on;
  const isFlag = use !== 'subscription';
  const ways = [
    { value: 'name', label: 'say what its words mean' },
    { value: 'any', label: 'every word that is not a no means yes' },
    use === 'unsubscribed' && !ofChannel
      ? { value: 'other', label: 'it says something else: do not use it' }
      : { value: 'other', label: 'take another column' },
  ].filter(({ value }) => value !== 'any' || (isFlag && mayBeAny(question)));
  const records = recordsOf(unknown);
  const hold = records === 1 ? 'holds an unknown word' : 'hold unknown words';
  const message = `${counted(records, 'record')} of ${column.name} ${hold}.`;
  const way = await talk.choose(message, ways);
  if (way === 'name') return nameWords(flags, question, on);
  if (way === 'any') return withWord(flags, `${column.name}:yes=any`);
  if (ofChannel) return askChannels({ ...flags, channel: [] }, on);
  if (use === 'unsubscribed') {
    const { unsubscribed } = flags;
    const others = (unsubscribed || []).filter((name) => name !== column.name);
    const { unsubscribed: _, ...rest } = flags;
    const named = others.length > 0 ? { unsubscribed: others } : {};
    return { ...rest, ...named, unused: [...(flags.unused ?? []), column.name] };
  }
  if (isFlag) {
    const chosen = await askRole(use, on, { among: [] });
    return { ...withoutWords(flags, chosen === column.name ? [] : [column.name]), [use]: chosen };
  }
  return askChannels({ ...flags, channel: [] }, on);
}

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
  { use, column, unknown }: WordsQuestion,
  { talk }: Subject,
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
  const words = wordsOf([...(flags.words ?? []), word]);
  return { ...flags, words: [...words].map(([column, lists]) => wordFlag(column, lists)) };
}

/** Returns the flags without the words of these columns: they would make each an opt-out. */
function withoutWords(flags: Flags, columns: readonly (string | undefined)[]): Flags {
  const words = [...wordsOf(flags.words ?? [])].filter(([column]) => !columns.includes(column));
  return { ...flags, words: words.map(([column, lists]) => wordFlag(column, lists)) };
}

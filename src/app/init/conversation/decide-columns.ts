/** Turns what cannot be decided without a guess into questions, and their answers into flags. */
import { counted, withCommas } from '../../../domain/values/counted.ts';
import { wordFlag, wordsOf } from '../flag-lists.ts';
import type { Flags } from '../init-flags.ts';
import type { PlatformChannel } from '../match-channels.ts';
import { countsOf, recordsOf, valuesOf } from '../column-values.ts';
import { mayBeAny } from '../column-words.ts';
import type { Column, Role, Sample } from '../sample/sample.ts';
import type { Question } from '../sample/undecided.ts';
import { Cancelled, type MenuItem, type Talk } from './talk.ts';

/** What a question is asked about. */
export interface Subject {
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

/** Asks the question, and returns the flags with the answer. */
export async function decided(flags: Flags, question: Question, on: Subject): Promise<Flags> {
  if (question.about === 'words') return decideWords(flags, question, on);
  if (question.about === 'polarity') return decidePolarity(flags, question.column, on);
  if (question.about === 'channels') return askChannels(flags, on, question.among);
  if (question.about === 'flags') return judgeFlags(flags, question, on);
  if (question.about === 'table') throw new Error('the table is asked for with the source');
  return { ...flags, [question.about]: await askRole(question.about, on, question) };
}

/** Asks which column has a role; false: none. */
export async function askRole(
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

/** Asks which columns are opt-outs, one after the other. */
export async function askOptOuts(
  flags: Flags,
  on: Subject,
  present: readonly string[],
): Promise<Flags> {
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

const flagAnswers = [
  { value: 'unknown', label: 'I do not know', hint: 'ends here, and writes nothing' },
  { value: 'unused', label: 'something else: do not use it' },
  { value: 'unsubscribed', label: 'with a yes in it: wants no mail at all' },
] as const;

/** Asks what each column says that looks like a flag. */
async function judgeFlags(
  flags: Flags,
  { among }: Extract<Question, { about: 'flags' }>,
  { talk, sample }: Subject,
): Promise<Flags> {
  const unused = [...(flags.unused ?? [])];
  const unsubscribed: string[] = [];
  for (const column of among) {
    const message = `${column.name} looks like a flag (${countsOf(column, sample.records, true)}). What does it say?`;
    const answer = await talk.choose(message, flagAnswers);
    if (answer === 'unknown') throw new Cancelled();
    (answer === 'unused' ? unused : unsubscribed).push(column.name);
  }
  const named = [...(flags.unsubscribed || []), ...unsubscribed];
  return { ...flags, unused, ...(unsubscribed.length > 0 && { unsubscribed: named }) };
}

/** Asks for the column of each channel of the platform, or for channels and their columns. */
export async function askChannels(
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

/** Asks what a yes means in a channel's column that is named like an opt-out. */
async function decidePolarity(flags: Flags, column: Column, on: Subject): Promise<Flags> {
  const { name } = column;
  const way = await on.talk.choose(
    `${name} is named like an opt-out. What does a yes in it mean?`,
    [
      { value: 'optOut', label: 'no mail', hint: 'everything else is no opinion' },
      { value: 'elseIn', label: 'no mail, and everybody else wants it' },
      { value: 'words', label: 'something else: say what each word means' },
      { value: 'other', label: 'take another column' },
    ],
  );
  if (way === 'other') return askChannels({ ...flags, channel: [] }, on);
  if (way === 'words') {
    const question = {
      about: 'words',
      use: 'subscription',
      column,
      unknown: column.values,
    } as const;
    return nameWords(flags, question, on);
  }
  return way === 'elseIn'
    ? { ...flags, elseIn: [...(flags.elseIn ?? []), name] }
    : { ...flags, optOut: [...(flags.optOut ?? []), name] };
}

/** Returns the columns to choose from; those that come into question are first. */
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

/** How many words of a column are asked for one by one. */
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

/** Asks for the meaning of the most frequent unknown words of a column. */
export async function nameWords(
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
export function withoutWords(flags: Flags, columns: readonly (string | undefined)[]): Flags {
  const words = [...wordsOf(flags.words ?? [])].filter(([column]) => !columns.includes(column));
  return { ...flags, words: words.map(([column, lists]) => wordFlag(column, lists)) };
}

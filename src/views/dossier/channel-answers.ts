/** Answers for each channel why a person does or does not receive its mail, in one sentence. */
import { writeFacts } from '../audit/entry-text.ts';
import type { EntryDocument } from '../audit/entry-document.ts';
import type { ExplainedPerson } from '../lookup/person-document.ts';
import { timeWords } from '../lookup/person-text.ts';
import type { ListEntries } from './person-records.ts';

/** Everything that an answer follows from. */
export interface Evidence {
  channels: readonly string[];
  /** The entries of the audit log about the person, the oldest first. */
  entries: readonly EntryDocument[];
  listed: ListEntries;
  /** The time for which the answer is given; null for now. */
  asOf: string | null;
  /** The present state; undefined for the past. */
  present: Pick<ExplainedPerson, 'platform' | 'snapshot'> | undefined;
}

/** The answer for one channel. */
export interface ChannelAnswer {
  /** The id of the channel; `*` for all mail. */
  channel: string;
  /** opt_in, opt_out or none; null if it is not known or not certain. */
  state: string | null;
  /**
   * Where the state was read; `log` if it is derived from the last write, and `list` if an entry of
   * the do-not-contact list tells it.
   */
  from: 'platform' | 'snapshot' | 'log' | 'list';
  /** When the write that made this state was recorded; null if no write of the mirror made it. */
  since: string | null;
  /** The number of the entry of that write in the audit log. */
  entry: number | null;
  sentence: string;
}

/** Returns the answers. */
export function answersOf(evidence: Evidence): ChannelAnswer[] {
  const all = leftAnswer(evidence);
  return [
    ...(all ? [all] : []),
    ...evidence.channels.map((channel) => answerOf(channel, evidence)),
  ];
}

function answerOf(channel: string, evidence: Evidence): ChannelAnswer {
  const write = lastWrite(channel, evidence);
  const read = stateOf(channel, { ...evidence, write });
  const refused = refusedAnswer(channel, { ...evidence, write, read });
  if (refused) return refused;
  const { state, from } = read;
  const isCause = write !== undefined && state !== null && write.after === state;
  const sentence = [
    headOf({ state, from, since: isCause ? ` since ${write.at}` : '' }, evidence),
    ...(isCause ? causeWords(write) : strangerWords(channel, write, evidence)),
    ...listedWords(channel, evidence.listed),
  ].join('. ');
  const since = isCause ? write.at : null;
  const entry = isCause ? write.seq : null;
  return { channel, state, from, since, entry, sentence: `${channel}: ${sentence}.` };
}

const effective: ReadonlySet<unknown> = new Set(['acked', 'found', 'undone', 'unknown']);

/** Returns the last write that changed the channel, or may have. */
function lastWrite(channel: string, { entries }: Evidence): EntryDocument | undefined {
  return entries.findLast(
    ({ type, part, outcome }) =>
      type === 'write' && (part === channel || part === '') && effective.has(outcome),
  );
}

type State = Pick<ChannelAnswer, 'state' | 'from'>;

function stateOf(
  channel: string,
  { present, write }: Evidence & { write: EntryDocument | undefined },
): State {
  if (!present) return { state: write ? (write.after ?? null) : null, from: 'log' };
  const { platform, snapshot } = present;
  if (!platform.read) {
    return {
      state: snapshot ? (snapshot.channels[channel]?.is ?? 'none') : null,
      from: 'snapshot',
    };
  }
  const states = platform.contacts.map(({ channels }) => channels[channel] ?? 'none');
  const state = ['opt_in', 'opt_out'].find((one) => states.some((is) => is === one)) ?? 'none';
  return { state, from: 'platform' };
}

/** The causes that say for certain that the person receives no mail, and how that is known. */
const certain: Readonly<Record<string, string>> = {
  opt_out: 'seen on the platform',
  unsubscribed: 'seen on the platform',
  blocked: 'seen on the platform',
  complaint: 'seen on the platform',
  suppressed: 'seen on the platform',
  operator: 'decided by an operator',
};

/**
 * Returns the answer if the do-not-contact list contradicts an opt-in, or a state that the log does
 * not tell. For the past the entry decides, if it is certain and not earlier than the last write.
 */
function refusedAnswer(
  channel: string,
  evidence: Evidence & { write: EntryDocument | undefined; read: State },
): ChannelAnswer | undefined {
  const { write, read, asOf } = evidence;
  if (read.state !== 'opt_in' && (read.state !== null || read.from !== 'log')) return undefined;
  const entries = listedOn(channel, evidence.listed).filter((one) => !isLifted(one, write));
  if (entries.length === 0) return undefined;
  const deciding = entries.findLast(
    (one) =>
      read.from === 'log' &&
      one.through === 'address' &&
      certain[one.cause] !== undefined &&
      (!write || write.at <= (one.until ?? '')),
  );
  const head = deciding
    ? `opted out, by ${deciding.until ?? ''} (${certain[deciding.cause] ?? ''} / do-not-contact list)`
    : `not certain: ${headOf({ ...read, since: '' }, evidence)}, but the do-not-contact list has an entry`;
  const facts = [...strangerWords(channel, write, evidence), ...listedWords(channel, entries)];
  const state = deciding ? 'opt_out' : null;
  const from = deciding ? 'list' : read.from;
  const at = deciding && asOf !== null ? [`This is the state at ${asOf}`] : [];
  const sentence = `${channel}: ${[head, ...at, ...facts].join('. ')}.`;
  return { channel, state, from, since: null, entry: null, sentence };
}

/** Whether a later write that certainly opted the person in ended what the entry says. */
function isLifted(
  { channel, until }: ListEntries[number],
  write: EntryDocument | undefined,
): boolean {
  if (channel === '*' || !write || write.after !== 'opt_in') return false;
  return write['outcome'] !== 'unknown' && write.at > (until ?? '');
}

const stateWords: Readonly<Record<string, string>> = {
  opt_in: 'subscribed',
  opt_out: 'opted out',
  none: 'not subscribed',
};

function headOf(
  { state, from, since }: State & { since: string },
  { asOf, present }: Evidence,
): string {
  const words = state === null ? 'not known' : (stateWords[state] ?? state);
  if (from === 'log') {
    return `${words} at ${asOf ?? ''}, as derived from the last write before${since}`;
  }
  if (from === 'platform') return `${words} on the platform${since}`;
  const at = present?.snapshot ? `as recorded at ${present.snapshot.seenAt}; ` : '';
  return `${words}${since} (${at}the platform was not read)`;
}

function causeWords(write: EntryDocument): string[] {
  const facts = writeFacts(write).filter(([name]) => sentences[name]);
  const found =
    write['outcome'] === 'found'
      ? ['It was found done afterwards: nobody can tell whose doing it was']
      : [];
  return [
    `This was done by the write in entry ${write.seq} of the audit log`,
    ...found,
    ...facts.map(([name, text]) => `${sentences[name] ?? ''} ${text}`),
  ];
}

const sentences: Readonly<Record<string, string>> = {
  rule: 'The rule was:',
  'CRM said': 'The CRM said',
  'asked by': 'It was asked for by',
  approval: 'Approval:',
  approved: 'It was approved:',
  note: 'Note:',
};

function strangerWords(
  channel: string,
  write: EntryDocument | undefined,
  { present }: Evidence,
): string[] {
  const made = present?.snapshot?.channels[channel];
  const when = made && made.until !== null ? `, ${timeWords(made)}` : '';
  const who = made?.by === 'platform' ? [`The person or another program did this${when}`] : [];
  if (!write) return ['The audit log has no write to this channel', ...who];
  const left = write.after === null ? 'what it left is not known' : `it left ${write.after}`;
  const last = `The last write is entry ${write.seq} of ${write.at} (${String(write['op'])}); ${left}`;
  if (!present) return [last];
  return [last, 'No write of this mirror made the present state', ...who];
}

function listedWords(channel: string, listed: ListEntries): string[] {
  return listedOn(channel, listed).map(({ cause, after, until }) => {
    return `On the do-not-contact list: ${cause}, ${timeWords({ after, until: until ?? '' })}`;
  });
}

function listedOn(channel: string, listed: ListEntries): ListEntries {
  return listed.filter((one) => one.channel === channel || one.channel === '*');
}

/** Says that the person receives no mail at all, if the platform shows that. */
function leftAnswer({ present }: Evidence): ChannelAnswer | undefined {
  const contact = present?.platform.contacts.find(({ left }) => left);
  if (!contact) return undefined;
  const status = contact.status ?? 'unsubscribed from all mail';
  const sentence = `all mail: the platform sends this person none: the contact ${contact.id} is ${status}.`;
  return { channel: '*', state: 'opt_out', from: 'platform', since: null, entry: null, sentence };
}

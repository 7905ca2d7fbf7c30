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
  /** opt_in, opt_out or none; null if it is not known. */
  state: string | null;
  /**
   * Where the state was read. For the past: `log` if it is derived from the last write, `list` if
   * the do-not-contact list knows an opt-out that came after that write.
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
  const { state, from } = stateOf(channel, { ...evidence, write });
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
  { present, listed, write }: Evidence & { write: EntryDocument | undefined },
): State {
  if (!present) return pastState(channel, { listed, write });
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

/** Returns the state at a time in the past, for which the evidence was filtered. */
function pastState(
  channel: string,
  { listed, write }: Pick<Evidence, 'listed'> & { write: EntryDocument | undefined },
): State {
  const later = listedIn(channel, listed).filter(
    ({ until }) =>
      write === undefined || (until !== null && Date.parse(until) >= Date.parse(write.at)),
  );
  if (later.some(({ cause }) => cause !== 'vanished')) return { state: 'opt_out', from: 'list' };
  if (later.length > 0) return { state: null, from: 'list' };
  return { state: write?.after ?? null, from: 'log' };
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
  if (from === 'list') return `${words} at ${asOf ?? ''}, by the do-not-contact list`;
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

function listedIn(channel: string, listed: ListEntries): ListEntries {
  return listed.filter((one) => one.channel === channel || one.channel === '*');
}

function listedWords(channel: string, listed: ListEntries): string[] {
  return listedIn(channel, listed).map(({ cause, after, until }) => {
    return `On the do-not-contact list: ${cause}, ${timeWords({ after, until: until ?? '' })}`;
  });
}

/** Says that the person receives no mail at all, if the platform shows that. */
function leftAnswer({ present }: Evidence): ChannelAnswer | undefined {
  const contact = present?.platform.contacts.find(({ left }) => left);
  if (!contact) return undefined;
  const status = contact.status ?? 'unsubscribed from all mail';
  const sentence = `all mail: the platform sends this person none: the contact ${contact.id} is ${status}.`;
  return { channel: '*', state: 'opt_out', from: 'platform', since: null, entry: null, sentence };
}

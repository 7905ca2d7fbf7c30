/** Collects everything known of one person, from every place that may know something. */
import { existsSync } from 'node:fs';
import { faultOf, knownHead } from '../../store/audit/audit-trail.ts';
import { verifyLog } from '../../store/audit/verify-log.ts';
import type { Config } from '../../config/config.ts';
import { ExpectedError, type Problem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { LoggedRequest } from '../../store/request-log/read-log.ts';
import { alteredText } from '../audit/log-verification.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';
import {
  examinePerson,
  type FoundPerson,
  type ExplainedPerson,
} from '../lookup/person-document.ts';
import { maskedText, namesOf, type Names } from '../lookup/person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { documentOf } from '../state/record-document.ts';
import { entriesAbout, listedIn, type ListEntries, requestsAbout } from './person-records.ts';
import { writeFacts } from '../audit/entry-text.ts';
import type { EntryDocument } from '../audit/entry-document.ts';
import { timeWords } from '../lookup/person-text.ts';

const kind = 'contact';
/** More than a log can hold. */
const everything = 1_000_000_000;

/** The person of the dossier, and the time up to which it counts. */
interface DossierRequest {
  key: Key;
  /** The time after which nothing counts, in milliseconds since the epoch; null for now. */
  asOf: number | null;
  /** Whether to skip reading the platform. */
  offline: boolean;
}

/** A part of a dossier that could not be read, or not wholly. */
interface Missing {
  part: 'crm' | 'platform' | 'audit' | 'requests' | 'signature';
  reason: string;
  fix: string | null;
}

/** A dossier. */
export type Dossier = Awaited<ReturnType<typeof dossierOf>>;

interface Gathering extends DossierRequest {
  config: Config;
  opened: Assembled;
  /** Collects what could not be read. */
  missing: Missing[];
}

/** Returns the dossier of a person. Addresses of other people are hashes in it. */
export async function dossierOf(
  config: Config,
  { opened, shell }: { opened: Assembled; shell: Pick<Shell, 'stop' | 'abort'> },
  asked: DossierRequest,
) {
  const { key, asOf } = asked;
  const { snapshot, clock } = opened.mirror;
  const missing: Missing[] = [];
  const gathering: Gathering = { ...asked, config, opened, missing };
  const names = ownNames(namesOf(snapshot, false), key);
  const found = asOf === null ? await presentOf(gathering, shell, names) : undefined;
  const audit = withoutFailure(gathering, 'audit', () => auditOf(gathering));
  const requests = withoutFailure(gathering, 'requests', () => requestsOf(gathering)) ?? [];
  const who = { key, ids: snapshot.recorded.originsOf(kind, key) };
  const listed = found?.document.ledger ?? listedIn(opened.mirror.doNotContact, who, asOf);
  const entries = audit?.entries ?? [];
  const known = isKnown({ found, listed, entries, requests });
  const at = instantOrNull(asOf);
  const evidence = {
    channels: known ? channelsOf(config, found) : [],
    entries,
    listed,
    asOf: at,
    present: found?.document,
  };
  const recorded = { config, snapshot, names };
  const document = {
    dossier: 1,
    mirror: config.mirror,
    person: key,
    createdAt: instant(clock.now()),
    /** What is later than this is left out, and so is what can only be shown for now. */
    asOf: at,
    /** Whether anything is known but an erasure. */
    known,
    erased: listed.find(({ cause }) => cause === 'erasure')?.until ?? null,
    answers: answersOf(evidence),
    missing,
    crm: found?.document.crm ?? null,
    snapshot: found?.document.snapshot ?? null,
    platform: found ? { ...found.document.platform, raw: found.details } : null,
    doNotContact: listed,
    decision: found ? decisionOf(found) : null,
    audit: audit ?? null,
    requests,
    history: found?.document.history ?? null,
    recorded: found ? documentOf(recorded, { kind, key }) : null,
  };
  return maskedValues(document, (text) => maskedText(text, names));
}

function decisionOf({ document: { channels, sends, keptBack, held, parked } }: FoundPerson) {
  return { channels, sends, keptBack, awaitingApproval: held, refused: parked };
}

/** Names the person by their address, and everybody else by a hash. */
function ownNames(hashOf: Names, key: Key): Names {
  return (record) => (record.key === key ? key : hashOf(record));
}

async function presentOf(
  { config, opened, key, offline, missing }: Gathering,
  shell: Pick<Shell, 'stop' | 'abort'>,
  names: Names,
): Promise<FoundPerson> {
  const shown = { names, addresses: true, changes: everything };
  const found = await examinePerson(opened, shell, { config, key, offline, ...shown });
  const { crm, platform } = found.document;
  if (!crm.read || !crm.certified) {
    const how = crm.read ? 'not read completely' : 'not read';
    missing.push({ part: 'crm', reason: `${how}: ${crm.why ?? ''}`, fix: null });
  }
  if (!platform.read && !offline) {
    missing.push({ part: 'platform', reason: `not read: ${platform.why ?? ''}`, fix: null });
  }
  if (found.unread) missing.push(missingOf('platform', found.unread));
  return found;
}

function missingOf(part: Missing['part'], { problems: [problem] }: ExpectedError): Missing {
  const { reason, fix }: Problem = problem;
  return { part, reason, fix: fix ?? null };
}

/** Returns what `read` returns. If the file cannot be read, notes it and returns undefined. */
function withoutFailure<T>(
  { missing }: Gathering,
  part: Missing['part'],
  read: () => T,
): T | undefined {
  let result: T | undefined;
  const fault = faultOf(() => {
    result = read();
  });
  if (fault instanceof ExpectedError) missing.push(missingOf(part, fault));
  else if (fault) missing.push({ part, reason: fault.message, fix: 'restore its file' });
  return result;
}

function auditOf({ config, opened, key, asOf, missing }: Gathering) {
  const log = auditLogOf(config);
  if (!log) {
    const isLost = knownHead(opened.mirror.snapshot.meta) || existsSync(config.audit.path);
    const reason = `${config.audit.path}: there is no audit log, or no key that finds people in it`;
    if (isLost) missing.push({ part: 'audit', reason, fix: 'restore both' });
    return undefined;
  }
  try {
    const { seq, hash } = log.head();
    const known = knownHead(opened.mirror.snapshot.meta);
    const verified = verifyLog(log, { known });
    const entries = entriesAbout(log, key, asOf);
    const { signedUpTo, faults } = verified;
    const proof = {
      /** Whether the whole log is as it was written, as `audit verify` finds it. */
      whole: faults.length === 0,
      /** What is wrong with it, in one line; null if nothing is. */
      altered: alteredText(verified) ?? null,
      signedUpTo,
      faults,
    };
    return { log: log.id, upTo: { entry: seq, hash: hash.toString('hex') }, ...proof, entries };
  } finally {
    log.close();
  }
}

function requestsOf({ config, opened, key, asOf }: Gathering) {
  const now = opened.mirror.clock.now();
  const found = requestsAbout(config, { key, now, count: everything });
  return found.filter(({ at }) => isBefore(at, asOf)).map(requestOf);
}

function requestOf({ at, ...rest }: LoggedRequest) {
  return { at: instant(at), ...rest };
}

function isBefore(at: number, asOf: number | null): boolean {
  return asOf === null || at <= asOf;
}

interface Places {
  found: FoundPerson | undefined;
  listed: ListEntries;
  entries: readonly unknown[];
  requests: readonly unknown[];
}

function isKnown({ found, listed, entries, requests }: Places): boolean {
  const { crm, platform, snapshot } = found?.document ?? {};
  const others = listed.filter(({ cause }) => cause !== 'erasure');
  const places = [crm?.records ?? [], platform?.contacts ?? [], others, entries, requests];
  return Boolean(snapshot) || places.some(({ length }) => length > 0);
}

/** Returns the configured channels, and others in which the platform shows the person. */
function channelsOf({ contacts }: Config, found: FoundPerson | undefined): string[] {
  const shown = (found?.document.platform.contacts ?? []).flatMap((one) =>
    Object.keys(one.channels),
  );
  return [...new Set([...(contacts?.channels ?? []).map(({ id }) => id), ...shown])];
}

function maskedValues<T extends object>(value: T, mask: (text: string) => string): T {
  const result = structuredClone(value);
  maskWithin(result, mask);
  return result;
}

function maskWithin(holder: object, mask: (text: string) => string): void {
  for (const [name, value] of Object.entries(holder)) {
    const as: unknown = typeof value === 'string' ? mask(value) : value;
    if (typeof as === 'object' && as !== null) maskWithin(as, mask);
    const shownAs = Array.isArray(holder) ? name : mask(name);
    if (shownAs !== name) Reflect.deleteProperty(holder, name);
    if (as !== value || shownAs !== name) Reflect.set(holder, shownAs, as);
  }
}

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
interface ChannelAnswer {
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

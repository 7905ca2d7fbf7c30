/**
 * Collects everything known of one person, from every place that may know something, and answers
 * for each channel why the person does or does not receive its mail, in one sentence.
 */
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
import { writeFacts, type EntryDocument } from '../audit/entry-document.ts';
import { timeWords } from '../lookup/person-text.ts';

const kind = 'contact';
/** More than a log can hold. */
const everything = 1_000_000_000;

interface Missing {
  part: 'crm' | 'platform' | 'audit' | 'requests' | 'signature';
  reason: string;
  fix: string | null;
}

/** A dossier. */
export type Dossier = Awaited<ReturnType<typeof dossierOf>>;

interface Gathering {
  config: Config;
  opened: Assembled;
  key: Key;
  /** The time after which nothing counts, in milliseconds since the epoch; null for now. */
  asOf: number | null;
  /** Whether to skip reading the platform. */
  offline: boolean;
  /** Collects what could not be read. */
  missing: Missing[];
}

/** Returns the dossier of a person. Addresses of other people are hashes in it. */
export async function dossierOf(
  config: Config,
  { opened, shell }: { opened: Assembled; shell: Pick<Shell, 'stop' | 'abort'> },
  asked: Pick<Gathering, 'key' | 'asOf' | 'offline'>,
) {
  const { key, asOf } = asked;
  const { snapshot, clock, doNotContact } = opened.mirror;
  const missing: Missing[] = [];
  const gathering: Gathering = { ...asked, config, opened, missing };
  const hashOf = namesOf(snapshot, false);
  const names: Names = (record) => (record.key === key ? key : hashOf(record));
  const found = asOf === null ? await presentOf(gathering, shell, names) : undefined;
  const attempt = (part: Missing['part'], read: () => void): void => {
    const fault = faultOf(read);
    if (fault instanceof ExpectedError) missing.push(missingOf(part, fault));
    else if (fault) missing.push({ part, reason: fault.message, fix: 'restore its file' });
  };
  let audit: ReturnType<typeof auditOf>;
  attempt('audit', () => {
    audit = auditOf(gathering);
  });
  let requests: (Omit<LoggedRequest, 'at'> & { at: string })[] = [];
  attempt('requests', () => {
    requests = requestsAbout(config, { key, now: clock.now(), count: everything })
      .filter(({ at }) => asOf === null || at <= asOf)
      .map(({ at, ...rest }) => ({ at: instant(at), ...rest }));
  });
  const { document: present } = found ?? {};
  const who = { key, ids: snapshot.recorded.originsOf(kind, key) };
  const listed = present?.ledger ?? listedIn(doNotContact, who, asOf);
  const entries = audit?.entries ?? [];
  const contacts = present?.platform.contacts ?? [];
  const others = listed.filter(({ cause }) => cause !== 'erasure');
  const places = [present?.crm.records ?? [], contacts, others, entries, requests];
  const known = Boolean(present?.snapshot) || places.some(({ length }) => length > 0);
  // The configured channels, and others in which the platform shows the person.
  const configured = config.contacts?.channels.map(({ id }) => id) ?? [];
  const channels = new Set([
    ...configured,
    ...contacts.flatMap((contact) => Object.keys(contact.channels)),
  ]);
  const at = instantOrNull(asOf);
  const evidence = { channels: known ? [...channels] : [], entries, listed, asOf: at, present };
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
    crm: present?.crm ?? null,
    snapshot: present?.snapshot ?? null,
    platform: found ? { ...found.document.platform, raw: found.details } : null,
    doNotContact: listed,
    decision: present
      ? {
          channels: present.channels,
          sends: present.sends,
          keptBack: present.keptBack,
          awaitingApproval: present.held,
          refused: present.parked,
        }
      : null,
    audit: audit ?? null,
    requests,
    history: present?.history ?? null,
    recorded: found ? documentOf({ config, snapshot, names }, { kind, key }) : null,
  };
  const masked = structuredClone(document);
  maskWithin(masked, (text) => maskedText(text, names));
  return masked;
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

/** Returns the answers: about all mail if the platform shows that there is none, and by channel. */
export function answersOf(evidence: Evidence): ChannelAnswer[] {
  const contact = evidence.present?.platform.contacts.find(({ left }) => left);
  const channels = evidence.channels.map((channel) => answerOf(channel, evidence));
  if (!contact) return channels;
  const status = contact.status ?? 'unsubscribed from all mail';
  const sentence = `all mail: the platform sends this person none: the contact ${contact.id} is ${status}.`;
  const read = { state: 'opt_out', from: 'platform', since: null, entry: null } as const;
  return [{ channel: '*', ...read, sentence }, ...channels];
}

const effective: ReadonlySet<unknown> = new Set(['acked', 'found', 'undone', 'unknown']);

/** The causes that say for certain that the person receives no mail, and how that is known. */
const certain: Readonly<Record<string, string>> = {
  opt_out: 'seen on the platform',
  unsubscribed: 'seen on the platform',
  blocked: 'seen on the platform',
  complaint: 'seen on the platform',
  suppressed: 'seen on the platform',
  operator: 'decided by an operator',
};

function answerOf(channel: string, evidence: Evidence): ChannelAnswer {
  const { entries, asOf } = evidence;
  // The last write that changed the channel, or may have.
  const write = entries.findLast(
    ({ type, part, outcome }) =>
      type === 'write' && (part === channel || part === '') && effective.has(outcome),
  );
  const { state, from } = stateOf(channel, write, evidence);
  // A later write that certainly opted the person in ended what an entry says.
  const isLifted = ({ channel: of, until }: ListEntries[number]): boolean =>
    of !== '*' &&
    write?.after === 'opt_in' &&
    write['outcome'] !== 'unknown' &&
    write.at > (until ?? '');
  const listed = evidence.listed.filter((one) => one.channel === channel || one.channel === '*');
  const standing = listed.filter((one) => !isLifted(one));
  // The list may contradict an opt-in, or a state that the log does not tell.
  const isOpen = state === 'opt_in' || (state === null && from === 'log');
  if (isOpen && standing.length > 0) {
    // For the past the entry decides, if it is certain and not earlier than the last write.
    const deciding = standing.findLast(
      (one) =>
        from === 'log' &&
        one.through === 'address' &&
        certain[one.cause] !== undefined &&
        (!write || write.at <= (one.until ?? '')),
    );
    const head = deciding
      ? `opted out, by ${deciding.until ?? ''} (${certain[deciding.cause] ?? ''} / do-not-contact list)`
      : `not certain: ${headOf(state, from, '', evidence)}, but the do-not-contact list has an entry`;
    const at = deciding && asOf !== null ? [`This is the state at ${asOf}`] : [];
    const facts = [...strangerWords(channel, write, evidence), ...standing.map(listedWords)];
    const sentence = `${channel}: ${[head, ...at, ...facts].join('. ')}.`;
    const decided = { state: deciding ? 'opt_out' : null, from: deciding ? 'list' : from } as const;
    return { channel, ...decided, since: null, entry: null, sentence };
  }
  const cause = write && state !== null && write.after === state ? write : undefined;
  const sentence = [
    headOf(state, from, cause ? ` since ${cause.at}` : '', evidence),
    ...(cause ? causeWords(cause) : strangerWords(channel, write, evidence)),
    ...listed.map(listedWords),
  ].join('. ');
  const since = cause?.at ?? null;
  const entry = cause?.seq ?? null;
  return { channel, state, from, since, entry, sentence: `${channel}: ${sentence}.` };
}

function stateOf(
  channel: string,
  write: EntryDocument | undefined,
  { present }: Evidence,
): { state: string | null; from: 'platform' | 'snapshot' | 'log' } {
  if (!present) return { state: write?.after ?? null, from: 'log' };
  const { platform, snapshot } = present;
  if (!platform.read) {
    const recorded = snapshot ? (snapshot.channels[channel]?.is ?? 'none') : null;
    return { state: recorded, from: 'snapshot' };
  }
  const states = platform.contacts.map(({ channels }) => channels[channel] ?? 'none');
  const state = ['opt_in', 'opt_out'].find((one) => states.some((is) => is === one)) ?? 'none';
  return { state, from: 'platform' };
}

const stateWords: Readonly<Record<string, string>> = {
  opt_in: 'subscribed',
  opt_out: 'opted out',
  none: 'not subscribed',
};

function headOf(
  state: string | null,
  from: ChannelAnswer['from'],
  since: string,
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

const sentences: Readonly<Record<string, string>> = {
  rule: 'The rule was:',
  'CRM said': 'The CRM said',
  'asked by': 'It was asked for by',
  approval: 'Approval:',
  approved: 'It was approved:',
  note: 'Note:',
};

function causeWords(write: EntryDocument): string[] {
  const found =
    write['outcome'] === 'found'
      ? ['It was found done afterwards: nobody can tell whose doing it was']
      : [];
  return [
    `This was done by the write in entry ${write.seq} of the audit log`,
    ...found,
    ...writeFacts(write).flatMap(([name, text]) =>
      sentences[name] ? [`${sentences[name]} ${text}`] : [],
    ),
  ];
}

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

function listedWords({ cause, after, until }: ListEntries[number]): string {
  return `On the do-not-contact list: ${cause}, ${timeWords({ after, until: until ?? '' })}`;
}

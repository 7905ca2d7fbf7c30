/** Collects everything known of one person, from every place that may know something. */
import { existsSync } from 'node:fs';
import { faultOf, knownHead } from '../../store/audit/audit-trail.ts';
import { verifyLog } from '../../store/audit/verify-log.ts';
import type { Config } from '../../config/config.ts';
import { ExpectedError, type Problem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { LoggedRequest } from '../../store/request-log/read-log.ts';
import { alteredText } from '../audit/verification-text.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';
import { examinePerson, type FoundPerson } from '../lookup/examined-person.ts';
import { maskedText } from '../lookup/masked-request.ts';
import { namesOf, type Names } from '../lookup/person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { documentOf } from '../state/record-document.ts';
import { answersOf } from './channel-answers.ts';
import { entriesAbout, listedIn, type ListEntries, requestsAbout } from './person-records.ts';

const kind = 'contact';
/** More than a log can hold. */
const everything = 1_000_000_000;

/** The person of the dossier, and the time up to which it counts. */
export interface DossierRequest {
  key: Key;
  /** The time after which nothing counts, in milliseconds since the epoch; null for now. */
  asOf: number | null;
  /** Whether to skip reading the platform. */
  offline: boolean;
}

/** A part of a dossier that could not be read, or not wholly. */
export interface Missing {
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

/** Reads what the memory has of a person, and finds the people that a search means. */
import { decodeEntry } from '../../store/memory/audit-entry.ts';
import { faultOf, knownHead } from '../../store/memory/audit-trail.ts';
import { verifyLog } from '../../store/memory/verify-log.ts';
import { alteredText } from '../audit/log-verification.ts';
import type { AuditLog } from '../../store/memory/audit-log.ts';
import { ExpectedError } from '../../domain/errors.ts';
import type { Cause, Entry } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import { type Memory, withMemory } from '../../store/memory/memory.ts';
import type { LoggedRequest } from '../../store/memory/requests.ts';
import { boundMemory } from '../../engine/context/do-not-contact-binding.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { documentsOf, type EntryDocument, withSameTimes } from '../audit/entry-document.ts';
import type { Config } from '../../config/config.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { setImmediate } from 'node:timers/promises';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import { email } from '../../platform/request-schemas.ts';
import { keyOfHash, wordOf } from '../lookup/person-names.ts';

/** Entries of the do-not-contact list; '*' stands for every channel. */
export type ListEntries = {
  channel: string;
  cause: Cause;
  through: 'address' | 'id';
  after: string | null;
  until: string;
}[];

/** An open snapshot, the configuration, and the time in milliseconds since the epoch. */
interface OpenMirror {
  config: Config;
  snapshot: Snapshot;
  now: number;
}

/** A part that could not be read, and why. */
export interface Missing {
  part: 'crm' | 'platform' | 'list' | 'audit' | 'requests' | 'signature';
  reason: string;
  fix: string | null;
}

/** What the memory contains. A part that could not be read is empty, and `missing` says why. */
export interface PersonRecords {
  listed: ListEntries;
  /** The audit log, and whether it is as it was written; null if there is none. */
  audit: ReturnType<typeof stateOf> | null;
  entries: EntryDocument[];
  requests: LoggedRequest[];
  missing: Missing[];
}

/**
 * Reads the do-not-contact list, the audit log, and up to `requests` requests of the person, up to
 * `asOf`. `isProven`: the whole audit log is verified. `hasList`: the list is read.
 */
export function recordsOf(
  { config, snapshot, now }: OpenMirror,
  {
    key,
    requests,
    asOf = Number.MAX_SAFE_INTEGER,
    isProven = false,
    hasList = true,
  }: {
    key: Key;
    requests: number;
    asOf?: number | undefined;
    isProven?: boolean;
    hasList?: boolean;
  },
): PersonRecords {
  const found: PersonRecords = { listed: [], audit: null, entries: [], requests: [], missing: [] };
  const { path } = config.memory;
  const note = (part: Missing['part'], fault: Error): void => {
    const [problem] = fault instanceof ExpectedError ? fault.problems : [];
    const { reason = `${path}: ${fault.message}`, fix = problem ? null : 'restore this file' } =
      problem ?? {};
    found.missing.push({ part, reason, fix });
  };
  const reading = (part: Missing['part'], read: () => void): void => {
    const fault = faultOf(read);
    if (fault) note(part, fault);
  };
  const readAll = (memory: Memory): void => {
    const { log } = memory;
    reading('list', () => {
      const who = { key, ids: snapshot.recorded.originsOf('contact', key) };
      if (!hasList) return;
      const about = memory.list().concerning(who);
      found.listed = listEntries(about.filter(({ by }) => by <= asOf));
    });
    reading('audit', () => {
      found.audit = stateOf(log, isProven ? { known: knownHead(snapshot.meta) } : undefined);
      const person = log.people.find(key);
      const rows = (person ? log.about(person.id) : []).filter(
        ({ body }) => decodeEntry(body).at <= asOf,
      );
      found.entries = withSameTimes(rows.map(documentsOf(log)));
    });
    reading('requests', () => {
      const since = now - config.requests.keepMs;
      const asked = { since, run: undefined, route: undefined, failed: undefined, person: key };
      const { newest } = memory.requests.read(asked, requests);
      found.requests = newest.filter(({ at }) => at <= asOf);
    });
  };
  const fault = faultOf(() => withMemory(config.memory, readAll, boundMemory(snapshot.meta)));
  if (fault) for (const part of ['list', 'audit', 'requests'] as const) note(part, fault);
  return found;
}

/** Describes the log, and whether it is as it was written, which is null unless it is verified. */
function stateOf(log: AuditLog, verified: Parameters<typeof verifyLog>[1]) {
  const { seq, hash } = log.head();
  const found = verified && verifyLog(log, verified);
  return {
    log: log.id,
    upTo: { entry: seq, hash: hash.toString('hex') },
    /** Whether the whole log is as it was written, as `audit verify` finds it. */
    whole: found ? found.faults.length === 0 : null,
    /** What is wrong with it, in one line; null if nothing is. */
    altered: (found && alteredText(found)) ?? null,
    signedUpTo: found?.signedUpTo ?? null,
    faults: found?.faults ?? [],
  };
}

/** Returns the entries of the do-not-contact list as a document shows them. */
export function listEntries(entries: readonly Entry[]): ListEntries {
  return entries.map(({ part, cause, through, after, by }) => {
    return { channel: part, cause, through, after: instantOrNull(after), until: instant(by) };
  });
}

/**
 * Returns the people that an address, a CRM id or a hash means: those who are recorded, and those
 * that an address finds on the do-not-contact list or in the audit log. Several people may share a
 * CRM id. A hash is compared with everybody, in slices between which others go first. Throws
 * Invalid for a word that cannot mean anybody.
 */
export async function searchPeople(searched: OpenMirror, who: string): Promise<Key[]> {
  const { snapshot } = searched;
  const word = wordOf(who);
  if (word.startsWith('#')) {
    const erasure = unfinishedIn(snapshot).find(({ hash }) => hash === word);
    const key = erasure?.key ?? (await keyOfHash(word, snapshot, setImmediate));
    return key === undefined ? [] : [key];
  }
  const byId = snapshot.recorded.keysOfOrigin('contact', who.trim());
  if (!email.safeParse(word).success) return [...new Set(byId)];
  const { recorded, recordHistory, problems } = snapshot;
  let isKnown =
    recorded.get('contact', word) !== undefined ||
    recordHistory.changes('contact', word, 1).length > 0 ||
    problems.counted.listOf('contact', word).length > 0;
  if (!isKnown) {
    const { listed, entries, requests } = recordsOf(searched, { key: word, requests: 1 });
    isKnown = listed.length + entries.length + requests.length > 0;
  }
  return [...new Set([...(isKnown ? [word] : []), ...byId])];
}

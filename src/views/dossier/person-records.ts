/**
 * Reads what the files beside the snapshot contain of one person, as far as they can be read, and
 * finds the people that a search means.
 */
import { decodeEntry } from '../../store/audit/audit-entry.ts';
import { faultOf } from '../../store/audit/audit-trail.ts';
import type { AuditLog } from '../../store/audit/audit-log.ts';
import { ExpectedError, type Problem } from '../../domain/errors.ts';
import type { Identity } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { DoNotContactList } from '../../store/do-not-contact/contact-list.ts';
import { readDoNotContactList } from '../../store/do-not-contact/list-file.ts';
import { readKey } from '../../store/do-not-contact/list-key.ts';
import { boundDoNotContactList } from '../../engine/context/do-not-contact-binding.ts';
import { type LoggedRequest, readRequests } from '../../store/request-log/read-log.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { documentsOf, type EntryDocument, withSameTimes } from '../audit/entry-document.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import type { Config } from '../../config/config.ts';
import type { ExplainedPerson } from '../lookup/person-document.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { setImmediate } from 'node:timers/promises';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import { email } from '../../platform/request-schemas.ts';
import { keyOfHash, wordOf } from '../lookup/person-names.ts';

/** Entries of the do-not-contact list. */
export type ListEntries = ExplainedPerson['ledger'];

/** An open snapshot, the configuration, and the time in milliseconds since the epoch. */
interface OpenMirror {
  config: Config;
  snapshot: Snapshot;
  now: number;
}

/** What the files contain. A part that could not be read is empty, and `missing` says why. */
export interface PersonRecords {
  listed: ListEntries;
  /** The entries of the audit log, the oldest first. */
  entries: EntryDocument[];
  /** The newest requests first. */
  requests: LoggedRequest[];
  missing: Omit<Problem, 'code'>[];
}

/** Reads the do-not-contact list, the audit log, and up to `requests` requests of the person. */
export function recordsOf(
  { config, snapshot, now }: OpenMirror,
  { key, requests }: { key: Key; requests: number },
): PersonRecords {
  const found: PersonRecords = { listed: [], entries: [], requests: [], missing: [] };
  const reading = (file: string, read: () => void): void => {
    const fault = faultOf(read);
    if (!fault) return;
    found.missing.push(
      fault instanceof ExpectedError
        ? fault.problems[0]
        : { reason: `${file}: ${fault.message}`, fix: 'restore this file' },
    );
  };
  reading(config.ledger.path, () => {
    const list = readDoNotContactList(config.ledger, boundDoNotContactList(snapshot.meta));
    try {
      found.listed = listedIn(list, { key, ids: snapshot.recorded.originsOf('contact', key) });
    } finally {
      list.close();
    }
  });
  reading(config.audit.path, () => {
    const log = auditLogOf(config);
    try {
      found.entries = log ? entriesAbout(log, key) : [];
    } finally {
      log?.close();
    }
  });
  reading(config.requests.path, () => {
    found.requests = requestsAbout(config, { key, now, count: requests });
  });
  return found;
}

/** Returns the entries of the list about a person that were made by `asOf`; null is now. */
export function listedIn(
  list: DoNotContactList,
  who: Identity,
  asOf: number | null = null,
): ListEntries {
  return list
    .concerning(who)
    .filter(({ by }) => asOf === null || by <= asOf)
    .map(({ part, cause, through, after, by }) => {
      return { channel: part, cause, through, after: instantOrNull(after), until: instant(by) };
    });
}

/** Returns the entries of the log about a person that were made by `asOf`, oldest first. */
export function entriesAbout(log: AuditLog, key: Key, asOf: number | null = null): EntryDocument[] {
  const person = log.people.find(key);
  const rows = person ? log.about(person) : [];
  const until = rows.filter(({ body }) => asOf === null || decodeEntry(body).at <= asOf);
  return withSameTimes(until.map(documentsOf(log)));
}

/** Returns up to `count` requests about a person that are still kept, the newest first. */
export function requestsAbout(
  { requests, ledger }: Config,
  { key, now, count }: { key: Key; now: number; count: number },
): LoggedRequest[] {
  const since = now - requests.keepMs;
  const asked = { since, run: undefined, route: undefined, failed: undefined, person: key };
  const place = { path: requests.path, key: readKey(ledger.keyFile) };
  return readRequests(place, asked, count)?.newest ?? [];
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

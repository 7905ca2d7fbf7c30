/** Finds the people that a search means, by the snapshot and the files beside it. */
import { setImmediate } from 'node:timers/promises';
import type { Key } from '../../domain/record.ts';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import { email } from '../../platform/request-schemas.ts';
import { keyOfHash, wordOf } from '../lookup/person-names.ts';
import { recordsOf } from './person-records.ts';

/** An open snapshot, and the configuration. */
type Searched = Parameters<typeof recordsOf>[0];

/**
 * Returns the people that an address, a CRM id or a hash means: those who are recorded, and those
 * that an address finds on the do-not-contact list or in the audit log. Several people may share a
 * CRM id. A hash is compared with everybody, in slices between which others go first. Throws
 * Invalid for a word that cannot mean anybody.
 */
export async function searchPeople(searched: Searched, who: string): Promise<Key[]> {
  const { snapshot } = searched;
  const word = wordOf(who);
  if (word.startsWith('#')) {
    const erasure = unfinishedIn(snapshot).find(({ hash }) => hash === word);
    const key = erasure?.key ?? (await keyOfHash(word, snapshot, setImmediate));
    return key === undefined ? [] : [key];
  }
  const byId = snapshot.recorded.keysOfOrigin('contact', who.trim());
  const isKnown = email.safeParse(word).success && isAnywhere(searched, word);
  return [...new Set([...(isKnown ? [word] : []), ...byId])];
}

function isAnywhere(searched: Searched, key: Key): boolean {
  const { recorded, recordHistory, problems } = searched.snapshot;
  if (recorded.get('contact', key) ?? recordHistory.changes('contact', key, 1)[0]) return true;
  if (problems.counted.list('contact', key).length > 0) return true;
  const { listed, entries, requests } = recordsOf(searched, { key, requests: 1 });
  return listed.length + entries.length + requests.length > 0;
}

/**
 * Limits a run to a few people, to begin with. Only these people are created, opted in or adopted.
 * Opt-outs of everybody still apply. Nobody is concluded absent, and nobody is deleted.
 */
import { hash } from 'node:crypto';
import type { Problem } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { withCommas } from '../../domain/values/counted.ts';

/** The people that a file lists: an address or a CRM id on each line. */
export interface OnlyPeople {
  file: string;
  entries: readonly { line: number; word: string }[];
}

export interface PeopleSelection {
  /** Chooses the people, once a reading of the whole source is staged. */
  choose(kind: RecordTypeName): void;
  /** Returns whether the run may create, opt in or adopt the person. */
  has(key: Key): boolean;
  /** Returns what to say about the limit, given the number of people in the CRM. */
  say(all: number): Problem[];
  /** Stores the choice, so that runs about single people keep to it. Needs a transaction. */
  store(): void;
}

/** Returns the selection of a run, or undefined if it may change everybody. */
export function selectionOf(
  { snapshot, name, sample }: { snapshot: Snapshot; name: string; sample?: number | undefined },
  only: OnlyPeople | undefined,
): PeopleSelection | undefined {
  if (only) return listedPeople(snapshot, only);
  return sample === undefined ? undefined : sampledPeople(snapshot, { name, size: sample });
}

function limitNote(chosen: number, all: number, by: string): Problem {
  const reason =
    `Only ${withCommas(chosen)} of ${withCommas(all)} people (${by}): the others are opted out ` +
    'where the CRM says so, and nothing else; nobody counts as missing, and nobody is deleted';
  return { code: 'note', reason };
}

function listedPeople({ staging }: Snapshot, { file, entries }: OnlyPeople): PeopleSelection {
  const keys = new Set(entries.map(({ word }) => contactKey(word)));
  /** The words that are no address of the CRM. */
  const ids = new Set<string>();
  const chosen = new Set<Key>();
  const unknown: number[] = [];
  return {
    choose(kind) {
      chosen.clear();
      unknown.length = 0;
      ids.clear();
      for (const { line, word } of entries) {
        const isThere = (key: Key) => staging.desired(kind, key).length > 0;
        const isAddress = isThere(contactKey(word));
        if (!isAddress) ids.add(word);
        // An id may look like the address of somebody else.
        const found = isAddress ? [contactKey(word)] : staging.keysOf(kind, [word]).filter(isThere);
        for (const key of found) chosen.add(key);
        if (found.length === 0) unknown.push(line);
      }
    },
    has: (key) => keys.has(key) || staging.idsOf('contact', key).some((id) => ids.has(id)),
    say(all) {
      const limit = limitNote(chosen.size, all, `--people ${file}`);
      if (unknown.length === 0) return [limit];
      const lines = unknown.slice(0, mostNamed).join(', ');
      const more = unknown.length > mostNamed ? ` and ${unknown.length - mostNamed} more` : '';
      const reason = `${file}: nobody in the CRM has the address or id of line ${lines}${more}`;
      return [limit, { code: 'note', reason, fix: 'correct these lines' }];
    },
    store: () => undefined,
  };
}

const mostNamed = 20;
const sample = storedFact<{ size: number; through: string }>('sample', 'the sample of people');

/** Selects the smallest hashes of the mirror's name and a key: the same people in every run. */
function sampledPeople(
  { staging, ranges, meta }: Snapshot,
  { name, size }: { name: string; size: number },
): PeopleSelection {
  const hashOf = (key: Key): string => hash('sha256', `${name} ${key}`, 'hex').slice(0, 32);
  const before = sample.read(meta);
  // A person with a hash up to this one is chosen. Without it, nobody is.
  let through = before?.size === size ? before.through : '';
  let chosen = 0;
  return {
    choose(kind) {
      let smallest: string[] = [];
      for (const range of ranges.ofKeys(kind)) {
        smallest.push(...staging.wantedKeys(range).map(hashOf));
        smallest = smallest.toSorted().slice(0, size);
      }
      through = smallest.at(-1) ?? '';
      chosen = smallest.length;
    },
    has: (key) => hashOf(key) <= through,
    say: (all) => [limitNote(chosen, all, `contacts.sample: ${size}`)],
    store: () => sample.write(meta, { size, through }),
  };
}

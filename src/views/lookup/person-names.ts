/**
 * Names records for people, with the address only if that is wanted, also in logged requests, and
 * finds the record that a word on the command line means: an address, a hash, or a template's key.
 */
import type { Snapshot } from '../../store/snapshot.ts';
import { shortHash, shortHasher } from '../../engine/context/person-identity.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import type { LoggedRequest } from '../../store/memory/requests.ts';

export interface RecordName {
  kind: RecordTypeName;
  key: Key;
}

export type Names = (record: RecordName) => string;

/**
 * Returns a function that names records. Without `addresses`, a person is named by a short keyed
 * hash (#4f1c…). It is the same in every run of a mirror, because its key is stored in the
 * snapshot. A plan made before the first run uses different names.
 */
export function namesOf(snapshot: Snapshot, addresses: boolean): Names {
  return ({ kind, key }) => {
    if (addresses || kind !== 'contact' || !key.includes('@')) return key;
    return shortHash(snapshot.meta, key);
  };
}

/**
 * Normalizes the word. A hash may lack its #, which begins a comment in most shells. Throws Invalid
 * for a word that cannot name anything.
 */
export function wordOf(who: string): string {
  const word = who.trim();
  if (/^[0-9a-f]{12}$/.test(word)) return `#${word}`;
  if (word === '' || (word.startsWith('#') && !/^#[0-9a-f]{12}$/.test(word))) {
    throw new Invalid(`"${word}" names nobody`, {
      fix: 'give an address, a hash as runs and status show it (#9cc428f416d4), or the key of a template',
    });
  }
  return word.includes('@') ? contactKey(word) : word;
}

/** Returns a predicate that tests whether a word from `wordOf` means a record, by key or hash. */
export function namedBy(word: string, snapshot: Snapshot): (record: RecordName) => boolean {
  const hashOf = shortHasher(snapshot.meta);
  return ({ kind, key }) =>
    key === word ||
    (word.startsWith('#') && kind === 'contact' && key.includes('@') && hashOf(key) === word);
}

const keysAtOnce = 1_000;

/**
 * Returns the person of the snapshot that a hash names, or undefined. It compares all keys, so a
 * server passes a `pause` that lets others go first.
 */
export async function keyOfHash(
  word: string,
  snapshot: Snapshot,
  pause = async (): Promise<void> => undefined,
): Promise<Key | undefined> {
  const isMeant = namedBy(word, snapshot);
  let compared = 0;
  for (const key of snapshot.recordHistory.keys('contact')) {
    // A problem of an erased person has the hash itself as its key, which is not a real key.
    if (!key.startsWith('#') && isMeant({ kind: 'contact', key })) return key;
    compared += 1;
    if (compared % keysAtOnce === 0) await pause();
  }
  return undefined;
}

/**
 * Returns the key of the person that a word means. A hash is looked up in the snapshot, then in the
 * CRM, which is read for this purpose; so is the id of a CRM record. Throws Invalid if no person
 * has it, and passes on the errors of that read.
 */
export async function keyOf(who: string, mirror: Mirror, signal: AbortSignal): Promise<Key> {
  const word = wordOf(who);
  const { contacts } = mirror;
  if (!contacts) {
    throw new Invalid(`${mirror.name} has no contacts`, { fix: 'name a mirror that has, with -c' });
  }
  if (word.includes('@')) return word;
  const isMeant = namedBy(word, mirror.snapshot);
  const erasure = unfinishedIn(mirror.snapshot).find(({ hash }) => hash === word);
  if (erasure?.key !== undefined) return erasure.key;
  const known = word.startsWith('#') ? await keyOfHash(word, mirror.snapshot) : undefined;
  if (known !== undefined) return known;
  const id = who.trim();
  for await (const records of contacts.source.read({ fields: contacts.fields, signal })) {
    for (const record of records) {
      if ('broken' in record) continue;
      const row = contacts.desire(record.value, record.where);
      const { key, invalid } = row;
      if (key !== undefined && (row.id === id || isMeant({ kind: 'contact', key }))) return key;
      if (key === undefined && row.id === id && invalid) {
        const what = `the CRM record with this id (${row.place}) has no usable address`;
        throw new Invalid(`${what}: ${invalid.reason}`, { fix: invalid.fix });
      }
    }
  }
  if (erasure) {
    throw new Invalid(
      `${word} was forgotten, but for the snapshot's file, which is not written anew yet; nobody ` +
        'knows the address any more',
      { fix: 'give it to `forget` once more' },
    );
  }
  throw new Invalid(`"${id}" names nobody in the snapshot or the CRM`, {
    fix: `${word.startsWith('#') ? 'hashes hold from the first run on: ' : ''}give the address, or the id of a record in the CRM`,
  });
}

const anyAddress = /[^\s@‹›"'<>(){}[\],\\]{1,64}@[^\s@‹›"'<>(){}[\],\\]{1,255}/gu;

/** Returns the text with every address replaced by the name that `names` gives the person. */
export function maskedText(text: string, names: Names): string {
  return text.replace(anyAddress, (found) => {
    const address = found.replace(/[.,;:!?…]+$/, '');
    const key = contactKey(address);
    const name = names({ kind: 'contact', key });
    return name === key ? found : name + found.slice(address.length);
  });
}

/** Returns the request with every address replaced by the name that `names` gives the person. */
export function masked(one: LoggedRequest, names: Names): LoggedRequest {
  const name = (address: string): string => names({ kind: 'contact', key: contactKey(address) });
  const { person, path } = one;
  const mask = (text: string): string => {
    const known = person === null || person === '' ? text : text.replaceAll(person, name(person));
    return maskedText(known, names);
  };
  const [place = '', query] = path.split('?');
  const fields = [...new URLSearchParams(query)].map(([field, of]) => `${field}=${mask(of)}`);
  return {
    ...one,
    path: query === undefined ? path : `${place}?${fields.join('&')}`,
    person: person && name(person),
    request: one.request && mask(one.request),
    answer: one.answer && mask(one.answer),
    failure: one.failure && mask(one.failure),
  };
}

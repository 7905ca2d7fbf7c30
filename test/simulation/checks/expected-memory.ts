/**
 * What crm-mirror has to remember by its own rules (docs/consent.md): what a whole and undisturbed
 * run was shown of people the CRM names, and under which addresses it met them.
 */
import { keyOf } from '../../support/engine/sample-people.ts';
import { channels } from '../../support/engine/engine-stage.ts';
import { addressesOf, forbids, isLiving, keyIn, textOf, type Reading } from '../world/crm.ts';
import type { Traces } from '../world/snapshot-files.ts';
import type { ReadBack } from './checker-state.ts';
import { fallbackOf, type Story } from '../story/story.ts';
import {
  pastOf,
  reachedAt,
  type Letter,
  type Person,
  type State,
  type Witness,
} from '../world/platform-history.ts';

/** What is remembered of one address: by the snapshot, and of who left by the ledger too. */
export interface Memory {
  /** Ours, as the snapshot knows. */
  owned: boolean;
  /** Contacts that showed it while the CRM named somebody there by it: adopted by that. */
  ids: Set<string>;
  /** Was ours and wanted, and a whole listing lacked the contact. */
  vanished: boolean;
  /** The person unsubscribed from all mail. */
  all: boolean;
  /** The same, and not merely by a bounce, which is the address's own. */
  away: boolean;
  /** Channels the person left, or was removed from. */
  outs: Set<string>;
  /** Channels the person was in, as the snapshot knows. */
  ins: Set<string>;
}

/** What stands against somebody under another address. */
export interface Former extends Pick<Memory, 'away' | 'outs'> {
  key: string;
  /** The snapshot attributes it to the person; otherwise only the do-not-contact list does. */
  isMet: boolean;
}

export interface Memories {
  /** Undefined: the address was never ours. */
  of(key: string): Memory | undefined;
  /** Something happened on the platform: who came back may have been seen by any run since. */
  notice(): void;
  /** Tells whether the person or a colleague opted out here, as far as the answers show. */
  isTheirs(person: Person, channel: string, state?: State): boolean;
  /** Tells whether a whole run saw the subscription, now or before, or we made it. */
  wasSeenIn(state: State | undefined): boolean;
  /** Our opt-out got no answer: until it is read back, the person's own counts as ours. */
  unheard(lost: Omit<Lost, 'until'>): void;
  /** Other addresses under which ours has met the CRM records of this one. */
  former(key: string, reading: Reading): Former[];
  /** Every address that the CRM ever gave this id. */
  everOf(id: string): ReadonlySet<string>;
  /** The ids under which the snapshot knows this address. */
  idsOf(key: string): string[];
  /** Every id to which the CRM ever gave it. */
  everIdsOf(key: string): string[];
  /** Of those, the ids of which no whole run tells whether they were recorded with it. */
  unmetIdsOf(key: string): string[];
  /** The snapshot has nothing of this address any more; what the ledger had of it stands. */
  forget(key: string): void;
  /** Nothing that happened before stands against this address any more, nor against its ids. */
  allow(key: string, ids: ReadonlySet<string>): void;
  /** Every address of every id that ever had this one: the ledger asks by them. */
  kinOf(key: string): string[];
  /** The CRM was read, and the templates. */
  read(reading: Reading, templates: Reading): void;
  /** A process has ended, and the outcome of these changes is open then. */
  left(at: number, files: Pick<Traces, 'isLetterOpen' | 'open'>): void;
  /** Whether the making of it was heard of: a process that is killed may have heard nothing. */
  heardOf(letter: Pick<Letter, 'made' | 'gone'>): boolean;
  /** Whether a reading of the templates lacked this name once. */
  missed(name: string): boolean;
  /** A full run has ended as it should. */
  conclude(reading: Reading, run: Concluded): void;
  /** The snapshot is gone, and with it all that was known but to the ledger. */
  lose(at: number, by: 'loss' | 'restore'): void;
  /** When it was last lost for good, by the clock that never jumps. */
  lostAt(): number;
  /** What happened before on the platform was there when everything was adopted anew. */
  adoptedAt(): number;
  /** What was acknowledged to a process that lived to write it down: address, channel, how. */
  answered(enrolments: readonly string[]): void;
  /** We changed this subscription. */
  changed(key: string, channel: string): void;
  /** A creation by email was acknowledged; who came since then passes for its work. */
  created(email: string | undefined, since: number): void;
  /** Whether we made it, or could not know that we did not. */
  isOfOurs(person: Pick<Person, 'id' | 'made'>): boolean;
  /** We deleted the contact, or tried to; what happened before `since` was known then. */
  deleting(person: Person, outcome: { since: number; done: boolean }): void;
}

interface Concluded {
  startedAt: number;
  endedAt: number;
  /** Nothing observed is recorded of a person with an erasure. */
  isErased(key: string): boolean;
}

/** What the ledger had of an address when the snapshot was lost, by the CRM's id. */
interface Kept extends Pick<Former, 'key' | 'away' | 'outs'> {
  id: string;
}

/** What left and was not heard of; it left in a run that had read the contact since `since`. */
interface Lost {
  id: string;
  key: string;
  channel: string;
  since: number;
  until: number;
}

/** Who came to the platform so shortly before our creation passes for its work. */
const momentMs = 60_000;

/** `readBacks`: how each contact was first read. */
export function createMemories(
  witness: Witness,
  story: Pick<Story, 'quirks'>,
  readBacks: ReadonlyMap<string, ReadBack>,
): Memories {
  const fallback = fallbackOf(story);
  const isBare = story.quirks.includes('enrol-raw');
  const memories = new Map<string, Memory>();
  let kept: Kept[] = [];
  /** Ids by which nothing that the ledger had before stands any more. */
  const freed = new Set<string>();
  const met = new Map<string, Set<string>>();
  const ever = new Map<string, Set<string>>();
  const named = new Set<string>();
  const missed = new Set<string>();
  /** Whole runs that have ended as they should. */
  const looks: { startedAt: number; endedAt: number }[] = [];
  /** Contacts that came while we were about to make them, and when our request reached them. */
  const passing = new Map<string, number>();
  let lost: Lost[] = [];
  const ends: { at: number; isOpen: boolean }[] = [];
  let lostAt = Number.NEGATIVE_INFINITY;
  let goneAt = Number.NEGATIVE_INFINITY;
  let adoptedAt = Number.NEGATIVE_INFINITY;

  function of(key: string): Memory | undefined {
    const memory = memories.get(key);
    if (memory) forgive(memory, witness.present(key), fallback);
    return memory;
  }

  function own(key: string): Memory {
    const memory = of(key) ?? {
      owned: true,
      ids: new Set(),
      vanished: false,
      all: false,
      away: false,
      outs: new Set(),
      ins: new Set(),
    };
    memories.set(key, memory);
    memory.owned = true;
    return memory;
  }

  /** Tells whether the opt-out is ours, as far as the run that read it back can tell. */
  function isAsOurs({ id }: Person, channel: string, { is, by, at }: State): boolean {
    // A backup may know what we did before it.
    const isKnown = at > lostAt || (by === 'us' && goneAt < lostAt);
    if (is !== 'opt_out' || !isKnown) return false;
    const isMeant = (one: Lost): boolean => one.id === id && one.channel === channel;
    return by === 'us' || lost.some((one) => isMeant(one) && one.since <= at && at <= one.until);
  }

  /**
   * Tells whether another program's opt-out looks like a default: it came before the reading that
   * belongs to our creation was answered, or a moment before a creation whose answer shows it.
   */
  function isAtBirth({ id, made }: Person, { at, before }: State): boolean {
    if (before) return false;
    const back = readBacks.get(id);
    if (isBare) return made.by === 'us' && back?.isAnswered === true && at <= back.at;
    const ourAt = passing.get(id) ?? Number.NEGATIVE_INFINITY;
    return made.by === 'others' && at <= ourAt && ourAt - made.at <= momentMs;
  }

  /** Tells whether a whole run saw the subscription before the `next` state, or we made it. */
  function isSeenIn({ is, by, at }: State, next: State | undefined): boolean {
    const until = next?.at ?? Number.POSITIVE_INFINITY;
    const isSeen = looks.some((look) => at < look.startedAt && look.endedAt < until);
    return is === 'opt_in' && (isSeen || by === 'us');
  }

  /** A person who joined and left again unseen is out by us, or by our creation. */
  function isTheirs(person: Person, channel: string, state = person.channels.get(channel)) {
    if (state?.is !== 'opt_out' || state.by === 'us') return false;
    for (const [index, then] of pastOf(state).entries()) {
      if (isAsOurs(person, channel, then)) return false;
      if (isSeenIn(then, pastOf(state)[index - 1])) return true;
    }
    // No run ever saw the contact in another state than after our creation.
    const { made, former } = person;
    if (isAtBirth(person, state)) return false;
    const isDefault = fallback === 'opt_out' && made.by === 'us' && made.at > lostAt && !former;
    return !isDefault;
  }

  function learn(key: string, people: readonly Person[]): void {
    const memory = own(key);
    memory.all = people.some(({ left }) => left);
    memory.away = people.some(({ away }) => away);
    for (const channel of channels) {
      const shown = people.map((person) => person.channels.get(channel)?.is);
      if (people.some((person) => isTheirs(person, channel))) {
        memory.outs.add(channel);
        memory.ins.delete(channel);
      } else if (shown.every((is) => is === 'opt_in')) {
        memory.ins.add(channel);
        memory.outs.delete(channel);
      } else if (shown.includes('opt_out')) memory.ins.delete(channel);
    }
  }

  function standing(key: string): Pick<Former, 'away' | 'outs'> {
    const { away, outs } = of(key) ?? { away: false, outs: new Set<string>() };
    return { away, outs: new Set(outs) };
  }

  /** Only what was there then, and has not ended since. */
  function stillKept({ key, away, outs }: Kept): Former {
    const now = standing(key);
    return {
      key,
      away: away && now.away,
      outs: new Set([...outs].filter((part) => now.outs.has(part))),
      isMet: false,
    };
  }

  function everIdsOf(key: string): string[] {
    return [...ever].flatMap(([id, keys]) => (keys.has(key) ? [id] : []));
  }

  return {
    of,
    isTheirs,
    wasSeenIn: (state) => pastOf(state).some((then, at, past) => isSeenIn(then, past[at - 1])),
    notice() {
      for (const key of memories.keys()) of(key);
    },
    former(key, reading) {
      const records = reading.records.filter((record) => keyIn(record) === key);
      const ids = records.map(({ id }) => String(id));
      // After our own delete nothing is known of whoever comes to that address.
      const isMet = (one: string): boolean => of(one)?.owned === true;
      // Only the list knows the others, and no longer by an id that was allowed.
      const keys = ids.flatMap((id) =>
        [...(met.get(id) ?? [])].filter((one) => isMet(one) || !freed.has(id)),
      );
      const known = keys.map((one) => ({ ...standing(one), key: one, isMet: isMet(one) }));
      const lost = kept.filter(({ id }) => ids.includes(id) && !freed.has(id)).map(stillKept);
      return [...known, ...lost].filter((one) => one.key !== key);
    },
    everOf: (id) => ever.get(id) ?? new Set(),
    idsOf: (key) =>
      of(key)?.owned ? [...met].flatMap(([id, keys]) => (keys.has(key) ? [id] : [])) : [],
    everIdsOf,
    unmetIdsOf: (key) => everIdsOf(key).filter((id) => met.get(id)?.has(key) !== true),
    forget(key) {
      for (const [id, keys] of met) if (keys.delete(key)) kept.push({ ...standing(key), id, key });
      const memory = memories.get(key);
      if (memory) disown(memory);
    },
    allow(key, ids) {
      memories.delete(key);
      for (const id of ids) freed.add(id);
      kept = kept.filter((one) => one.key !== key);
      for (const keys of met.values()) keys.delete(key);
    },
    kinOf: (key) => [...ever.values()].filter((keys) => keys.has(key)).flatMap((keys) => [...keys]),
    read({ records }, templates) {
      for (const record of records) noteAddress(ever, record);
      const names = templates.records.map((record) => textOf(record, 'name'));
      for (const name of named) if (!names.includes(name)) missed.add(name);
      for (const name of names) named.add(name);
    },
    unheard: (one) => void lost.push({ ...one, until: Number.POSITIVE_INFINITY }),
    left(at, { isLetterOpen, open }) {
      ends.push({ at, isOpen: isLetterOpen });
      // What a later run reads back counts as the person's own.
      const isOpen = ({ key, channel }: Lost): boolean =>
        open.some((one) => one.op === 'opt_out' && one.key === key && one.part === channel);
      lost = lost
        .filter((one) => one.until <= at || !isOpen(one))
        .map((one) => ({ ...one, until: Math.min(one.until, at) }));
    },
    heardOf({ made, gone }) {
      const [first, ...later] = ends.filter(({ at }) => at >= made.at);
      return !first?.isOpen || later.some(({ at, isOpen }) => !isOpen && (!gone || at < gone.at));
    },
    missed: (name) => missed.has(name),
    conclude(reading, { startedAt, endedAt, isErased }) {
      looks.push({ startedAt, endedAt });
      if (lostAt > adoptedAt) adoptedAt = endedAt;
      const known = [...addressesOf(reading)].filter((key) => !isErased(key));
      const wanted = known.filter((key) => isNamed(reading, key));
      const owned = [...memories.keys()].filter((key) => of(key)?.owned && !isErased(key));
      for (const key of new Set([...owned, ...wanted])) {
        const people = witness.present(key).filter((person) => isSettled(person, startedAt));
        if (people.length > 0) learn(key, people);
        if (isLiving(reading, key)) for (const { id } of people) own(key).ids.add(id);
      }
      for (const key of wanted.filter((one) => owned.includes(one))) {
        const all = witness.people().filter((person) => person.key === key);
        const isGone = all.every(({ gone }) => gone && gone.at < startedAt);
        // Who was only ever flagged as deleted is not ours while the opt-out is held.
        const wasOurs = isLiving(reading, key) || own(key).ids.size > 0;
        if (isGone && all.length > 0 && wasOurs) own(key).vanished = true;
      }
      for (const record of reading.records) {
        const key = keyIn(record) ?? '';
        if (of(key)?.owned && known.includes(key)) noteAddress(met, record);
      }
    },
    lose(at, by) {
      for (const [id, keys] of met) {
        for (const key of keys) kept.push({ ...standing(key), id, key });
      }
      met.clear();
      for (const memory of memories.values()) disown(memory);
      for (const name of named) missed.add(name);
      lostAt = at;
      if (by === 'loss') goneAt = at;
    },
    lostAt: () => goneAt,
    adoptedAt: () => (lostAt > adoptedAt ? Number.POSITIVE_INFINITY : adoptedAt),
    changed: (key, channel) => void memories.get(key)?.ins.delete(channel),
    created(email, since) {
      if (email === undefined) return;
      const came = witness.present(keyOf(email)).filter(({ made }) => made.at >= since);
      for (const one of came) if (!passing.has(one.id)) passing.set(one.id, reachedAt(one));
    },
    isOfOurs: ({ id, made }) => made.by === 'us' || passing.has(id),
    deleting(person, { since, done }) {
      const { key, left, away, channels: states } = person;
      const memory = own(key);
      if (left && left.at < since) memory.all = true;
      if (away && away.at < since) memory.away = true;
      for (const [channel, state] of states) {
        if (isTheirs(person, channel) && state.at < since) memory.outs.add(channel);
      }
      if (!done) return;
      memory.owned = false;
      memory.vanished = false;
      memory.ins.clear();
    },
    answered(enrolments) {
      for (const enrolment of enrolments) {
        const [key = '', channel = '', is] = enrolment.split(' ');
        const memory = own(key);
        // What was opted out first, and then deleted, is ours no more.
        if (witness.wasDeletedByUs(key)) memory.owned = false;
        if (is === 'opt_in') {
          memory.ins.add(channel);
          memory.outs.delete(channel);
        } else {
          memory.ins.delete(channel);
          // By id it was done to the former address of the contact, too.
          for (const { former } of witness.present(key))
            memories.get(former?.key ?? '')?.ins.delete(channel);
        }
      }
    },
  };
}

function disown(memory: Memory): void {
  memory.owned = false;
  memory.ids.clear();
  memory.ins.clear();
}

function forgive(memory: Memory, people: readonly Person[], fallback?: string): void {
  if (people.length > 0) memory.vanished = false;
  if (people.some(({ left }) => !left)) {
    memory.all = false;
    memory.away = false;
  }
  for (const channel of channels) {
    const shown = people.map((person) => person.channels.get(channel)?.is ?? fallback);
    if (shown.includes('opt_in')) memory.outs.delete(channel);
  }
}

/** A person the CRM only names as deleted is not one of ours. */
function isNamed(reading: Reading, key: string): boolean {
  const records = reading.records.filter((record) => keyIn(record) === key);
  return records.some(
    (record) =>
      record['deleted'] !== 'true' || channels.some((channel) => forbids(record, channel)),
  );
}

/** There since before the run, and not changed while it went on. */
function isSettled({ made, left, away, channels: all }: Person, startedAt: number): boolean {
  const times = [made, left, away, ...all.values()].flatMap((since) => since?.at ?? []);
  return times.every((at) => at < startedAt);
}

function noteAddress(addresses: Map<string, Set<string>>, record: Record<string, unknown>): void {
  const id = String(record['id']);
  const keys = addresses.get(id) ?? new Set();
  addresses.set(id, keys.add(keyOf(String(record['email']))));
}

/**
 * What crm-mirror has to remember by its own rules (README, consent): what a whole and undisturbed
 * run was shown of people the CRM names, and under which addresses it met them.
 */
import { channels } from '../sync/mirror.ts';
import { addressesOf, forbids, keyIn, textOf, type Reading } from './crm.ts';
import { keyOf, type Person, type Witness } from './witness.ts';

/** What is remembered of one address. */
export interface Memory {
  /** She left all mail. */
  all: boolean;
  /** Channels she left, or was taken out of. */
  outs: Set<string>;
  /** Channels she was in. */
  ins: Set<string>;
}

export interface Memories {
  /** Undefined: the address is not ours. */
  of(key: string): Memory | undefined;
  /** Something happened on the platform: who came back may have been seen by any run since. */
  notice(): void;
  /** Other addresses under which ours has met the CRM records of this one. */
  former(key: string, reading: Reading): string[];
  /** Every address that the CRM ever gave this id. */
  everOf(id: string): ReadonlySet<string>;
  /** The CRM was read, and the templates. */
  read(reading: Reading, templates: Reading): void;
  /** Whether a reading of the templates lacked this name once. */
  missed(name: string): boolean;
  /** A full run has ended as it should. */
  conclude(reading: Reading, run: { startedAt: number; endedAt: number }): void;
  /** The snapshot is gone, and with it all that was known. */
  lose(at: number): void;
  /** When that was last, by the clock that never jumps. */
  lostAt(): number;
  /** What happened before on the platform was there when everything was adopted anew. */
  adoptedAt(): number;
  /** What was acknowledged to a process that lived to write it down: address, channel, how. */
  answered(enrolments: readonly string[]): void;
  /** We changed this subscription. */
  changed(key: string, channel: string): void;
}

/** `fallback`: what the platform shows of a channel where somebody has no subscription. */
export function createMemories(witness: Witness, fallback?: string): Memories {
  const owned = new Map<string, Memory>();
  const met = new Map<string, Set<string>>();
  const ever = new Map<string, Set<string>>();
  const named = new Set<string>();
  const missed = new Set<string>();
  let lostAt = Number.NEGATIVE_INFINITY;
  let adoptedAt = Number.NEGATIVE_INFINITY;

  function own(key: string): Memory {
    const memory = owned.get(key) ?? { all: false, outs: new Set(), ins: new Set() };
    owned.set(key, memory);
    return memory;
  }

  function learn(key: string, people: readonly Person[]): void {
    const memory = own(key);
    memory.all = people.some(({ left }) => left);
    for (const channel of channels) {
      const states = people.map((person) => person.channels.get(channel));
      if (states.some((state) => state?.is === 'opt_out' && state.by === 'others')) {
        memory.outs.add(channel);
        memory.ins.delete(channel);
      } else if (states.every((state) => state?.is === 'opt_in')) {
        memory.ins.add(channel);
        memory.outs.delete(channel);
      }
    }
  }

  return {
    of(key) {
      const memory = owned.get(key);
      if (memory) forgive(memory, witness.present(key), fallback);
      return memory;
    },
    notice() {
      for (const key of owned.keys()) this.of(key);
    },
    former(key, reading) {
      const records = reading.records.filter((record) => keyIn(record) === key);
      const keys = records.flatMap(({ id }) => [...(met.get(String(id)) ?? [])]);
      return keys.filter((one) => one !== key);
    },
    everOf: (id) => ever.get(id) ?? new Set(),
    read({ records }, templates) {
      for (const record of records) noteAddress(ever, record);
      const names = templates.records.map((record) => textOf(record, 'name'));
      for (const name of named) if (!names.includes(name)) missed.add(name);
      for (const name of names) named.add(name);
    },
    missed: (name) => missed.has(name),
    conclude(reading, { startedAt, endedAt }) {
      if (lostAt > adoptedAt) adoptedAt = endedAt;
      const wanted = [...addressesOf(reading)].filter((key) => isNamed(reading, key));
      for (const key of new Set([...owned.keys(), ...wanted])) {
        const people = witness.present(key).filter((person) => isSettled(person, startedAt));
        if (people.length > 0) learn(key, people);
      }
      for (const record of reading.records) {
        if (owned.has(keyIn(record) ?? '')) noteAddress(met, record);
      }
    },
    lose(at) {
      owned.clear();
      met.clear();
      for (const name of named) missed.add(name);
      lostAt = at;
    },
    lostAt: () => lostAt,
    adoptedAt: () => (lostAt > adoptedAt ? Number.POSITIVE_INFINITY : adoptedAt),
    changed: (key, channel) => void owned.get(key)?.ins.delete(channel),
    answered(enrolments) {
      for (const enrolment of enrolments) {
        const [key = '', channel = '', is] = enrolment.split(' ');
        const memory = own(key);
        if (is === 'opt_in') {
          memory.ins.add(channel);
          memory.outs.delete(channel);
        } else memory.ins.delete(channel);
      }
    },
  };
}

function forgive(memory: Memory, people: readonly Person[], fallback?: string): void {
  if (people.some(({ left }) => !left)) memory.all = false;
  for (const channel of channels) {
    const shown = people.map((person) => person.channels.get(channel)?.is ?? fallback);
    if (shown.includes('opt_in')) memory.outs.delete(channel);
  }
}

/** Somebody of whom the CRM says nothing but that they are gone is nobody of ours. */
function isNamed(reading: Reading, key: string): boolean {
  const records = reading.records.filter((record) => keyIn(record) === key);
  return records.some(
    (record) =>
      record['deleted'] !== 'true' || channels.some((channel) => forbids(record, channel)),
  );
}

/** There since before the run, and not changed while it went on. */
function isSettled({ made, left, channels: all }: Person, startedAt: number): boolean {
  const times = [made, left, ...all.values()].flatMap((since) => since?.at ?? []);
  return times.every((at) => at < startedAt);
}

function noteAddress(
  addresses: Map<string, Set<string>>,
  record: Readonly<Record<string, unknown>>,
): void {
  const id = String(record['id']);
  const keys = addresses.get(id) ?? new Set();
  addresses.set(id, keys.add(keyOf(String(record['email']))));
}

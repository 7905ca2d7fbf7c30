/**
 * Sees everything that is done on the platform, by which side and when; knows no engine.
 * Times are milliseconds of the one clock that never jumps.
 */
import { keyOf } from '../../support/engine/sample-people.ts';
import type { Emulator } from '../../../src/emulator/emulator.ts';
import type { ContactView } from '../../../src/emulator/api/answers.ts';
import type { VirtualClock } from '../../support/waiting.ts';

/** us: crm-mirror's requests. others: people, colleagues, other programs, and how it all began. */
export type Author = 'us' | 'others';

export interface Since {
  at: number;
  by: Author;
}

/** One channel of a contact; undefined: no longer a member. */
export interface State extends Since {
  is: 'opt_in' | 'opt_out' | undefined;
  /** How it was until then. */
  before: State | undefined;
}

/** Lists how a channel is and was, newest first. */
export function pastOf(state: State | undefined): State[] {
  return state ? [state, ...pastOf(state.before)] : [];
}

/** A contact of the platform, with the history that matters. */
export interface Person {
  id: string;
  key: string;
  /** Holds the former addresses of the contact, and until when it had each. */
  former: { key: string; until: number } | undefined;
  made: Since;
  /** Unsubscribed from everything, blocked or suppressed. */
  left: Since | undefined;
  /** When that last ended. */
  back: Since | undefined;
  /** Since when that is more than a bounce, which is the address's own. */
  away: Since | undefined;
  /** A channel that is missing never had them. */
  channels: Map<string, State>;
  gone: Since | undefined;
}

export interface Letter {
  id: string;
  name: string;
  /** Before it was renamed. */
  former: string | undefined;
  made: Since;
  edited: Since;
  gone: Since | undefined;
}

export interface Witness {
  /** Does it, and sees what it changed. */
  during<T>(by: Author, work: () => T): T;
  /** Everybody who is or was on the platform, in the order they came. */
  people(): Person[];
  /** Those of this address who are there now. */
  present(key: string): Person[];
  letters(): Letter[];
  /** Whether somebody of this address was ever so in a channel, by whomever. */
  wasEver(key: string, channel: string, is: 'opt_in' | 'opt_out'): boolean;
  /** Whether we ever made it so. */
  wasMadeByUs(key: string, channel: string, is: 'opt_in' | 'opt_out'): boolean;
  /**
   * Whether anybody but us ever took this address out of the channel, or out of everything: left,
   * gone, renamed.
   */
  wasTouched(key: string, channel: string): boolean;
  /** Whether somebody was at this address, and we have deleted all of them. */
  wasDeletedByUs(key: string): boolean;
}

/** Returns when our last change of a channel reached the person; -Infinity if none did. */
export function reachedAt({ channels }: Pick<Person, 'channels'>): number {
  const ours = [...channels.values()].filter(({ by }) => by === 'us');
  return Math.max(...ours.map(({ at }) => at));
}

export function createWitness(
  { world }: Pick<Emulator, 'world'>,
  clock: Pick<VirtualClock, 'monotonic'>,
): Witness {
  const people = new Map<string, Person>();
  const letters = new Map<string, Letter & { text: string }>();
  const ever = new Set<string>();
  const ours = new Set<string>();
  const touched = new Set<string>();

  function look(since: Since): void {
    const contacts = world.contacts();
    for (const contact of contacts) lookAt(contact, since);
    const shown = new Set(contacts.map(({ id }) => id));
    for (const person of people.values()) {
      if (person.gone || shown.has(person.id)) continue;
      person.gone = since;
      if (since.by === 'others') touched.add(`${person.key} *`);
    }
    lookAtLetters(since);
  }

  function lookAt(contact: ContactView, since: Since): void {
    const key = keyOf(contact.email);
    const known = people.get(contact.id);
    const person: Person = known ?? newPerson(contact.id, { key, made: since });
    people.set(contact.id, person);
    if (person.key !== key) {
      touched.add(`${person.key} *`).add(`${key} *`);
      person.former = { key: person.key, until: since.at };
    }
    person.key = key;
    noteLeaving(person, contact, since);
    if (person.left && since.by === 'others') touched.add(`${key} *`);
    for (const channel of new Set([...person.channels.keys(), ...contact.channels.map(idOf)])) {
      const is = contact.channels.find(({ id }) => id === channel)?.subscription;
      const states = [key, person.former?.key].map((one) => `${one} ${channel} ${is}`);
      for (const state of states) ever.add(state);
      if (known && person.channels.get(channel)?.is === is) continue;
      for (const state of since.by === 'us' ? states : []) ours.add(state);
      person.channels.set(channel, { ...since, is, before: person.channels.get(channel) });
      if (is !== 'opt_in' && since.by === 'others') touched.add(`${key} ${channel}`);
    }
  }

  function lookAtLetters(since: Since): void {
    const shown = new Map(world.templates().map((template) => [template.id, template]));
    for (const letter of letters.values()) {
      if (!shown.has(letter.id)) letter.gone ??= since;
    }
    for (const [id, template] of shown) {
      const { updatedAt: _, ...fields } = template;
      const text = JSON.stringify(fields);
      const known = letters.get(id);
      const edited = known?.text === text ? known.edited : since;
      const made = known?.made ?? since;
      const { name } = template;
      const former = known && known.name !== name ? known.name : known?.former;
      letters.set(id, { id, name, former, made, edited, gone: undefined, text });
    }
  }

  look({ at: Number.NEGATIVE_INFINITY, by: 'others' });
  return {
    during(by, work) {
      const done = work();
      look({ at: clock.monotonic(), by });
      return done;
    },
    people: () => [...people.values()],
    present: (key) => [...people.values()].filter((one) => one.key === key && !one.gone),
    letters: () => [...letters.values()],
    wasEver: (key, channel, is) => ever.has(`${key} ${channel} ${is}`),
    wasMadeByUs: (key, channel, is) => ours.has(`${key} ${channel} ${is}`),
    wasDeletedByUs(key) {
      const all = [...people.values()].filter((one) => one.key === key);
      return all.length > 0 && all.every(({ gone }) => gone?.by === 'us');
    },
    wasTouched: (key, channel) => touched.has(`${key} *`) || touched.has(`${key} ${channel}`),
  };
}

function noteLeaving(
  person: Person,
  { status, suppressionReason }: ContactView,
  since: Since,
): void {
  const away = status !== 'subscribed' || ![null, 'bounce'].includes(suppressionReason);
  const left = away || suppressionReason !== null;
  if (person.left && !left) person.back = since;
  person.left = left ? (person.left ?? since) : undefined;
  person.away = away ? (person.away ?? since) : undefined;
}

function newPerson(id: string, { key, made }: Pick<Person, 'key' | 'made'>): Person {
  return {
    id,
    key,
    former: undefined,
    made,
    left: undefined,
    back: undefined,
    away: undefined,
    channels: new Map(),
    gone: undefined,
  };
}

function idOf({ id }: { id: string }): string {
  return id;
}

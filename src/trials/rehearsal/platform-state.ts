/** The state of a platform as people see it, and the difference between two states. */
import type { Emulator } from '../../emulator/emulator.ts';
import { contactKey } from '../../domain/values/contact-key.ts';

/** One contact: whether it receives mail at all, and its subscriptions by channel. */
export interface PersonState {
  /** `suppressed` for a subscribed contact that the platform sends no mail. */
  status: 'subscribed' | 'unsubscribed' | 'blocked' | 'suppressed';
  channels: Readonly<Record<string, 'opt_in' | 'opt_out'>>;
}

/** The contacts and templates of a platform by id, each with its key. */
export interface PlatformState {
  people: ReadonlyMap<string, { key: string; state: PersonState }>;
  templates: ReadonlyMap<string, { key: string; state: string }>;
}

/** A record whose state differs; undefined where it does not exist. */
export interface Difference<State> {
  key: string;
  before: State | undefined;
  after: State | undefined;
}

/** Returns the state of an emulator. */
export function stateOf({ world }: Pick<Emulator, 'world'>): PlatformState {
  const people = world.contacts().map((contact) => {
    const { id, email, status, channels, suppressionReason, suppressedAt } = contact;
    const isSuppressed = status === 'subscribed' && Boolean(suppressionReason ?? suppressedAt);
    const state: PersonState = {
      status: isSuppressed ? 'suppressed' : status,
      channels: Object.fromEntries(channels.map((one) => [one.id, one.subscription])),
    };
    return [id, { key: contactKey(email), state }] as const;
  });
  const templates = world.templates().map((template) => {
    const { id, name, createdAt: _, updatedAt: __, createdByUserId: ___, ...fields } = template;
    return [id, { key: name, state: JSON.stringify(fields) }] as const;
  });
  return { people: new Map(people), templates: new Map(templates) };
}

/** Returns the contacts whose state differs, in the order of their keys. */
export function changedPeople(
  before: PlatformState,
  after: PlatformState,
): Difference<PersonState>[] {
  return differences(before.people, after.people, sameState);
}

/** Returns the templates that differ, in the order of their names. */
export function changedTemplates(before: PlatformState, after: PlatformState) {
  return differences(before.templates, after.templates, (one, other) => one === other);
}

/** Returns how many people a channel reaches. */
export function countSubscribed({ people }: PlatformState, channel: string): number {
  let n = 0;
  for (const { state } of people.values())
    if (state.status === 'subscribed' && state.channels[channel] === 'opt_in') n += 1;
  return n;
}

/** Returns the states of each person without the ids, which differ between two rehearsals. */
export function statesByKey({ people }: PlatformState): Map<string, PersonState[]> {
  const states = new Map<string, PersonState[]>();
  for (const { key, state } of people.values()) {
    const known = states.get(key);
    if (known) known.push(state);
    else states.set(key, [state]);
  }
  return states;
}

/** Returns whether two states are the same. */
export function sameState(one: PersonState, other: PersonState): boolean {
  const [mine, theirs] = [Object.entries(one.channels), Object.entries(other.channels)];
  return (
    one.status === other.status &&
    mine.length === theirs.length &&
    mine.every(([id, is]) => other.channels[id] === is)
  );
}

function differences<State>(
  before: ReadonlyMap<string, { key: string; state: State }>,
  after: ReadonlyMap<string, { key: string; state: State }>,
  isSame: (one: State, other: State) => boolean,
): Difference<State>[] {
  const found: Difference<State>[] = [];
  for (const [id, { key, state }] of before) {
    const now = after.get(id)?.state;
    if (now === undefined || !isSame(state, now)) found.push({ key, before: state, after: now });
  }
  for (const [id, { key, state }] of after) {
    if (!before.has(id)) found.push({ key, before: undefined, after: state });
  }
  return found.toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
}

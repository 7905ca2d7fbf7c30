/** What operators have resolved, and what follows from it: told apart from how it is stored. */
import { isLiving, keyIn, textOf, type Reading } from '../world/crm.ts';
import type { Arrival, Known, Outing } from './checker-state.ts';
import { fallbackOf } from '../story/story.ts';
import type { Person, State } from '../world/platform-history.ts';
import type { Traces } from '../world/snapshot-files.ts';

/** An opt-out of a channel. */
interface Out {
  key: string;
  channel: string;
  /** The ids of the CRM for whom it holds, too, whatever their address. */
  ids: ReadonlySet<string>;
  /** By the clock that never jumps. */
  at: number;
  /** What the CRM states later than this outweighs it. */
  by: number;
}

/** `key` is undefined once the CRM has outweighed it for the address. */
type Standing = Omit<Out, 'key'> & { key: string | undefined };

export interface Settlements {
  out(out: Out): void;
  /** The opt-outs that these contacts show now were not theirs. */
  in(key: string, channel: string, people: readonly Person[]): void;
  /** Whether that was ever said of the channel: another opt-out since then counts again. */
  wasSettled(key: string, channel: string): boolean;
  /** Whether that is said of this very opt-out. */
  isSettled(person: Person, channel: string, state: State): boolean;
  /** Whether the person may be opted out for it. */
  mayBeOut(key: string, channel: string, reading: Reading): boolean;
  /** Whether the person has to be out for it; answers since when. */
  isOut(key: string, channel: string, reading: Reading): number | undefined;
  /** What the CRM stated later has opted the person in: they need not be out any more. */
  outweigh(key: string, channel: string): void;
  allow(key: string, ids: ReadonlySet<string>): void;
}

/** `everOf`: the addresses that a record of the CRM has had. */
export function createSettlements(everOf: (id: string) => ReadonlySet<string>): Settlements {
  let outs: Standing[] = [];
  const ins = new Set<string>();
  const settled = new Set<string>();
  const nameOf = ({ id }: Person, channel: string, { at }: State): string =>
    `${id} ${channel} ${at}`;
  return {
    out: (one) => void outs.push(one),
    in(key, channel, people) {
      outs = outs.filter((one) => one.key !== key || one.channel !== channel);
      settled.add(`${key} ${channel}`);
      for (const person of people) {
        const state = person.channels.get(channel);
        if (state) ins.add(nameOf(person, channel, state));
      }
    },
    wasSettled: (key, channel) => settled.has(`${key} ${channel}`),
    isSettled: (person, channel, state) => ins.has(nameOf(person, channel, state)),
    mayBeOut: (key, channel, { records }) =>
      outs.some((one) => {
        // It holds for the contact of a former address, too, also of who has this address since.
        const isTheirs = records.some((record) => {
          const id = String(record['id']);
          const isMeant = one.ids.has(id) || keyIn(record) === one.key;
          return isMeant && (keyIn(record) === key || everOf(id).has(key));
        });
        return one.channel === channel && (one.key === key || isTheirs);
      }),
    isOut(key, channel, { records }) {
      const own = records.filter((record) => keyIn(record) === key);
      const times = own.map((record) => Date.parse(textOf(record, 'consent_at')) || 0);
      return outs.find(
        (one) =>
          one.channel === channel && one.key === key && times.every((time) => time <= one.by),
      )?.at;
    },
    outweigh(key, channel) {
      const isOver = (one: Standing): boolean => one.key === key && one.channel === channel;
      outs = outs.map((one) => (isOver(one) ? { ...one, key: undefined } : one));
    },
    allow(key, ids) {
      outs = outs
        .filter((one) => one.key !== key)
        .map((one) => ({ ...one, ids: new Set([...one.ids].filter((id) => !ids.has(id))) }));
    },
  };
}

/**
 * Tells what is wrong with an opt-in that was resolved: somebody said no, as far as the answers
 * show. Of an opt-out that may be a default nobody can tell, unless the person was seen in before.
 */
export function mayEnd(
  { key, channel, reading }: { key: string; channel: string; reading: Reading },
  { witness, memories, erasures, story }: Known,
): string | false {
  const what = `${key} in ${channel} was resolved as an opt-in`;
  const there = witness.present(key);
  const shown = there.map(({ channels }) => channels.get(channel)?.is ?? fallbackOf(story));
  // Of somebody who is in by now, it only ends what an operator has said before.
  const isIn = there.length > 0 && shown.every((is) => is === 'opt_in');
  if (!isIn && erasures.against(key, reading).some(({ certified }) => certified))
    return `${what}, and was forgotten`;
  for (const person of there) {
    if (person.left) return `${what}, and has left all mail`;
    const state = person.channels.get(channel);
    // A default is known from a contact that we made for another channel.
    const isShown = witness.people().some(({ made, channels }) => {
      return made.by === 'us' && !channels.has(channel);
    });
    const isDefault = fallbackOf(story) === 'opt_out' || !isShown;
    const mayBeDefault = isDefault && !memories.wasSeenIn(state);
    const isNewer = story.resubscribe === 'newer';
    if (memories.isTheirs(person, channel) && !mayBeDefault && !isNewer)
      return `${what}, and the person had left it`;
  }
  return false;
}

/** Nobody is opted in whom an operator has resolved as out, unless it was under way before. */
export function checkResolvedOut(
  what: string,
  { key, channel }: { key: string; channel: string },
  { arrival: { outing, sentAt }, known }: { arrival: Arrival; known: Known },
): void {
  const since = known.settlements.isOut(key, channel, outing.people);
  if (!known.settlements.mayBeOut(key, channel, outing.people)) return;
  const isOut = since !== undefined && sentAt > since;
  const wrong = isOut && `${what}, and an operator resolved that as an opt-out`;
  known.judge('people whom an operator resolved as out are not opted in', wrong);
  if (since === undefined) known.settlements.outweigh(key, channel);
}

/** After a run that could do all of its work, who is resolved as out is out. */
export function checkResolved(
  { people, startedAt }: Pick<Outing, 'people' | 'startedAt'>,
  { standing, recorded }: Pick<Traces, 'standing' | 'recorded'>,
  { story, witness, refusals, settlements, erasures, judge }: Known,
): void {
  for (const record of people.records) {
    const key = keyIn(record) ?? '';
    if (!isLiving(people, key) || erasures.against(key, people).length > 0) continue;
    for (const channel of new Set(recorded.map((one) => one.channel))) {
      if (settlements.isOut(key, channel, people) === undefined) continue;
      if (refusals.has(`${key} ${channel} opt_out`)) continue;
      if (standing.some((one) => one.key === key && one.part === channel)) continue;
      const isIn = witness.present(key).some(({ channels, made, former }) => {
        const state = channels.get(channel);
        const times = [state?.at ?? made.at, made.at, former?.until ?? made.at];
        return (state?.is ?? fallbackOf(story)) === 'opt_in' && Math.max(...times) < startedAt;
      });
      const wrong = isIn && `${key} is in ${channel}, and an operator resolved that as an opt-out`;
      judge('people whom an operator resolved as out are out', wrong);
    }
  }
}

/** People who are deleted in the CRM and subscribed with a contact that is not ours. */
import { channels } from '../../support/engine/engine-stage.ts';
import { fallbackOf } from '../story/story.ts';
import { addressesOf, isLiving, type Reading, wishFor } from '../world/crm.ts';
import type { Person } from '../world/platform-history.ts';
import type { Traces } from '../world/snapshot-files.ts';
import type { Known, Outing } from './checker-state.ts';

export interface Unmanaged {
  /** The CRM was read: who is there again may be ours from now on. */
  read(reading: Reading): void;
  /** A complete full run has ended: whoever is unmanaged is listed. */
  conclude(run: Pick<Outing, 'people' | 'startedAt'>, files: Traces, known: Known): void;
  /** Somebody is opted out for absence: nobody who was found, and is not in the CRM since. */
  leftAlone(what: string, about: { key: string; channel: string }, judge: Known['judge']): void;
}

export function createUnmanaged(): Unmanaged {
  const found = new Set<string>();
  const nameOf = (key: string, channel: string): string => `contact ${key} ${channel}`;
  return {
    read(reading) {
      for (const key of addressesOf(reading)) {
        if (!isLiving(reading, key)) continue;
        for (const channel of channels) found.delete(nameOf(key, channel));
      }
    },
    conclude({ people, startedAt }, { recorded, problems }, { story, witness, erasures, judge }) {
      const isIn = (
        { channels: all, made, former, left, back }: Person,
        channel: string,
      ): boolean => {
        const state = all.get(channel);
        const since = [state, made, back].map((one) => one?.at ?? made.at);
        const times = [...since, former?.until ?? made.at];
        const is = state ? state.is : fallbackOf(story);
        return is === 'opt_in' && left === undefined && Math.max(...times) < startedAt;
      };
      for (const key of addressesOf(people)) {
        if (isLiving(people, key) || recorded.some((one) => one.key === key)) continue;
        if (erasures.isOf(key) || erasures.unsettled().has(key)) continue;
        // Beside a contact of ours that this run has deleted, the next one sees the others.
        const ofKey = witness.people().filter((person) => person.key === key);
        if (ofKey.some(({ gone }) => gone?.by === 'us' && gone.at >= startedAt)) continue;
        for (const channel of channels) {
          if (wishFor(people, key, channel) === 'opt_out') continue;
          if (!witness.present(key).some((person) => isIn(person, channel))) continue;
          const name = nameOf(key, channel);
          found.add(name);
          const wrong = `${key} is deleted in the CRM, in ${channel}, not ours, and not listed`;
          judge(
            'deleted people who are subscribed and not ours are listed',
            !problems.includes(name) && wrong,
          );
        }
      }
    },
    leftAlone(what, { key, channel }, judge) {
      const wrong = found.has(nameOf(key, channel)) && `${what}, and is not ours`;
      judge('deleted people who are not ours are not opted out for absence', wrong);
    },
  };
}

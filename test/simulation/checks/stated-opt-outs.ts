/** Which CRM records have stated an opt-out, told apart from what the snapshot keeps of it. */
import { channels } from '../../support/engine/engine-stage.ts';
import { type Wish, wishOf } from '../../support/engine/sample-people.ts';
import {
  forbids,
  isUnsound,
  keyIn,
  textOf,
  wishesIn,
  wishFor,
  type Reading,
} from '../world/crm.ts';

export interface Statements {
  /** Some run has read the CRM. */
  read(reading: Reading): void;
  /** We have opted somebody out, as the CRM was read then, with the new addresses of the person. */
  optedOut(key: string, channel: string, as: { reading: Reading; moved: string[] }): void;
  /** Whether that was on the word of a record of the address. */
  has(key: string, channel: string): boolean;
  /**
   * Whether no record of the address that says in has ever stated an opt-out, nor states a will of
   * its own: then nobody takes back what one of them stated.
   */
  stands(key: string, channel: string, reading: Reading): boolean;
  /** An operator has settled that as an opt-in, which these records state. */
  settle(key: string, channel: string, ids: readonly string[]): void;
  /** A run that could do all of its work has read the CRM. */
  conclude(reading: Reading): void;
  /** An operator has released what was stated of the address. */
  allow(key: string): void;
  /** What the snapshot has kept of it is lost. */
  lose(): void;
  /** Whether the last run that could do all of its work has read it as an opt-out. */
  wasOut(key: string, channel: string): boolean;
  /** Who states otherwise now than when such a run read the CRM. */
  compared(reading: Reading): Compared;
}

/** Numbers of addresses. */
interface Compared {
  /** Those that have ever stated an opt-out, and those that have ever stated anything. */
  outs: number;
  all: number;
  /** Those that turn to an opt-in, at most, and those that turn from it to an opt-out. */
  toYes: number;
  /** Undefined if a run since may have learnt of it. */
  toNo: number | undefined;
}

export function createStatements(): Statements {
  /** By id and channel. */
  const ever = new Set<string>();
  /** Opt-outs of ours that a record stated, by address and channel. */
  const stated = new Set<string>();
  /** What an operator has settled of these, until a record takes its opt-in back. */
  let settled: { key: string; channel: string; ids: readonly string[] }[] = [];
  /** Addresses that have ever stated an opt-out, and those that have ever stated anything. */
  const everOut = new Set<string>();
  const everAny = new Set<string>();
  /** By address and channel, as the last run that could do all of its work has read it. */
  let last = new Map<string, Wish>();
  /** Whether another run has read the CRM since. */
  let isOld = true;
  const has: Statements['has'] = (key, channel) => stated.has(`${key} ${channel}`);
  return {
    has,
    read(reading) {
      const { records } = reading;
      isOld = true;
      for (const { key, wish } of wishesIn(reading)) {
        if (wish !== undefined) everAny.add(key);
        if (wish === 'opt_out') everOut.add(key);
      }
      for (const record of records)
        for (const channel of channels)
          if (forbids(record, channel)) ever.add(`${String(record['id'])} ${channel}`);
    },
    optedOut(key, channel, { reading, moved }) {
      const isStated = [key, ...moved].some((one) => wishFor(reading, one, channel) === 'opt_out');
      settled = settled.filter((one) => one.key !== key || one.channel !== channel);
      if (isStated) stated.add(`${key} ${channel}`);
      else stated.delete(`${key} ${channel}`);
    },
    stands(key, channel, { records }) {
      const mayTakeBack = records.some(
        (record) =>
          keyIn(record) === key &&
          (ever.has(`${String(record['id'])} ${channel}`) || textOf(record, 'consent_at') !== ''),
      );
      return has(key, channel) && !mayTakeBack;
    },
    settle(key, channel, ids) {
      last.delete(`${key} ${channel}`);
      if (stated.delete(`${key} ${channel}`)) settled.push({ key, channel, ids });
    },
    conclude(reading) {
      const { records } = reading;
      last = new Map(
        wishesIn(reading).map(({ key, channel, wish }) => [`${key} ${channel}`, wish]),
      );
      isOld = false;
      const ended = settled.filter(({ key, channel, ids }) => {
        const own = records.filter((record) => keyIn(record) === key);
        const isSound = own.length > 0 && own.every((record) => !isUnsound(record, reading));
        const states = (id: string): boolean =>
          own.some((record) => record['id'] === id && wishOf([record], channel) === 'opt_in');
        return isSound && !ids.every(states);
      });
      settled = settled.filter((one) => !ended.includes(one));
      for (const { key, channel } of ended) stated.add(`${key} ${channel}`);
    },
    allow(key) {
      for (const channel of channels) {
        stated.delete(`${key} ${channel}`);
        last.delete(`${key} ${channel}`);
      }
      settled = settled.filter((one) => one.key !== key);
    },
    lose: () => last.clear(),
    wasOut: (key, channel) => last.get(`${key} ${channel}`) === 'opt_out',
    compared(reading) {
      const now = wishesIn(reading);
      const count = (which: (typeof now)[number][]) => new Set(which.map(({ key }) => key)).size;
      const turned = now.filter(
        ({ key, channel, wish }) =>
          wish === 'opt_out' && last.get(`${key} ${channel}`) === 'opt_in',
      );
      return {
        outs: everOut.size,
        all: everAny.size,
        toYes: count(now.filter(({ key, wish }) => wish === 'opt_in' && everOut.has(key))),
        toNo: isOld ? undefined : count(turned),
      };
    },
  };
}

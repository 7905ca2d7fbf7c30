/** Which CRM records have stated an opt-out, told apart from what the snapshot keeps of it. */
import { channels } from '../../support/engine/engine-mirror.ts';
import { wishOf } from '../../support/engine/wanted-people.ts';
import { forbids, isUnsound, keyIn, textOf, wishFor, type Reading } from '../world/crm.ts';

export interface Statements {
  /** Some run has read the CRM. */
  read(reading: Reading): void;
  /** We have opted somebody out, as the CRM was read then. */
  optedOut(key: string, channel: string, reading: Reading): void;
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
}

export function createStatements(): Statements {
  /** By id and channel. */
  const ever = new Set<string>();
  /** Opt-outs of ours that a record stated, by address and channel. */
  const stated = new Set<string>();
  /** What an operator has settled of these, until a record takes its opt-in back. */
  let settled: { key: string; channel: string; ids: readonly string[] }[] = [];
  const has: Statements['has'] = (key, channel) => stated.has(`${key} ${channel}`);
  return {
    has,
    read({ records }) {
      for (const record of records)
        for (const channel of channels)
          if (forbids(record, channel)) ever.add(`${String(record['id'])} ${channel}`);
    },
    optedOut(key, channel, reading) {
      const isStated = wishFor(reading, key, channel) === 'opt_out';
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
      if (stated.delete(`${key} ${channel}`)) settled.push({ key, channel, ids });
    },
    conclude(reading) {
      const { records } = reading;
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
      for (const channel of channels) stated.delete(`${key} ${channel}`);
      settled = settled.filter((one) => one.key !== key);
    },
  };
}

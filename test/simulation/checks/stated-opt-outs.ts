/** Which CRM records have stated an opt-out, told apart from what the snapshot keeps of it. */
import { channels } from '../../support/engine/engine-mirror.ts';
import { forbids, keyIn, textOf, wishFor, type Reading } from '../world/crm.ts';

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
  /** An operator has released what was stated of the address. */
  allow(key: string): void;
}

export function createStatements(): Statements {
  /** By id and channel. */
  const ever = new Set<string>();
  /** Opt-outs of ours that a record stated, by address and channel. */
  const stated = new Set<string>();
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
    allow(key) {
      for (const channel of channels) stated.delete(`${key} ${channel}`);
    },
  };
}

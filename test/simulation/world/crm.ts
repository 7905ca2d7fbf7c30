/** What the CRM says, told apart from how the engine finds it out. */
import { channels } from '../../support/engine/engine-stage.ts';
import { isBroken, wishOf, type Wish, keyOf } from '../../support/engine/sample-people.ts';

export type CrmRecord = Record<string, unknown>;

/** The CRM as one run read it. */
export interface Reading {
  records: readonly CrmRecord[];
  /** Whether the source vouched that this is all. */
  certified: boolean;
}

/** A field of a record, as text. */
export function textOf(record: CrmRecord | undefined, field: string): string {
  const value = record?.[field];
  return typeof value === 'string' ? value : '';
}

/** The address of a record, if it is one. */
export function keyIn(record: CrmRecord): string | undefined {
  const key = keyOf(textOf(record, 'email'));
  return key.includes('@') ? key : undefined;
}

export function addressesOf({ records }: Reading): Set<string> {
  return new Set(records.flatMap((record) => keyIn(record) ?? []));
}

/** Whether a record allows no opt-in: what it says, or whose id it has, cannot be read. */
export function isUnsound(record: CrmRecord, { records }: Reading): boolean {
  const shares = (other: CrmRecord) =>
    other['id'] === record['id'] && keyIn(other) !== keyIn(record);
  return keyIn(record) === undefined || isBroken(record) || records.some(shares);
}

/** Whether a record of this address is, or may be, of somebody who is there. */
export function isLiving(reading: Reading, key: string): boolean {
  const records = reading.records.filter((record) => keyIn(record) === key);
  return records.some((record) => record['deleted'] !== 'true' || isUnsound(record, reading));
}

/** What the records of one address want of a channel: any no wins, and no unsound one opts in. */
export function wishFor(reading: Reading, key: string, channel: string): Wish {
  const records = reading.records.filter((record) => keyIn(record) === key);
  const wish = wishOf(records, channel);
  const unsound = records.some((record) => isUnsound(record, reading));
  return wish === 'opt_in' && unsound ? undefined : wish;
}

/** Whether a record, whatever its address, states an opt-out of the channel. */
export function forbids(record: CrmRecord, channel: string): boolean {
  return wishOf([record], channel) === 'opt_out';
}

/** Every wish there is, by address and channel. */
export function wishesIn(reading: Reading): { key: string; channel: string; wish: Wish }[] {
  return [...addressesOf(reading)].flatMap((key) =>
    channels.map((channel) => ({ key, channel, wish: wishFor(reading, key, channel) })),
  );
}

/** Who was forgotten, and under which ids the CRM had them: told apart from the ledger. */
import { channels } from '../../support/engine/engine-stage.ts';
import { isUnsound, keyIn, wishFor, type Reading } from '../world/crm.ts';

export interface Erasures {
  /** Somebody is about to be forgotten: until that is certified, nothing is certain. */
  begin(key: string, begun: { at: number; ids: Iterable<string> }): void;
  /** Whether one of these ids may be on the ledger, though nobody lived to tell. */
  mayStand(ids: readonly string[]): boolean;
  /** The ledger has it, as it was answered; `ids`: of the CRM, and those the snapshot knew. */
  enter(key: string, entry: Pick<Erasure, 'at' | 'certified'> & { ids: Iterable<string> }): void;
  /** Nor do ids of theirs stand for others any more. */
  allow(key: string, ids: ReadonlySet<string>): void;
  /** Some run has read the CRM: whose id a record of the forgotten has may be theirs. */
  meet(reading: Reading): void;
  /**
   * A whole run has read the CRM: what wants the address in is of the forgotten, and so is what
   * cannot be read there: whose id it has is not certain, and may be theirs.
   */
  read(reading: Reading): void;
  /** What forbids bringing this address in, by itself or by an id that it shares. */
  against(key: string, reading: Reading): Erasure[];
  /** Whether this very address is forgotten. */
  isOf(key: string): boolean;
  /** When somebody of this address was forgotten last, in part or wholly; -Infinity: never. */
  lastOf(key: string): number;
  /** Who is forgotten in part, for all that is known. */
  unsettled(): ReadonlySet<string>;
}

interface Erasure {
  key: string;
  /** By the clock that never jumps. */
  at: number;
  certified: boolean;
  ids: Set<string>;
}

export function createErasures(): Erasures {
  const standing = new Map<string, Erasure>();
  const unsettled = new Set<string>();
  /** Ids of all who were to be forgotten, then and since. */
  const begun = new Set<string>();
  const last = new Map<string, number>();
  return {
    begin(key, { at, ids }) {
      unsettled.add(key);
      last.set(key, at);
      for (const id of ids) begun.add(id);
    },
    mayStand: (ids) => ids.some((id) => begun.has(id)),
    enter(key, { at, certified, ids }) {
      const before = standing.get(key);
      const all = new Set([...(before?.ids ?? []), ...ids]);
      standing.set(key, { key, at, certified, ids: all });
      last.set(key, at);
      if (certified) unsettled.delete(key);
    },
    allow(key, ids) {
      standing.delete(key);
      for (const erasure of standing.values()) for (const id of ids) erasure.ids.delete(id);
    },
    meet({ records }) {
      for (const record of records)
        if (standing.has(keyIn(record) ?? '')) begun.add(String(record['id']));
    },
    read(reading) {
      for (const record of reading.records) {
        const erasure = standing.get(keyIn(record) ?? '');
        if (!erasure) continue;
        const wishes = channels.map((channel) => wishFor(reading, erasure.key, channel));
        if (wishes.includes('opt_in') || isUnsound(record, reading))
          erasure.ids.add(String(record['id']));
      }
    },
    against(key, { records }) {
      const own = records.filter((record) => keyIn(record) === key);
      const ids = own.map(({ id }) => String(id));
      return [...standing.values()].filter(
        (one) => one.key === key || ids.some((id) => one.ids.has(id)),
      );
    },
    isOf: (key) => standing.has(key),
    lastOf: (key) => last.get(key) ?? Number.NEGATIVE_INFINITY,
    unsettled: () => new Set(unsettled),
  };
}

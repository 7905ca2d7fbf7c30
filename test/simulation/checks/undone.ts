/** What `undo` has taken back, and whether the CRM has stated anything else since. */
import { keyIn, textOf, type Reading } from '../world/crm.ts';

export interface Undone {
  /** We have opted somebody out because an opt-in of ours was undone, at this time. */
  optedOut(key: string, channel: string, undo: { reading: Reading; at: number }): void;
  /** That was undone in its turn. */
  optedIn(key: string, channel: string): void;
  /** Some run has read the CRM. */
  read(reading: Reading): void;
  /** Whether anything was ever undone there. */
  has(key: string, channel: string): boolean;
  /** When it was undone, if the CRM has stated nothing else since, and states nothing else now. */
  since(key: string, channel: string, reading: Reading): number | undefined;
  /** Somebody has decided otherwise about the address. */
  drop(key: string): void;
  /** The snapshot is gone. */
  lose(): void;
}

interface Standing {
  key: string;
  channel: string;
  /** Undefined: the CRM has not named the person since. */
  said: string | undefined;
  at: number;
}

export function createUndone(): Undone {
  const ever = new Set<string>();
  let all: Standing[] = [];
  const isOther = ({ key, channel, said }: Standing, reading: Reading): boolean => {
    const now = statement(reading, key, channel);
    // A time that nobody has seen before may be later than the undo.
    if (said === undefined) return now !== undefined && isDated(reading, key);
    return now !== undefined && now !== said;
  };
  const without = (key: string, channel?: string): Standing[] =>
    all.filter((one) => one.key !== key || (channel !== undefined && one.channel !== channel));
  return {
    optedOut(key, channel, { reading, at }) {
      ever.add(`${key} ${channel}`);
      all = [
        ...without(key, channel),
        { key, channel, said: statement(reading, key, channel), at },
      ];
    },
    optedIn: (key, channel) => void (all = without(key, channel)),
    read(reading) {
      if (!reading.certified) return;
      all = all
        .filter((one) => !isOther(one, reading))
        .map((one) => ({ ...one, said: one.said ?? statement(reading, one.key, one.channel) }));
    },
    has: (key, channel) => ever.has(`${key} ${channel}`),
    since(key, channel, reading) {
      const found = all.find((one) => one.key === key && one.channel === channel);
      return found && !isOther(found, reading) ? found.at : undefined;
    },
    drop: (key) => void (all = without(key)),
    lose: () => void (all = []),
  };
}

/** All that the records of an address state about mail, whatever their ids. */
function statement({ records, certified }: Reading, key: string, channel: string) {
  const own = records.filter((record) => keyIn(record) === key);
  if (own.length === 0 || !certified) return undefined;
  const fields = [channel, 'unsubscribed', 'deleted', 'consent_at'];
  const said = own.map((record) => fields.map((name) => textOf(record, name)).join('|'));
  return [...new Set(said)].toSorted().join('\n');
}

function isDated({ records }: Reading, key: string): boolean {
  return records.some((one) => keyIn(one) === key && textOf(one, 'consent_at') !== '');
}

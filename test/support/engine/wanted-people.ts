/** What the CRM of a stage wants, told apart from how the engine finds it out. */
import { keyOf } from './address-spelling.ts';
import { channels } from './engine-mirror.ts';
import type { Stage } from './engine-stage.ts';

const yes = new Set(['yes', 'true', '1', 'opt_in']);
const no = new Set(['no', '0']);

export type Wish = 'opt_in' | 'opt_out' | undefined;

/** Of one person, given as all their CRM records: any no wins; who is broken is never opted in. */
export function wishOf(records: readonly Record<string, unknown>[], channel: string): Wish {
  const words = records.map((record) => wordOf(record[channel]));
  const leaves = records.some((record) => record['unsubscribed'] === 'true');
  if (leaves || words.some((word) => no.has(word))) return 'opt_out';
  if (records.some(isBroken)) return undefined;
  const living = records.filter((record) => record['deleted'] !== 'true');
  const wants = living.some((record) => yes.has(wordOf(record[channel])));
  return wants ? 'opt_in' : undefined;
}

export function isBroken(record: Readonly<Record<string, unknown>>): boolean {
  return channels.some((id) => record[id] === 'maybe');
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : '';
}

/** By address and channel. */
export function wishesOf(stage: Stage): { address: string; channel: string; wish: Wish }[] {
  const addressOf = (record: Record<string, unknown>) => keyOf(String(record['email']));
  const addresses = new Set(stage.people.map(addressOf));
  return [...addresses].flatMap((address) => {
    const records = stage.people.filter((record) => addressOf(record) === address);
    return channels.map((channel) => ({ address, channel, wish: wishOf(records, channel) }));
  });
}

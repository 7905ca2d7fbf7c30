/** What the platform holds when a story has ended: for comparing two versions of the engine. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/domain/record.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';

/** A number below 2^48, whatever the order of people, templates and fields. */
export function stateOf({ emulator }: { emulator: Pick<Emulator, 'world'> }): number {
  const { contacts, templates } = emulator.world;
  const all = [...contacts(), ...templates()].map((one) => canonicalJson(one)).toSorted();
  const hash = createHash('sha256').update(all.join('\n')).digest('hex');
  return Number.parseInt(hash.slice(0, 12), 16);
}

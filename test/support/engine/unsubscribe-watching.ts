/** A sentinel beside the runs of one mirror, by a connection of its own to the snapshot. */
import { onTestFinished } from 'vitest';
import { openSnapshot } from '../../../src/snapshot/snapshot.ts';
import {
  watch,
  type Sighting,
  type Watching,
} from '../../../src/engine/watch/unsubscribe-watch.ts';
import { run } from '../../../src/engine/run.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Arrival } from './platform-server.ts';
import { createWorld, type World, type WorldOptions } from './engine-world.ts';

export const NEWS = 'ch_news';
export const PRODUCT = 'ch_product';
export const at = (name: string): string => `${name}@example.com`;

export interface Watched extends World {
  /** One look; answers what it asked of the platform, too. */
  look(watching?: Partial<Watching>, key?: string): Promise<Sighting & { asked: string[] }>;
  /** A full run on a snapshot that knows nothing, with the same ledger. */
  syncAnew(): Promise<Summary>;
  /** By cause and part, what stands in the ledger against an address. */
  against(name: string): string[];
  /** Tells whether the snapshot has the contact as unsubscribed by the person. */
  hasLeft(name: string): boolean | undefined;
}

export async function watched(options: WorldOptions = {}): Promise<Watched> {
  const world = await createWorld({ kinds: ['contact'], ...options });
  const never = new AbortController().signal;
  const connected = world.connect();
  onTestFinished(async () => connected.close());
  return {
    ...world,
    async look(watching = {}, key) {
      const before = world.server.arrived.length;
      const snapshot = world.snapshot.sibling();
      const ledger = world.ledger.sibling();
      const mirror = { ...world.mirror(connected, key), snapshot, doNotContact: ledger };
      try {
        const sighting = await watch(mirror, { stop: never, abort: never, ...watching });
        return { ...sighting, asked: world.server.arrived.slice(before).map(asked) };
      } finally {
        snapshot.close();
      }
    },
    async syncAnew() {
      const snapshot = openSnapshot('', { inMemory: true });
      onTestFinished(() => snapshot.close());
      const mirror = { ...world.mirror(connected), snapshot };
      const rest = { only: undefined, stop: never, abort: never, progress: () => undefined };
      return run(mirror, { mode: 'full', writes: true, ...rest });
    },
    against: (name) =>
      world.ledger
        .concerning({ key: at(name), ids: [`id-${at(name)}`] })
        .map(({ cause, part }) => `${cause} ${part}`)
        .toSorted(),
    hasLeft(name) {
      const row = world.snapshot.recorded.get('contact', at(name));
      if (!row) return undefined;
      const { contacts }: { contacts: { left: boolean }[] } = JSON.parse(row.body);
      return contacts.some(({ left }) => left);
    },
  };
}

/** GET list 1×100 unsubscribed */
function asked({ method, path, route }: Arrival): string {
  const query = new URL(path, 'http://x').searchParams;
  const page = `${query.get('page')}×${query.get('limit')}`;
  const what = [page, query.get('status')].filter(Boolean).join(' ');
  return route === 'contacts.list' ? `list ${what}` : `${method} ${route}`;
}

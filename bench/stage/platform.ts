/** A process with an emulator of its own, as far away as it is told to be. */
import { createEmulator } from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import { serve } from '../../src/emulator/http-listener.ts';
import { given } from './child.ts';
import { farAway, type Latency } from './network.ts';

export interface PlatformTask {
  limits: readonly string[];
  algorithm?: string;
  /** Undefined: on this machine. */
  latency?: Latency;
  /** So many people are there already, opted in. */
  people?: number;
}

/** What it says when it can be reached. */
export interface PlatformReady {
  url: string;
}

/** What it says when it is asked: of each route since it was asked last. */
export interface Traffic {
  [pathBeginning: string]: { requests: number; ms: number };
}

const { limits, algorithm, latency, people = 2 }: PlatformTask = JSON.parse(given());
const emulator = createEmulator({
  clock: { now: Date.now, monotonic: () => performance.now() },
  random: seeded(1),
  apiKey: 'key_bench',
  channels: [{ id: 'ch_news', name: 'Newsletter' }],
  limits,
  algorithm,
});
for (let at = 0; at < people; at += 1) {
  const channels = { ch_news: 'opt_in' } as const;
  emulator.seed.contact({ id: `con_${at}`, email: `person${at}@example.com`, channels });
}

/** When the first and the last request of a kind came. */
const seen = new Map<string, { requests: number; firstMs: number; lastMs: number }>();
const receive: typeof emulator.receive = (request) => {
  const nowMs = performance.now();
  const kind = `${request.method} ${request.path.split('/', 4).join('/').split('?')[0]}`;
  const known = seen.get(kind) ?? { requests: 0, firstMs: nowMs, lastMs: nowMs };
  const delivery = emulator.receive(request);
  seen.set(kind, { ...known, requests: known.requests + 1, lastMs: performance.now() });
  return delivery;
};
const { url } = await serve({ receive }, 0);
const ready: PlatformReady = { url: latency ? await farAway(url, latency) : url };
process.send?.(ready);
process.on('message', () => {
  const entries = [...seen].map(([kind, { requests, firstMs, lastMs }]) => [
    kind,
    { requests, ms: lastMs - firstMs },
  ]);
  const traffic: Traffic = Object.fromEntries(entries);
  seen.clear();
  process.send?.(traffic);
});

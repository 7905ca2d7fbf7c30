/** A process with an emulator of its own, far enough away to be like a platform. */
import { createEmulator } from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/random.ts';
import { serve } from '../../src/emulator/serve.ts';
import { given } from './child.ts';
import { farAway, type Latency } from './network.ts';

export interface PlatformTask {
  limits: readonly string[];
  algorithm: string;
  latency: Latency;
}

/** What it says when it can be reached. */
export interface PlatformReady {
  url: string;
}

const { limits, algorithm, latency }: PlatformTask = JSON.parse(given());
const emulator = createEmulator({
  clock: { now: Date.now, monotonic: () => performance.now() },
  random: seeded(1),
  apiKey: 'key_bench',
  channels: [{ id: 'ch_news', name: 'Newsletter' }],
  limits,
  algorithm,
});
emulator.seed.contact({ id: 'con_1', email: 'ann@example.com', channels: { ch_news: 'opt_in' } });
const { url } = await serve(emulator, 0);
const ready: PlatformReady = { url: await farAway(url, latency) };
process.send?.(ready);

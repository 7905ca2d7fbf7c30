/** How near many processes that share a limit come to the least time, in virtual time. */
import { expect, test } from 'vitest';
import { algorithms } from '../../src/emulator/limits/algorithms.ts';
import { playFleet } from '../support/rate-limit/fleet-scenario.ts';

/** Ceilings, just above what is measured: time / least time, and round trips to Redis each. */
const rows = [
  { processes: 4, limit: '200/2', requests: 1950, ratio: 1.09, trips: 3 },
  { processes: 20, limit: '60/60', requests: 580, ratio: 1.06, trips: 6 },
  { processes: 200, limit: '20/1', requests: 390, ratio: 1.2, trips: 20 },
];

test.each(rows.flatMap((row) => algorithms.map(({ name }) => ({ ...row, name }))))(
  '$processes processes share $limit, $name: no 429',
  async ({ name: algorithm, limit, ratio, trips, ...job }) => {
    const [requests = 0, windowSeconds = 0] = limit.split('/').map(Number);
    const found = await playFleet({
      ...job,
      algorithm,
      limit: { requests, windowSeconds },
      seed: 1,
    });
    expect(found.refused).toBe(0);
    expect(found.ratio).toBeLessThan(ratio);
    expect(found.trips).toBeLessThan(trips);
  },
);

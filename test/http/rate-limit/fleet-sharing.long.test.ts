/** How near many processes that share a limit come to the least time, in virtual time. */
import { expect, test } from 'vitest';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { playFleet } from '../../support/rate-limit/limit-scenario.ts';

const all = algorithms.map(({ name }) => name);
/** Ceilings, just above what is measured: time / least time, and round trips to Redis each. */
const rows = [
  { processes: 4, limit: '200/2', requests: 1950, delayed: 0, ratio: 1.11, trips: 1.7, of: all },
  { processes: 4, limit: '60/10', requests: 580, delayed: 0.05, ratio: 1.1, trips: 2.5, of: all },
  { processes: 20, limit: '60/60', requests: 580, delayed: 0, ratio: 1.06, trips: 2.5, of: all },
  { processes: 200, limit: '20/1', requests: 390, delayed: 0, ratio: 1.1, trips: 7, of: ['gcra'] },
];

test.each(rows.flatMap((row) => row.of.map((algorithm) => ({ ...row, algorithm }))))(
  '$processes processes share $limit, $algorithm, $delayed of the calls delayed: no 429',
  async ({ limit, ratio, trips, ...job }) => {
    const [requests = 0, windowSeconds = 0] = limit.split('/').map(Number);
    const found = await playFleet({ ...job, limit: { requests, windowSeconds }, seed: 2 });
    expect(found.refused).toBe(0);
    expect(found.ratio).toBeLessThan(ratio);
    expect(found.trips).toBeLessThan(trips);
  },
);

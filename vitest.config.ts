import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Many tests wait for processes and time-outs: no core is kept back for the one that waits.
    maxWorkers: '100%',
    // Slow machines with two cores run whole first loads and child processes.
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

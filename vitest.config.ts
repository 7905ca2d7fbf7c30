import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Slow machines with two cores run whole first loads and child processes.
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

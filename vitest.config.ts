import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { playsAll } from './test/support/extent.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/temporary-folder.ts'],
    exclude: playsAll ? configDefaults.exclude : [...configDefaults.exclude, '**/*.long.test.ts'],
    // What a file changes for the whole process it puts back itself.
    isolate: false,
    // Many tests wait for processes and time-outs, the long ones most: others run meanwhile.
    maxWorkers: Math.ceil(availableParallelism() * (playsAll ? 1.5 : 1)),
    // Only what hangs for good reaches this, on a busy machine too.
    testTimeout: playsAll ? 1_800_000 : 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 280_000 } },
  },
});

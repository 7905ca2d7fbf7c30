import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Of what was committed, not of when and by whom: a commit that is moved plays the same.
process.env['SEED_BASE'] ??= `${seedOfCommit()}`;
const { drawnFiles, playsAll, playsDraw } = await import('./test/support/extent.ts');
const { slowestFiles } = await import('./test/support/run-setup.ts');

function seedOfCommit(): number {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return Number.parseInt(tree.slice(0, 7), 16);
  } catch {
    return 1;
  }
}

/** Spreads the simulations, which keep every core busy, over the tests that wait. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isBusy = ({ moduleId }: TestSpecification) => moduleId.includes('/test/simulation/');
    // It takes longest, on one core.
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.includes('/rehearsal.');
    const [all, others] = [sorted.filter(isBusy), sorted.filter((one) => !isBusy(one))];
    const busy = [...all.filter(isLongest), ...all.filter((one) => !isLongest(one))];
    if (busy.length === 0) return others;
    // The last one begins while there is still something to do beside it.
    const each = Math.floor(others.length / (busy.length + 2));
    const spread = busy.flatMap((one, at) => [one, ...others.slice(at * each, (at + 1) * each)]);
    return [...spread, ...others.slice(busy.length * each)];
  }
}

const isLong = playsAll || playsDraw;

export default defineConfig({
  test: {
    include: playsDraw ? drawnFiles() : ['test/**/*.test.ts'],
    globalSetup: ['test/support/run-setup.ts'],
    exclude: isLong ? configDefaults.exclude : [...configDefaults.exclude, '**/*.long.test.ts'],
    sequence: { sequencer: Spread },
    reporters: ['default', slowestFiles],
    // What a file changes for the whole process it puts back itself.
    isolate: false,
    // Many tests wait for processes and time-outs: others run meanwhile.
    maxWorkers: Math.ceil(availableParallelism() * 2.5),
    // Only what hangs for good reaches this, on a busy machine too.
    testTimeout: isLong ? 1_200_000 : 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 280_000 } },
  },
});

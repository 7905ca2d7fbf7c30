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

/** They keep every core busy; the rehearsals take longest, on one core. */
const busy = [/\/test\/simulation\/rehearsal\./, /\/test\/simulation\//];
/** They mostly wait, for queues and leases. */
const waiting = [/\/test\/worker\/(job-bell|command-queue|run-queue|silent-faults)\./];

/** Spreads what keeps every core busy over the other tests, and what mostly waits. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    let others = await super.sort(files);
    const taken = (names: RegExp[]) =>
      names.flatMap((name) => {
        const found = others.filter(({ moduleId }) => name.test(moduleId));
        others = others.filter((one) => !found.includes(one));
        return found;
      });
    const [first, then] = [taken(busy), taken(waiting)];
    return spread(first, spread(then, others));
  }
}

/** The first of the few begins at once, the last while there is still something to do beside it. */
function spread<T>(few: readonly T[], many: readonly T[]): T[] {
  const each = Math.floor(many.length / (few.length + 2));
  const spread = few.flatMap((one, at) => [one, ...many.slice(at * each, (at + 1) * each)]);
  return [...spread, ...many.slice(few.length * each)];
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

/** A run that a test drives step by step, until the test ends. */
import { onTestFinished } from 'vitest';
import { inRun } from '../../../src/engine/begin-run.ts';
import type { Mirror, RunOptions } from '../../../src/engine/context/mirror-context.ts';
import type { RunResults } from '../../../src/engine/context/run-results.ts';

export function beginRun(mirror: Mirror, options: RunOptions): RunResults {
  const begun: RunResults[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const run = inRun(mirror, options, async (found) => {
    begun.push(found);
    await over;
  });
  onTestFinished(async () => {
    end();
    await run;
  });
  const [found] = begun;
  if (!found) throw new Error('the run did not begin');
  return found;
}

/** Prints the ten slowest files at the end of a run of many, and what plays the same draw again. */
import type { Reporter, TestModule } from 'vitest/node';

const shown = 10;

export const slowestFiles: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    if (modules.length <= shown) return;
    const timed = modules.map((module) => ({
      name: module.relativeModuleId,
      seconds: module.diagnostic().duration / 1000,
    }));
    const slowest = timed.toSorted((a, b) => b.seconds - a.seconds).slice(0, shown);
    const lines = slowest.map(
      ({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`,
    );
    const again = `SEED_BASE=${process.env['SEED_BASE']} plays the same draw again.`;
    process.stdout.write(`\nThe slowest files:\n${lines.join('\n')}\n${again}\n`);
  },
};

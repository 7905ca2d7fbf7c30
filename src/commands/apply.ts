import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { appliedAt, markApplied, readPlan } from '../app/run/plan-file.ts';
import { pass, type PassFlags, runOptions } from '../app/run/run-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant, range } from '../compose/output/format-values.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

const oldestMs = 86_400_000;
/** The tolerated difference between the clocks of two machines. */
const aheadMs = 300_000;

export function options(command: Command): void {
  runOptions(command)
    .argument('<file>', 'what `crm-mirror plan --out` has written')
    .addHelpText(
      'after',
      '\nReads both sides again and plans again: unless the very same changes come out, nothing is\n' +
        `done (exit ${exitCode('invalid')}). A plan is applied once, to its mirror, within 24 hours. If the run\n` +
        'finds that other changes are needed, the next run makes them.',
    );
}

/** Applies a plan, provided that the same changes are still to be made. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const [file = ''] = command.args;
  const flags = command.opts<PassFlags>();
  const planned = readPlan(file);
  return pass({ ...flags, only: planned.only ?? undefined }, shell, {
    mode: planned.mode,
    because: ['plan-file'],
    writes: true,
    begins(mirror) {
      const { name, clock, snapshot } = mirror;
      const ageMs = clock.now() - Date.parse(planned.madeAt);
      const applied = appliedAt(snapshot.meta, planned.run);
      const refuse = (why: string): never => {
        throw new Invalid(`${file}: ${why}`, { fix: 'plan again' });
      };
      if (planned.mirror !== name) refuse(`this is a plan for ${planned.mirror}, not for ${name}`);
      if (ageMs > oldestMs) refuse(`this plan is ${range(ageMs)} old, and is valid for 24 hours`);
      if (ageMs < -aheadMs) refuse(`this plan is of ${planned.madeAt}, which is yet to come`);
      if (applied !== undefined)
        refuse(`this plan was applied at ${instant(applied)}, and is used up`);
    },
    agrees(now, { clock, snapshot }) {
      if (now.hash !== planned.plan) {
        throw new Invalid(
          `what there is to do has changed: it was planned as ${planned.plan}, and is ${now.hash} now`,
          { fix: 'plan again' },
        );
      }
      const at = clock.now();
      const times = { at, oldest: at - 2 * oldestMs };
      // Before anything is sent, so that after a crash the next run completes it.
      snapshot.transaction(() => markApplied(snapshot.meta, planned.run, times));
    },
  });
}

import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import type { Plan } from '../engine/report/run-summary.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { appliedAt, markApplied, type PlanFile, readPlan } from '../app/run/plan-file.ts';
import { pass, type PassFlags, runOptions } from '../app/run/run-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant, range } from '../compose/output/format-values.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

const oldestMs = 86_400_000;
/** The tolerated difference between the clocks of two machines. */
const aheadMs = 300_000;

/** Declares the flags of `apply`. */
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
    begins: (mirror) => refuseUnfit(file, planned, mirror),
    agrees: (now, mirror) => agree(planned, now, mirror),
  });
}

/**
 * Throws Invalid for a plan of another mirror, for one that is too old or dated in the future, and
 * for one that was applied before.
 */
function refuseUnfit(file: string, planned: PlanFile, { name, clock, snapshot }: Mirror): void {
  const ageMs = clock.now() - Date.parse(planned.madeAt);
  const applied = appliedAt(snapshot.meta, planned.run);
  const refuse = (why: string): never => {
    throw new Invalid(`${file}: ${why}`, { fix: 'plan again' });
  };
  if (planned.mirror !== name) refuse(`this is a plan for ${planned.mirror}, not for ${name}`);
  if (ageMs > oldestMs) refuse(`this plan is ${range(ageMs)} old, and is valid for 24 hours`);
  if (ageMs < -aheadMs) refuse(`this plan is of ${planned.madeAt}, which is yet to come`);
  if (applied !== undefined) refuse(`this plan was applied at ${instant(applied)}, and is used up`);
}

/**
 * Compares the new plan with the file, and marks it as applied before anything is sent, so that
 * after a crash the next run completes it. Throws Invalid if the changes differ.
 */
function agree({ plan, run: made }: PlanFile, now: Plan, { clock, snapshot }: Mirror): void {
  if (now.hash !== plan) {
    throw new Invalid(
      `what there is to do has changed: it was planned as ${plan}, and is ${now.hash} now`,
      { fix: 'plan again' },
    );
  }
  const at = clock.now();
  snapshot.transaction(() => markApplied(snapshot.meta, made, { at, oldest: at - 2 * oldestMs }));
}

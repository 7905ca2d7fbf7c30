import type { Command } from 'commander';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { weekMs } from '../engine/report/guard-rules.ts';
import { nothingLeft, unknownPlan } from '../engine/report/guard-text.ts';
import { guardNames, guardRows, type GuardClass } from '../domain/guard-classes.ts';
import { isAnyLeft } from '../engine/guard/plan-approval.ts';
import { heldWords } from '../cli/status/attention-list.ts';
import { change, lookOptions, type LookFlags } from '../cli/lookup/snapshot-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant } from '../cli/output/format-values.ts';

/** Declares the flags of `approve`. */
export function options(command: Command): void {
  lookOptions(command)
    .argument(
      '<hash>',
      'the plan whose changes await approval, as a run, `plan` and `status` show it',
    )
    .addHelpText(
      'after',
      '\nRuns nothing. The next runs make the approved changes that are still wanted, each once, until\n' +
        'a full run ends well, seven days at most. People who are missing from the CRM are opted\n' +
        'out and deleted by full runs only; people with a deletion flag in the CRM also by fast\n' +
        'runs, events and `one`. People who are added later still await approval.',
    );
}

/**
 * Approves what a guard still withholds under a plan. If nothing awaits approval under that hash,
 * throws Invalid with a list of the plans that do await approval.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const plan = (command.args[0] ?? '').trim().toLowerCase();
  const at = Date.now();
  return change(command.opts<LookFlags>(), shell, ({ config, snapshot }) => {
    const held = approve(snapshot, plan, at);
    if (!isAnyLeft(held)) {
      return {
        document: { mirror: config.mirror, approved: null, held, until: null },
        lines: [nothingLeft(plan)],
      };
    }
    const until = instant(at + weekMs);
    return {
      document: { mirror: config.mirror, approved: plan, held, until },
      lines: [
        `Approved: ${heldWords(held)}.`,
        `The next runs do it${doneLater(held)}. ` +
          `The approval ends when a full run has ended well, or at ${until}.`,
      ],
    };
  });
}

function approve(snapshot: Snapshot | undefined, plan: string, at: number) {
  if (!snapshot?.awaitingApproval.get(plan)) {
    throw unknownPlan(snapshot?.awaitingApproval.current() ?? [], plan);
  }
  const { awaitingApproval, transaction } = snapshot;
  const left = awaitingApproval.left(plan);
  if (isAnyLeft(left)) transaction(() => awaitingApproval.approve(plan, at));
  return left;
}

function doneLater(held: Record<GuardClass, number>): string {
  const later = guardNames.filter((guard) => held[guard] > 0);
  return later.map((guard) => guardRows[guard].words.doneLater ?? '').join('');
}

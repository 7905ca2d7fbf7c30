import type { Command } from 'commander';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { weekMs } from '../engine/report/guard-rules.ts';
import { nothingLeft, unknownPlan } from '../engine/report/guard-text.ts';
import { guardNames, guardRows, type GuardClass } from '../domain/guard-classes.ts';
import { approvePlan, type Decided, isAnyLeft } from '../engine/guard/plan-decisions.ts';
import { heldWords } from '../cli/status/attention-list.ts';
import { change, type LookFlags } from '../cli/lookup/snapshot-command.ts';
import {
  leftOutLines,
  partOptions,
  refuseForeign,
  refuseNoMatch,
  type Wanted,
  wantedOf,
} from '../cli/run/decision-options.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant } from '../cli/output/format-values.ts';

/** Declares the flags of `approve`. */
export function options(command: Command): void {
  partOptions(command)
    .option('--reason <text>', 'why; it is stored and shown, so name no address in it')
    .addHelpText(
      'after',
      '\nRuns nothing. The next runs make the approved changes that are still wanted, each once, until\n' +
        'a full run ends well, seven days at most. People who are missing from the CRM are opted\n' +
        'out and deleted by full runs only; people with a deletion flag in the CRM also by fast\n' +
        'runs, events and `one`. People who are added later still await approval.\n\n' +
        '--channel, --op, --guard and --people approve only the changes that match all of them. The\n' +
        'others still await approval under the same hash. The hash of a rejected part (see `reject`)\n' +
        'takes the rejection back.',
    );
}

/**
 * Approves what a guard still withholds under a plan, or a part of it. If nothing awaits approval
 * under that hash, throws Invalid with a list of the plans that do await approval.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const wanted = wantedOf(command, shell);
  const { plan, by, reason, calling } = wanted;
  const at = Date.now();
  return change(command.opts<LookFlags>(), calling, ({ config, snapshot }) => {
    refuseForeign(command, config);
    const decided = approve(snapshot, wanted, at);
    const { held, rest, part = null } = decided;
    if (!isAnyLeft(held)) {
      const none = { approved: null, part: null, held, rest, by: null, reason: null, until: null };
      return { document: { mirror: config.mirror, ...none }, lines: [nothingLeft(plan)] };
    }
    const until = instant(at + weekMs);
    const who = { by, reason: reason ?? null };
    return {
      document: { mirror: config.mirror, approved: plan, part, held, rest, ...who, until },
      lines: [
        `Approved: ${heldWords(held)}.`,
        `The next runs do it${doneLater(held)}. ` +
          `The approval ends when a full run has ended well, or at ${until}.`,
        ...(part === null ? [] : [`This part has the hash ${part}.`]),
        ...leftOutLines(decided, wanted),
      ],
    };
  });
}

function approve(snapshot: Snapshot | undefined, wanted: Wanted, at: number): Decided {
  const { plan, only, by, reason = null, caller } = wanted;
  if (!snapshot?.awaitingApproval.get(plan)) {
    throw unknownPlan(snapshot?.awaitingApproval.current() ?? [], plan);
  }
  const decided = approvePlan(snapshot, { plan, only, decision: { at, by, reason }, caller });
  refuseNoMatch(decided, wanted);
  return decided;
}

function doneLater(held: Record<GuardClass, number>): string {
  const later = guardNames.filter((guard) => held[guard] > 0);
  return later.map((guard) => guardRows[guard].words.doneLater ?? '').join('');
}

import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { nothingLeft, unknownPlan, rejectedForMs } from '../engine/report/guard-text.ts';
import { type Decided, isAnyLeft, rejectPlan } from '../engine/guard/plan-decisions.ts';
import type { Config } from '../config/config.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { heldWords } from '../views/status/attention-list.ts';
import { change, type LookFlags } from '../app/snapshot-command.ts';
import {
  leftOutLines,
  partOptions,
  refuseForeign,
  refuseNoMatch,
  type Wanted,
  wantedOf,
} from '../app/run/decision-options.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant } from '../compose/output/format-values.ts';
import { commandLine } from '../compose/output/printed-commands.ts';

export function options(command: Command): void {
  partOptions(command)
    .requiredOption('--reason <text>', 'why; it is stored and shown, so name no address in it')
    .addHelpText(
      'after',
      '\nThe changes are not sent and no longer await approval, as long as the CRM asks for the very\n' +
        'same change, 30 days at most; then they await approval again. If a full run finds that the\n' +
        'CRM no longer asks for a change, its rejection ends. What was approved under another hash is\n' +
        'left out; the hash of an approval also ends that approval, but a run in progress may still\n' +
        'send what was approved.\n\n' +
        'An opt-out that the CRM states cannot be rejected (exit 2): it waits for an approval, for a\n' +
        'change in the CRM, or for the end of `holdFor`.\n\n' +
        '--channel, --op, --guard and --people reject only the changes that match all of them.\n' +
        '`approve` with the hash of the rejected part, which this command and `status` print, takes it\n' +
        'back.',
    );
}

/**
 * Rejects what a guard withholds under a plan, or a part of it. Throws Invalid for an unknown plan,
 * and for opt-outs that the CRM states.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const wanted = wantedOf(command, shell);
  const { plan, by, calling } = wanted;
  const { reason } = wanted;
  if (reason === undefined) {
    throw new Invalid('--reason: it is empty', { fix: 'fill it: the decision is kept with it' });
  }
  const at = Date.now();
  return change(command.opts<LookFlags>(), calling, ({ config, snapshot }) => {
    refuseForeign(command, config);
    const decided = reject(snapshot, wanted, { at, by, reason, approvers: config.approvers });
    const { held, rest, part } = decided;
    if (part === undefined || !isAnyLeft(held)) {
      const none = { rejected: null, part: null, held, rest, by: null, reason: null, until: null };
      return { document: { mirror: config.mirror, ...none }, lines: [nothingLeft(plan, 'reject')] };
    }
    const until = instant(at + rejectedForMs);
    const about = { rejected: plan, part, held, rest, by, reason, until };
    return {
      document: { mirror: config.mirror, ...about },
      lines: [
        `Rejected: ${heldWords(held)}.`,
        `No run does it while the CRM asks for the same, until ${until} at most.`,
        `To take it back: ${commandLine(`approve ${part}`, config.file)}`,
        ...leftOutLines(decided, wanted),
      ],
    };
  });
}

type SigningConfig = Pick<Config, 'approvers'>;

function reject(
  snapshot: Snapshot | undefined,
  wanted: Wanted,
  { approvers, ...decision }: { at: number; by: string; reason: string } & SigningConfig,
): Decided {
  const { plan, only, caller } = wanted;
  if (!snapshot?.awaitingApproval.get(plan)) {
    throw unknownPlan(snapshot?.awaitingApproval.current() ?? [], plan);
  }
  const decided = rejectPlan(snapshot, { plan, only, decision, caller, approvers });
  refuseNoMatch(decided, wanted);
  return decided;
}

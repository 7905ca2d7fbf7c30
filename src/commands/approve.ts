import { type Command, Option } from 'commander';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import type { ApprovalSignature } from '../store/guards/plan-approvals.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { weekMs } from '../engine/report/guard-rules.ts';
import {
  nothingLeft,
  unknownPlan,
  needsSignature,
  sayPending,
  signing,
} from '../engine/report/guard-text.ts';
import { guardNames, guardRows } from '../domain/guard-classes.ts';
import {
  approvePlan,
  type Decided,
  isAnyLeft,
  signPlan,
  toSign,
} from '../engine/guard/plan-decisions.ts';
import { heldWords } from '../views/status/attention-list.ts';
import { change, print } from '../app/snapshot-command.ts';
import {
  decodeSignature,
  encodeSignature,
  newKey,
  signatureWith,
  type DecisionFlags,
  leftOutLines,
  partOptions,
  refuseForeign,
  refuseNoMatch,
  type Wanted,
  wantedOf,
} from '../app/run/decision-options.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant } from '../compose/output/format-values.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

export function options(command: Command): void {
  partOptions(command)
    .option('--reason <text>', 'why; it is stored and shown, so name no address in it')
    .option('--sign <keyfile>', 'sign as an approver of policy.approvers, with this private key')
    .option('--new-key <file>', 'only make a private key for --sign, and print its public key')
    .addOption(new Option('--signature <text>', 'a signature made elsewhere').hideHelp())
    .addHelpText(
      'after',
      '\nRuns nothing. The next runs make the approved changes that are still wanted, each once, until\n' +
        'a full run ends well, seven days at most. People who are missing from the CRM are opted\n' +
        'out and deleted by full runs only; people with a deletion flag in the CRM also by fast\n' +
        'runs, events and `sync --person`. People who are added later still await approval.\n\n' +
        '--channel, --op, --guard and --people approve only the changes that match all of them. The\n' +
        'others still await approval under the same hash. The hash of a rejected part (see `reject`)\n' +
        'takes the rejection back.\n\n' +
        'With policy.approvers, an approval takes effect once enough of them have signed the same\n' +
        'changes with --sign. The key stays here: a worker receives only the signature.',
    );
}

interface SigningFlags {
  newKey?: string;
  sign?: string;
  signature?: string;
}

/**
 * Approves what a guard still withholds under a plan, or a part of it. If nothing awaits approval
 * under that hash, throws Invalid with a list of the plans that do await approval.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<DecisionFlags & SigningFlags>();
  if (flags.newKey !== undefined) {
    const publicKey = newKey(flags.newKey);
    const lines = [
      `The private key is in ${flags.newKey}. Only its owner may have it.`,
      'The public key, for policy.approvers.keys:',
      publicKey,
    ];
    print({ document: { keyFile: flags.newKey, publicKey }, lines }, flags, shell);
    return exitCode('done');
  }
  const wanted = wantedOf(command, shell);
  const at = Date.now();
  const { sign: signs } = flags;
  let signature = flags.signature === undefined ? undefined : decodeSignature(flags.signature);
  if (!signature && signs !== undefined) {
    if (flags.by !== undefined) {
      throw new Invalid('--by: the key tells who signs', { fix: 'leave it out' });
    }
    signature = signatureWith(signs, loadConfig(flags.config, shell.env), wanted);
  }
  const { calling } = wanted;
  const argv = calling.argv &&
    signature && [...calling.argv, `--signature=${encodeSignature(signature)}`];
  return change(flags, argv ? { ...calling, argv } : calling, ({ config, snapshot }) => {
    refuseForeign(command, config);
    const { approvers, mirror } = config;
    const decided = approve(snapshot, wanted, { approvers, at, signature, signs });
    const { held, rest, part = null, signed } = decided;
    const signatures = signed && { by: signed.by, need: signed.need };
    const isApproved = isAnyLeft(held) && !isPending(signed);
    const approval = {
      approved: isApproved ? wanted.plan : null,
      part,
      held,
      rest,
      by: isApproved ? (signed?.by.join(', ') ?? wanted.by) : null,
      reason: isApproved ? (wanted.reason ?? null) : null,
      until: isApproved ? instant(at + weekMs) : null,
    };
    const undoes = snapshot?.awaitingApproval.get(wanted.plan)?.undoes ?? undefined;
    return {
      document: { mirror, ...approval, signatures },
      lines: linesOf(decided, wanted, { at, undoes }),
    };
  });
}

/** What was approved, or who has signed it so far. */
type Approved = Decided & {
  signed?: { by: string[]; need: number; isNew: boolean; next: string };
};

function approve(
  snapshot: Snapshot | undefined,
  wanted: Wanted,
  {
    approvers,
    at,
    signature,
    signs,
  }: {
    approvers: Config['approvers'];
    at: number;
    signature: ApprovalSignature | undefined;
    /** The key file; undefined if the caller did not ask for a signature. */
    signs: string | undefined;
  },
): Approved {
  const { plan, only, by, caller } = wanted;
  if (!snapshot?.awaitingApproval.get(plan)) {
    throw unknownPlan(snapshot?.awaitingApproval.current() ?? [], plan);
  }
  if (approvers && !signature && signs === undefined) throw needsSignature(approvers, plan);
  if (approvers && signature) {
    const {
      by: names,
      isNew,
      next,
      ...decided
    } = signPlan(snapshot, { plan, only, caller, signature }, { approvers, now: at });
    refuseNoMatch(decided, wanted);
    return { ...decided, signed: { by: names, need: approvers.need, isNew, next } };
  }
  const decision = { at, by, reason: wanted.reason ?? null };
  const decided = approvers
    ? { part: undefined, ...toSign(snapshot, { plan, only }, { approvers, now: at }).told }
    : approvePlan(snapshot, { plan, only, decision, caller });
  refuseNoMatch(decided, wanted);
  return decided;
}

function isPending(signed: Approved['signed']): boolean {
  return signed !== undefined && signed.by.length < signed.need;
}

function linesOf(
  decided: Approved,
  wanted: Wanted,
  { at, undoes }: { at: number; undoes: string | undefined },
): string[] {
  const { held, part, signed } = decided;
  const words = heldWords(held, undoes);
  if (!isAnyLeft(held)) return [nothingLeft(wanted.plan)];
  const until = instant(at + weekMs);
  const guards = guardNames.filter((guard) => held[guard] > 0);
  const later = guards.map((guard) => guardRows[guard].words.doneLater ?? '');
  const partLine = part === undefined ? [] : [`This part has the hash ${part}.`];
  const more = [...partLine, ...leftOutLines(decided, wanted)];
  if (signed && part !== undefined && isPending(signed)) {
    const again = signed.isNew ? '' : ' This approver has signed it before.';
    return [
      `Signed: ${words}.${again}`,
      `${sayPending(signed)}. Nothing is approved yet; each signature counts for seven days.`,
      `Another approver signs the same changes: \`crm-mirror ${signing(signed.next)}\``,
      ...more,
    ];
  }
  return [
    `Approved: ${words}${signed === undefined ? '' : ` (signed by ${signed.by.join(', ')})`}.`,
    undoes === undefined
      ? `The next runs do it${later.join('')}. ` +
        `The approval ends when a full run has ended well, or at ${until}.`
      : `Only \`crm-mirror undo ${undoes} --yes\` does it. The approval ends at ${until}.`,
    ...more,
  ];
}

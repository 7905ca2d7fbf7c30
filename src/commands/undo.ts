import type { Command } from 'commander';
import { by, type FlagsOf, running, writing, commandLine } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import { deferredCount } from '../domain/guards/plan-rule.ts';
import { counted } from '../domain/values/counted.ts';
import { changeCount, type Summary } from '../engine/report/run-summary.ts';
import { deciderOf } from '../app/run/decider-options.ts';
import { askAgreement } from '../app/init/talk.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { operatorName, type Shell } from '../compose/process-shell.ts';
import { pass, type Pass } from '../app/run/run-command.ts';
import { callingShell, toApprove } from './sync.ts';

const choices = ['opt_in', 'opt_out', 'create', 'update', 'archive'] as const;

export const options = {
  ...running,
  ...writing,
  '<run>': 'the id of a run, as `crm-mirror runs` lists it, or last (undos left out)',
  'op <ops>': `undo only these changes, separated by commas: ${choices.join(', ')}`,
  'dry-run': 'show what would be done and what cannot be undone, and send nothing',
  all: 'with --dry-run: name every record, not ten of each kind of change',
  yes: 'send it without asking',
  'agree <hash>': 'send it if the plan still has this hash, which --dry-run shows',
  'approve <hash>': 'approve what a guard holds of the plan with this hash, and send it',
  ...by,
  'reason <text>': 'why; the audit log keeps it, and with --approve the approval, too',
};
type Flags = FlagsOf<typeof options>;

export const help = `
Correct the export first. Reads both sides, and makes a plan of inverses, which passes the guards
like any other plan. An opt-in of that run is taken back by an opt-out. An opt-out is taken back
only where the CRM states an opt-in today, and nobody has said no since. A template returns to the
version before. What cannot be undone is listed with the reason, before anything is sent. No run
does again what was undone until the CRM states something else. An undo can be undone. See
docs/operations.md.`;

/** Undoes what an earlier run did, after agreement. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [word = ''] = command.args;
  if (flags.dryRun && (flags.by ?? flags.reason) !== undefined) {
    throw new Invalid('--by and --reason belong to a decision, and --dry-run sends nothing', {
      fix: 'leave them out',
    });
  }
  const undo = {
    run: word,
    ops: flags.op?.split(',').map((word) => {
      const op = choices.find((one) => one === word.trim());
      if (op) return op;
      throw new Invalid(`--op ${flags.op}: "${word.trim()}" is no change that can be undone`, {
        fix: `name any of these: ${choices.join(', ')}`,
      });
    }),
  };
  if (flags.dryRun && (flags.yes || flags.agree !== undefined)) {
    throw new Invalid('--dry-run sends nothing, so --yes and --agree do not belong to it', {
      fix: 'leave --dry-run out to send it',
    });
  }
  const look = { mode: 'undo', undo, writes: false } as const;
  if (flags.dryRun) return pass(flags, shell, { ...look, all: flags.all === true });
  // Who approves the plan agrees to it.
  const isAgreed = [flags.yes, flags.agree, flags.approve].some((one) => one !== undefined);
  if (isAgreed) return undoNow(flags, shell, undo);
  if (shell.canAsk !== true) {
    throw new Invalid(`undo ${word}: nothing is undone without agreement`, {
      fix: `look at it with ${commandLine(`undo ${word} --dry-run`, flags.config)}, then give --yes`,
    });
  }
  const seen: { summary?: Summary } = {};
  const code = await pass(flags, shell, {
    ...look,
    ended: ({ summary }) => void (seen.summary = summary),
  });
  const isHeld = code === exitCode('held');
  if (!seen.summary || (code !== exitCode('done') && !isHeld)) return code;
  const { plan: agree, undoes: id = word, deferred } = seen.summary;
  const changes = changeCount(seen.summary);
  if (changes === 0) return !isHeld && deferredCount(deferred) > 0 ? exitCode('busy') : code;
  const rest = isHeld ? ' What a guard holds of them is not sent until it is approved.' : '';
  const isWanted = await askAgreement(shell, {
    command: 'undo',
    question: `Send ${counted(changes, 'change')}?${rest}`,
    yes: 'The run begins.',
    no: 'Nothing was sent.',
  });
  if (!isWanted) return code;
  // A worker that has the mirror makes the same plan, or refuses.
  const [name = '', ...words] = shell.argv ?? [];
  const argv = [name, ...words.map((token) => (token === word ? id : token)), '--agree', agree];
  const calling = shell.argv ? { ...shell, argv } : shell;
  return undoNow({ ...flags, agree }, calling, { ...undo, run: id });
}

async function undoNow(
  flags: Flags,
  shell: Shell,
  undo: NonNullable<Pass['undo']>,
): Promise<number> {
  const { by, reason = null } = deciderOf(flags, shell);
  const agreed = flags.agree;
  return pass(flags, callingShell(flags, shell), {
    mode: 'undo',
    undo: { ...undo, decision: { by, reason, caller: operatorName(shell) } },
    writes: true,
    approve: flags.approve === undefined ? undefined : toApprove(flags, shell),
    ...(agreed !== undefined && {
      agrees: ({ hash }) => {
        if (hash === agreed.trim().toLowerCase()) return;
        throw new Invalid(`the plan has changed: you agreed to ${agreed}, and it is ${hash} now`, {
          fix: 'look at it again with --dry-run',
        });
      },
    }),
  });
}

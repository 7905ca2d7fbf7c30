import type { Command } from 'commander';
import { type FlagsOf, limiting, running, writing } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import type { ToApprove } from '../engine/context/mirror-context.ts';
import { loadConfig } from '../config/load-config.ts';
import { systemClock } from '../http/system-clock.ts';
import { storedFact } from '../store/database/meta-table.ts';
import { isLeased } from '../store/database/writer-lease.ts';
import { deciderOf, type DeciderFlags } from '../app/run/decider-options.ts';
import { withWords } from '../app/remote/worker-handover.ts';
import { type PlanFile, readPlan } from '../app/run/plan-file.ts';
import { pass, type Pass } from '../app/run/run-command.ts';
import { createLog, hushed } from '../app/run/run-log.ts';
import type { FullCode } from '../engine/report/run-summary.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { instant, range } from '../compose/output/format-values.ts';
import { type Shell, operatorName } from '../compose/process-shell.ts';

/** The flags of an approval in the command of a run. */
export interface ApproveFlags extends DeciderFlags {
  approve?: string | undefined;
}

/** What a run of a plan or of a person determines itself, by the names in the code. */
const whole = ['full', 'fast', 'only', 'people', 'approve', 'by', 'reason', 'acceptLostLedger'];

export const options = {
  ...running,
  ...limiting,
  ...writing,
  'person <who>': {
    text: 'only this person: an address, a CRM id, or a hash',
    conflicts: ['id', 'plan', ...whole],
  },
  'id <id>': {
    text: 'only the person of this CRM record, which is read alone',
    conflicts: ['plan', ...whole],
  },
  'plan <file>': {
    text: 'what `plan --out` has written: exactly that, once',
    conflicts: whole,
  },
  notify: 'report problems to the receivers of `notices`',
  full: 'list the platform and compare everything (the default)',
  fast: 'compare the CRM with what is recorded, list nothing',
  'approve <hash>':
    'approve what awaits approval under this plan, or what this run would submit for approval',
  'by <name>': 'with --approve: who approves (the user and host that call it)',
  'reason <text>': 'with --approve: why',
};
type Flags = FlagsOf<typeof options>;

export const help = `
--person reads the whole CRM, but only this person on the platform; --id reads that record alone,
as an event does. Both change nobody else, and no templates. A person who is not in the CRM does
not count as missing: only full runs count that. If the person is unknown, there is nothing to do:
exit ${exitCode('done')}.

--plan reads both sides again and plans again: unless the very same changes come out, nothing is
done (exit ${exitCode('invalid')}). A plan is applied once, to its mirror, within 24 hours. If the
run finds that other changes are needed, the next run makes them.`;

/** Runs once and makes the platform match the CRM, a plan of it, or one person. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const here = async (): Promise<number> => {
    const { person, id, plan } = flags;
    if (plan !== undefined) {
      const planned = readPlan(plan);
      return pass({ ...flags, only: planned.only ?? undefined }, shell, planPass(plan, planned));
    }
    if (person !== undefined || id !== undefined)
      return pass({ ...flags, only: 'contacts' }, shell, personPass(flags, shell));
    const approve = toApprove(flags, shell);
    return pass(flags, callingShell(flags, shell), { ...modeOf(flags), writes: true, approve });
  };
  return flags.notify ? notifying(flags, shell, here) : here();
}

function personPass({ person = '', id, json }: Flags, shell: Shell): Pass {
  if (id === '') throw new Invalid('--id: it is empty', { fix: 'name the id of a CRM record' });
  return {
    mode: id === undefined ? { single: person } : { record: id },
    writes: true,
    begins({ contacts, name }) {
      if (id === undefined || contacts?.source.one) return;
      throw new Invalid(`--id: the source of ${name} cannot read a single record`, {
        fix: 'name the person with --person instead: the whole source is read then',
      });
    },
    ended({ summary: { status, contacts } }) {
      if (status === 'failed' || contacts.desired + contacts.invalid > 0) return;
      const why =
        contacts.observed > 0
          ? 'The CRM does not name this person, so nothing is asked of the platform.'
          : 'Neither the CRM nor the platform knows this person: there is nothing to do.';
      if (json) shell.note(why);
      else shell.print(why);
    },
  };
}

const oldestMs = 86_400_000;
/** The tolerated difference between the clocks of two machines. */
const aheadMs = 300_000;

/**
 * When the plan of a run was applied, in milliseconds since the epoch, by the id of the run: each
 * plan is applied only once.
 */
const appliedPlans = storedFact<Record<string, number>>('applied-plans', 'the applied plans');

function planPass(file: string, planned: PlanFile): Pass {
  return {
    mode: planned.mode,
    because: ['plan-file'],
    writes: true,
    begins({ name, clock, snapshot }) {
      const ageMs = clock.now() - Date.parse(planned.madeAt);
      const applied = appliedPlans.read(snapshot.meta)?.[planned.run];
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
      // Before anything is sent, so that after a crash the next run completes it.
      snapshot.transaction(() => {
        const all = Object.entries(appliedPlans.read(snapshot.meta) ?? {});
        // Older plans cannot be applied anyway.
        const recent = all.filter(([, time]) => time >= at - 2 * oldestMs);
        appliedPlans.write(snapshot.meta, Object.fromEntries([...recent, [planned.run, at]]));
      });
    },
  };
}

/**
 * Reports what the run found, also if it failed. A worker that holds the mirror reports it itself.
 */
async function notifying(flags: Flags, shell: Shell, runs: () => Promise<number>): Promise<number> {
  const { createNotifier } = await import('../worker/notifications/notifier.ts');
  const config = loadConfig(flags.config, shell.env);
  const log = createLog(hushed(shell, flags, true), config.mirror);
  const options = { shell, noticed: log.noticed, clock: systemClock, random: Math.random };
  const notifier = createNotifier(config, options);
  if (!notifier) {
    const fix = 'add notices: { to: [ … ] }, as docs/notifications.md shows';
    throw new Invalid(`--notify: ${config.file} names no receiver`, { fix });
  }
  try {
    return await runs();
  } finally {
    if (!shell.held && !isLeased(config.snapshot)) notifier.ran();
    await notifier.close();
  }
}

/** Returns the approval that the flags ask for. Throws Invalid if they do not belong together. */
export function toApprove(flags: ApproveFlags, shell: Shell): ToApprove | undefined {
  if (flags.approve !== undefined) {
    const { by, reason = null } = deciderOf(flags, shell);
    return { plan: flags.approve.trim().toLowerCase(), by, reason, caller: operatorName(shell) };
  }
  if (flags.by === undefined && flags.reason === undefined) return undefined;
  throw new Invalid('--by and --reason belong to an approval', { fix: 'give --approve as well' });
}

/** Returns a shell that names who approves, because a worker would name its own user. */
export function callingShell(flags: ApproveFlags, shell: Shell): Shell {
  const isClear = flags.approve === undefined || flags.by !== undefined;
  return isClear ? shell : withWords(shell, `--by=${deciderOf(flags, shell).by}`);
}

/** The default is full; `because` says why it is. Throws Invalid if both flags are given. */
export function modeOf({ full, fast }: { full?: true | undefined; fast?: true | undefined }) {
  if (full && fast) throw new Invalid('--full and --fast exclude each other: give one of them');
  const because: FullCode[] = [full ? 'asked' : 'usual'];
  return { mode: fast ? ('fast' as const) : ('full' as const), because };
}

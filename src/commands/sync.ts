import {
  type Called,
  type CalledWith,
  type FlagsOf,
  limiting,
  running,
  writing,
  by,
  commandLine,
} from '../compose/command-options.ts';
import { toleratedMs } from '../domain/clock.ts';
import { Invalid } from '../domain/errors.ts';
import type { ToApprove } from '../engine/context/mirror-context.ts';
import { loadConfig } from '../config/load-config.ts';
import { systemClock } from '../http/system-clock.ts';
import { storedFact } from '../store/database/meta-table.ts';
import { isLeased } from '../store/database/writer-lease.ts';
import { deciderOf, type DeciderFlags } from '../app/run/flag-values.ts';
import { withWords } from '../app/remote/worker-handover.ts';
import { type PlanFile, readPlan, refuseOverwriting, writePlan } from '../app/run/plan-file.ts';
import { pass, type Pass, type PassFlags } from '../app/run/run-command.ts';
import { createLog, hushed } from '../app/run/run-log.ts';
import { type FullCode, changeCount, type Summary } from '../engine/report/run-summary.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { instant, range, lasting } from '../compose/output/format-values.ts';
import { type CommandModule, type Shell, operatorName } from '../compose/process-shell.ts';
import { renderForecast } from '../engine/report/duration-forecast.ts';
import { counted } from '../domain/values/counted.ts';
import { ignoredWords } from '../app/check/surroundings.ts';
import { absenceRulesOf } from '../config/config.ts';
import {
  missingOf,
  missingWords,
  optedOutAfter,
  optedOutWords,
} from '../views/lookup/missing-people.ts';
import { deferredCount } from '../domain/guards/plan-rule.ts';
import { nobodyWords } from '../views/run/run-sections.ts';

const whole = ['full', 'fast', 'only', 'people', 'approve', 'by', 'reason', 'acceptLostLedger'];

const syncOptions = {
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
  'plan <file>': { text: 'what `plan --out` has written: exactly that, once', conflicts: whole },
  notify: 'report problems to the receivers of `notices`',
  full: 'list the platform and compare everything (the default)',
  fast: 'compare the CRM with what is recorded, list nothing',
  'approve <hash>':
    'approve what awaits approval under this plan, or what this run would submit for approval',
  'by <name>': 'with --approve: who approves (the user and host that call it)',
  'reason <text>': 'with --approve: why',
};
type Flags = FlagsOf<typeof syncOptions>;

const planOptions = {
  ...running,
  ...limiting,
  fast: 'compare the CRM with what is recorded, list nothing',
  all: 'name every record, not ten of each kind of change',
  'out <file>': 'write the plan, without addresses, as JSON: for `sync --plan`',
  'exit-code': `exit ${exitCode('changes')} when there is anything to do`,
};

const undoable = ['opt_in', 'opt_out', 'create', 'update', 'archive'] as const;

const undoOptions = {
  ...running,
  ...writing,
  '<run>': 'the id of a run, as `crm-mirror runs` lists it, or last (undos left out)',
  'op <ops>': `undo only these changes, separated by commas: ${undoable.join(', ')}`,
  'dry-run': 'show what would be done and what cannot be undone, and send nothing',
  all: 'with --dry-run: name every record, not ten of each kind of change',
  yes: 'send it without asking',
  'agree <hash>': 'send it if the plan still has this hash, which --dry-run shows',
  'approve <hash>': 'approve what a guard holds of the plan with this hash, and send it',
  ...by,
  'reason <text>': 'why; the audit log keeps it, and with --approve the approval, too',
};
type UndoFlags = FlagsOf<typeof undoOptions>;

export const parts = {
  sync: {
    options: syncOptions,
    help: `
--person reads the whole CRM, but only this person on the platform; --id reads that record alone,
as an event does. Both change nobody else, and no templates. A person who is not in the CRM does
not count as missing: only full runs count that. If the person is unknown, there is nothing to do:
exit ${exitCode('done')}.

--plan reads both sides again and plans again: unless the very same changes come out, nothing is
done (exit ${exitCode('invalid')}). A plan is applied once, to its mirror, within 24 hours. If the
run finds that other changes are needed, the next run makes them.`,
    run: runSync,
  },
  plan: { options: planOptions, run: runPlan },
  backfill: {
    options: { ...running, ...limiting, ...writing },
    help: `
Stop it whenever you like: what was done is recorded, and the next call goes on from there.`,
    // Deletes nobody, and no guard withholds its creations.
    run: ({ flags }: CalledWith<PassFlags>, shell) =>
      pass(flags, shell, { mode: 'full', because: ['backfill'], writes: true, firstLoad: true }),
  },
  undo: {
    options: undoOptions,
    help: `
Correct the export first. Reads both sides, and makes a plan of inverses, which passes the guards
like any other plan. An opt-in of that run is taken back by an opt-out. An opt-out is taken back
only where the CRM states an opt-in today, and nobody has said no since. A template returns to the
version before. What cannot be undone is listed with the reason, before anything is sent. No run
does again what was undone until the CRM states something else. An undo can be undone. See
docs/operations.md.`,
    run: runUndo,
  },
} satisfies Record<string, CommandModule>;

interface ApproveFlags extends DeciderFlags {
  approve?: string | undefined;
}

async function runSync({ flags }: Called<typeof syncOptions>, shell: Shell): Promise<number> {
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
    ended({ summary }) {
      const why = nobodyWords(summary);
      if (why === undefined) return;
      if (json) shell.note(why);
      else shell.print(why);
    },
  };
}

const oldestMs = 86_400_000;

/** In milliseconds since the epoch, by the run that made the plan: each is applied only once. */
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
      if (ageMs < -toleratedMs) refuse(`this plan is of ${planned.madeAt}, which is yet to come`);
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

/** Also if the run failed. A worker that holds the mirror reports it itself. */
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

function toApprove(flags: ApproveFlags, shell: Shell): ToApprove | undefined {
  if (flags.approve !== undefined) {
    const { by, reason = null } = deciderOf(flags, shell);
    return { plan: flags.approve.trim().toLowerCase(), by, reason, caller: operatorName(shell) };
  }
  if (flags.by === undefined && flags.reason === undefined) return undefined;
  throw new Invalid('--by and --reason belong to an approval', { fix: 'give --approve as well' });
}

/** Returns a shell that names who approves, because a worker would name its own user. */
function callingShell(flags: ApproveFlags, shell: Shell): Shell {
  const isClear = flags.approve === undefined || flags.by !== undefined;
  return isClear ? shell : withWords(shell, `--by=${deciderOf(flags, shell).by}`);
}

/** The default is full; `because` says why it is. Throws Invalid if both flags are given. */
export function modeOf({ full, fast }: { full?: true | undefined; fast?: true | undefined }) {
  if (full && fast) throw new Invalid('--full and --fast exclude each other: give one of them');
  const because: FullCode[] = [full ? 'asked' : 'usual'];
  return { mode: fast ? ('fast' as const) : ('full' as const), because };
}

/** With --exit-code, the exit code is 5 if there is anything to do. */
async function runPlan({ flags }: Called<typeof planOptions>, shell: Shell): Promise<number> {
  let changes = 0;
  const { out } = flags;
  const begins = (): void => {
    if (out !== undefined) refuseOverwriting(out);
  };
  const adds: Pass['adds'] = async ({ config, mirror, summary }) => {
    const ignored = await ignoredWords(config);
    const missing = missingOf(mirror.snapshot, absenceRulesOf(config));
    const newlyMissing = summary.contacts.missing;
    const who = counted(newlyMissing, 'more person', 'more people');
    const lines = [
      ...(ignored === undefined ? [] : [ignored]),
      ...(missing ? [`missing from the CRM: ${missingWords(missing)}`] : []),
      ...(newlyMissing > 0 && summary.certificate.source === true
        ? [`${who} would be missing from the CRM: ${optedOutWords(optedOutAfter(config))}`]
        : []),
    ];
    const forecast = summary.forecast ? renderForecast(summary.forecast, lasting) : [];
    return [{ lines }, { lines: forecast }];
  };
  const ended: Pass['ended'] = ({ mirror, summary }) => {
    changes = changeCount(summary);
    if (out === undefined || summary.plan === '') return;
    writePlan(out, summary, mirror.clock.now());
    if (!flags.quiet) shell.note(`plan ${summary.plan} written to ${out}`);
  };
  const all = flags.all === true;
  const wanted = { ...modeOf(flags), writes: false, all, begins, adds, ended };
  const code = await pass(flags, shell, wanted);
  const isDone = code === exitCode('done');
  return isDone && flags.exitCode && changes > 0 ? exitCode('changes') : code;
}

async function runUndo({ flags, args: [word = ''] }: Called<typeof undoOptions>, shell: Shell) {
  if (flags.dryRun && (flags.by ?? flags.reason) !== undefined) {
    throw new Invalid('--by and --reason belong to a decision, and --dry-run sends nothing', {
      fix: 'leave them out',
    });
  }
  const undo = {
    run: word,
    ops: flags.op?.split(',').map((word) => {
      const op = undoable.find((one) => one === word.trim());
      if (op) return op;
      throw new Invalid(`--op ${flags.op}: "${word.trim()}" is no change that can be undone`, {
        fix: `name any of these: ${undoable.join(', ')}`,
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
  // The module is loaded where it is needed, because most of what it needs is for `init`.
  const { askAgreement } = await import('../app/init/talk.ts');
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

async function undoNow(flags: UndoFlags, shell: Shell, undo: NonNullable<Pass['undo']>) {
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

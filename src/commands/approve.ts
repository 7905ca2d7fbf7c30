/**
 * `approve` and `reject`, for a whole plan or a part of it. An approver signs with a key that stays
 * in this process: a worker that has the mirror receives only the signature.
 */
import { counted } from '../domain/values/counted.ts';
import { type DeciderFlags, deciderOf, readOnlyPeople } from '../app/run/flag-values.ts';
import { checkedJson } from '../domain/stored-json.ts';
import { existsSync } from 'node:fs';
import {
  type Called,
  type CalledWith,
  by,
  type FlagsOf,
  looking,
  commandLine,
} from '../compose/command-options.ts';
import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { codeOf, Invalid } from '../domain/errors.ts';
import { guardClasses } from '../domain/guard-classes.ts';
import { readSmallFile } from '../domain/values/config-file.ts';
import { createKeyFile, privateKeyIn, publicKeyOf } from '../domain/values/ed25519-key.ts';
import type { ApprovalSignature } from '../store/holds/holds.ts';
import { lookInto } from '../store/open-snapshot.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { weekMs } from '../domain/guards/guard-limits.ts';
import { needsSignature, rejectedForMs, unknownPlan } from '../engine/report/guard-text.ts';
import {
  type Decided,
  type PartFilter,
  approvePlan,
  isAnyLeft,
  isWhole,
  rejectPlan,
  signPart,
  signPlan,
  toSign,
} from '../engine/judge/plan-decisions.ts';
import { type DecisionDocument, decisionLines } from '../views/status/approval-sections.ts';
import { heldWords } from '../views/status/attention.ts';
import { change, print } from '../app/snapshot-command.ts';
import { withWords } from '../app/remote/worker-handover.ts';
import { readPlan } from '../app/run/plan-file.ts';
import { type CommandModule, type Shell, operatorName } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { instant } from '../compose/output/format-values.ts';

const ops = [...new Set(guardClasses.flatMap(({ counts }) => counts.ops))];
const guardKeys = guardClasses.map(({ configKey }) => configKey);
const partOptions = {
  ...looking,
  '[hash]': 'the plan whose changes await approval, as a run, `plan` and `status` show it',
  'plan <file>': 'instead of the hash: a file that `crm-mirror plan --out` has written',
  'channel <id,id>': 'only the changes in these channels',
  'op <op>': { text: 'only these changes', choices: ops },
  'guard <key>': { text: 'only what this guard withholds', choices: guardKeys },
  'people <file>': 'only these people: an address or CRM id on each line',
  ...by,
};
const reason = 'why; it is stored and shown, so name no address in it';
const approveOptions = {
  ...partOptions,
  'reason <text>': reason,
  'sign <keyfile>': 'sign as an approver of policy.approvers, with this private key',
  'new-key <file>': 'only make a private key for --sign, and print its public key',
  'signature <text>': { text: 'a signature made elsewhere', isHidden: true },
} as const;
const rejectOptions = {
  ...partOptions,
  'reason <text>': { text: reason, isRequired: true },
} as const;
type DecisionFlags = FlagsOf<typeof partOptions> & DeciderFlags;

export const parts = {
  approve: {
    options: approveOptions,
    help:
      'Runs nothing. The next runs make the approved changes that are still wanted, each once, until\n' +
      'a full run ends well, seven days at most. People who are missing from the CRM are opted\n' +
      'out and deleted by full runs only; people with a deletion flag in the CRM also by fast\n' +
      'runs, events and `sync --person`. People who are added later still await approval.\n\n' +
      '--channel, --op, --guard and --people approve only the changes that match all of them. The\n' +
      'others still await approval under the same hash. The hash of a rejected part (see `reject`)\n' +
      'takes the rejection back.\n\n' +
      'With policy.approvers, an approval takes effect once enough of them have signed the same\n' +
      'changes with --sign. The key stays here: a worker receives only the signature.',
    run: runApprove,
  },
  reject: {
    options: rejectOptions,
    help:
      'The changes are not sent and no longer await approval, as long as the CRM asks for the very\n' +
      'same change, 30 days at most; then they await approval again. If a full run finds that the\n' +
      'CRM no longer asks for a change, its rejection ends. What was approved under another hash is\n' +
      'left out; the hash of an approval also ends that approval, but a run in progress may still\n' +
      'send what was approved.\n\n' +
      'An opt-out that the CRM states cannot be rejected (exit 2): it waits for an approval, for a\n' +
      'change in the CRM, or for the end of `holdFor`.\n\n' +
      '--channel, --op, --guard and --people reject only the changes that match all of them.\n' +
      '`approve` with the hash of the rejected part, which this command and `status` print, takes it\n' +
      'back.',
    run: runReject,
  },
} satisfies Record<string, CommandModule>;

/** Throws Invalid, with a list of the plans that await approval, if nothing does under the hash. */
async function runApprove(called: Called<typeof approveOptions>, shell: Shell): Promise<number> {
  const { flags } = called;
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
  const wanted = wantedOf(called, shell);
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
  const handed =
    signature &&
    withWords(calling, `--signature=${Buffer.from(token.encode(signature)).toString('base64url')}`);
  return change(flags, handed ?? calling, ({ config, snapshot }) => {
    refuseForeign(wanted, called.flags, config);
    const { approvers, mirror } = config;
    const holding = holdingOf(snapshot, wanted.plan);
    if (approvers && !signature && signs === undefined)
      throw needsSignature(approvers, wanted.plan);
    const { plan, only, caller, reason = null } = wanted;
    let decided: Decided;
    let signed: ReturnType<typeof signPlan> | undefined;
    if (!approvers) {
      const decision = { at, by: wanted.by, reason };
      decided = approvePlan(holding, { plan, only, decision, caller });
    } else if (signature) {
      signed = signPlan(holding, { plan, only, caller, signature }, { approvers, now: at });
      decided = signed;
    } else {
      // Without a signature, approvers only learn what there is to sign.
      const { told } = toSign(holding, { plan, only }, { approvers, now: at });
      decided = { part: undefined, ...told };
    }
    refuseNoMatch(decided, wanted);
    const signatures = signed && approvers && { by: signed.by, need: approvers.need };
    const isEnough = !signatures || signatures.by.length >= signatures.need;
    const isApproved = isAnyLeft(decided.held) && isEnough;
    const document: DecisionDocument = {
      mirror,
      approved: isApproved ? plan : null,
      ...countsOf(decided),
      by: isApproved ? (signed?.by.join(', ') ?? wanted.by) : null,
      reason: isApproved ? reason : null,
      until: isApproved ? instant(at + weekMs) : null,
      signatures,
    };
    const undoes = holding.holds.get(plan)?.undoes ?? undefined;
    const shown = { plan, undoes, signed, peopleFile: only.people?.file };
    return { document, lines: decisionLines(document, shown) };
  });
}

function countsOf({ part, held, rest, uncreated, approved, unknown }: Decided) {
  const isAny = uncreated + approved + unknown.length > 0;
  const leftOut = { uncreated, approved, unknown };
  return { part: part ?? null, held, rest, ...(isAny && { leftOut }) };
}

/** Throws Invalid for an unknown plan, and for opt-outs that the CRM states. */
async function runReject(called: CalledWith<DecisionFlags>, shell: Shell): Promise<number> {
  const wanted = wantedOf(called, shell);
  const { plan, by, calling, reason } = wanted;
  if (reason === undefined) {
    throw new Invalid('--reason: it is empty', { fix: 'fill it: the decision is kept with it' });
  }
  const at = Date.now();
  return change(called.flags, calling, ({ config, snapshot }) => {
    refuseForeign(wanted, called.flags, config);
    const { only, caller } = wanted;
    const decision = { at, by, reason };
    const asked = { plan, only, decision, caller, approvers: config.approvers };
    const decided = rejectPlan(holdingOf(snapshot, plan), asked);
    refuseNoMatch(decided, wanted);
    const { part } = decided;
    const isRejected = part !== undefined && isAnyLeft(decided.held);
    const document: DecisionDocument = {
      mirror: config.mirror,
      rejected: isRejected ? plan : null,
      ...countsOf(decided),
      by: isRejected ? by : null,
      reason: isRejected ? reason : null,
      until: isRejected ? instant(at + rejectedForMs) : null,
    };
    const takeBack = commandLine(`approve ${part}`, config.file);
    const shown = { plan, takeBack, peopleFile: only.people?.file };
    return { document, lines: decisionLines(document, shown) };
  });
}

/** Returns the snapshot if it has the plan. Throws Invalid, with the plans that it has, if not. */
function holdingOf(snapshot: Snapshot | undefined, plan: string): Snapshot {
  if (!snapshot?.holds.get(plan)) throw unknownPlan(snapshot?.holds.current() ?? [], plan);
  return snapshot;
}

type Wanted = ReturnType<typeof wantedOf>;

/**
 * `caller` is who gave the command, whatever --by says, and `calling` the shell that hands the same
 * decision to a worker.
 */
function wantedOf({ name, flags, args: [hash] }: CalledWith<DecisionFlags>, shell: Shell) {
  if ((hash === undefined) === (flags.plan === undefined)) {
    throw new Invalid('the hash of a plan or --plan FILE is needed, and only one of them', {
      fix: '`crm-mirror status` shows the hash',
    });
  }
  const file = flags.plan === undefined ? undefined : readPlan(flags.plan);
  const plan = file ? (file.heldAs ?? file.plan) : (hash ?? '').trim().toLowerCase();
  const { by, reason } = deciderOf(flags, shell);
  const caller = operatorName(shell);
  const { json, channel, op, guard, people } = flags;
  const only: PartFilter = {
    channels: channel?.split(','),
    op,
    guard: guardClasses.find(({ configKey }) => configKey === guard)?.id,
    people: people === undefined ? undefined : readOnlyPeople(people),
  };
  // A worker that has the mirror cannot read this plan file, and would name its own user.
  const values = Object.entries({ by, reason, channel, op, guard });
  const named = values.flatMap(([option, value]) =>
    value === undefined ? [] : `--${option}=${value}`,
  );
  const files = people === undefined ? [] : ['--people', people];
  const argv = [name, plan, ...(json ? ['--json'] : []), ...named, ...files];
  const calling = shell.argv ? { ...shell, argv } : shell;
  return { plan, mirror: file?.mirror, only, by, caller, reason, calling };
}

/** Throws Invalid if a decision cannot be about this mirror: another plan file, another channel. */
function refuseForeign(
  { mirror }: Wanted,
  { plan: file, channel }: DecisionFlags,
  config: Config,
): void {
  if (mirror !== undefined && mirror !== config.mirror) {
    const reason = `${file}: this is a plan for ${mirror}, not for ${config.mirror}`;
    throw new Invalid(reason, { fix: 'name the configuration of that mirror with -c' });
  }
  const channels = config.contacts?.channels.map(({ id }) => id) ?? [];
  const unknown = channel?.split(',').find((one) => !channels.includes(one));
  if (unknown === undefined) return;
  throw new Invalid(`--channel ${unknown}: the configuration has no such channel`, {
    fix: `name one of these: ${channels.join(', ')}`,
  });
}

/** Throws Invalid if a filter matches nothing although other changes await approval. */
function refuseNoMatch({ held, rest, uncreated }: Decided, { plan, only }: Wanted): void {
  const [some, others] = [heldWords(held), heldWords(rest)];
  if (some !== '' || others === '' || isWhole(only)) return;
  if (uncreated > 0) {
    throw new Invalid(`${counted(uncreated, 'person', 'people')} must be created first`, {
      fix: 'approve the channel in which they are created, too',
    });
  }
  throw new Invalid(`no change that awaits approval under ${plan} matches these options`, {
    fix: `these wait: ${others}; \`crm-mirror status\` names them`,
  });
}

function newKey(file: string): string {
  if (existsSync(file)) {
    const fix = 'name a new file: a key is never overwritten';
    throw new Invalid(`--new-key ${file}: there is a file already`, { fix });
  }
  try {
    return publicKeyOf(createKeyFile(file));
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    throw new Invalid(`--new-key ${file}: it cannot be written (${code})`, {
      fix: 'name another file',
    });
  }
}

/** Changes nothing. Throws Invalid if the key belongs to no approver of the configuration. */
function signatureWith(file: string, config: Config, { plan, only, reason }: Wanted) {
  const { approvers } = config;
  if (!approvers) {
    throw new Invalid('--sign: the configuration names no approvers', {
      fix: 'add policy.approvers, or approve without --sign',
    });
  }
  let bytes: Buffer;
  try {
    bytes = readSmallFile(file);
  } catch {
    const fix = 'name a file of this user';
    throw new Invalid(`--sign ${file}: the file cannot be read`, { fix });
  }
  const key = privateKeyIn(bytes);
  if (!key) {
    const fix = 'name the file that `crm-mirror approve --new-key FILE` has written';
    const what = 'this is no private Ed25519 key (PEM, without a passphrase)';
    throw new Invalid(`--sign ${file}: ${what}`, { fix });
  }
  const own = publicKeyOf(key);
  const name = Object.keys(approvers.keys).find((one) => approvers.keys[one] === own);
  if (name === undefined) {
    throw new Invalid(`--sign ${file}: this key belongs to no approver of the configuration`, {
      fix: `add it to policy.approvers.keys (${own}), or name another file`,
    });
  }
  const snapshot = lookInto(config.snapshot);
  if (!snapshot) {
    throw new Invalid(`there is no snapshot at ${config.snapshot}, so nothing can be signed`, {
      fix: 'sign on a machine that has it, or can read it',
    });
  }
  try {
    holdingOf(snapshot, plan);
    const at = Date.now();
    const { made, whole, part, changes } = toSign(snapshot, { plan, only }, { approvers, now: at });
    if (made.length === 0) return undefined;
    const signing = { approvers, key, name, at, reason: reason ?? null };
    return signPart(snapshot, { whole, part, changes }, signing);
  } finally {
    snapshot.close();
  }
}

const token = checkedJson(
  'a signature',
  z.strictObject({
    name: z.string(),
    at: z.number().int(),
    reason: z.string().nullable(),
    signature: z.string(),
  }),
);

function decodeSignature(text: string): ApprovalSignature {
  try {
    return token.decode(Buffer.from(text, 'base64url').toString());
  } catch {
    throw new Invalid('--signature: this is none', { fix: 'sign with --sign KEYFILE' });
  }
}

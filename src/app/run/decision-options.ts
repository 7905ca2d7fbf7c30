/**
 * Shares the flags of the commands that decide about what awaits approval, and signs an approval
 * with the key of an approver. The key stays in this process: a worker that has the mirror receives
 * only the signature.
 */
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { guardClasses } from '../../domain/guard-classes.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  isWhole,
  type Decided,
  type PartFilter,
  toSign,
} from '../../engine/guard/plan-decisions.ts';
import { counted } from '../../domain/values/counted.ts';
import { type LookFlags, lookOptions } from '../snapshot-command.ts';
import { operatorName } from '../../compose/output/operator-name.ts';
import { heldWords } from '../../views/status/attention-list.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { type DeciderFlags, deciderOf } from './decider-options.ts';
import { readOnlyPeople } from './only-people.ts';
import { readPlan } from './plan-file.ts';
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { readSmallFile } from '../../domain/values/config-file.ts';
import { createKeyFile, privateKeyIn, publicKeyOf } from '../../domain/values/ed25519-key.ts';
import { signPart } from '../../engine/guard/signed-approvals.ts';
import { unknownPlan } from '../../engine/report/guard-text.ts';
import type { ApprovalSignature } from '../../store/guards/plan-approvals.ts';
import { lookInto } from '../../store/snapshot.ts';

/** The flags of a decision about a plan or a part of it. */
export interface DecisionFlags extends LookFlags, DeciderFlags {
  plan?: string;
  channel?: string;
  op?: string;
  guard?: string;
  people?: string;
}

/** Adds the plan, and the flags that select a part of it. */
export function partOptions(command: Command): Command {
  return lookOptions(command)
    .argument(
      '[hash]',
      'the plan whose changes await approval, as a run, `plan` and `status` show it',
    )
    .option('--plan <file>', 'instead of the hash: a file that `crm-mirror plan --out` has written')
    .option('--channel <channel-id>', 'only the changes in this channel')
    .option('--op <op>', `only these changes: ${ops.join(', ')}`)
    .option('--guard <key>', `only what this guard withholds: ${guardKeys.join(', ')}`)
    .option('--people <file>', 'only these people: an address or CRM id on each line')
    .option('--by <name>', 'who decides (the user and host that call it)');
}

const ops = [...new Set(guardClasses.flatMap(({ counts }) => counts.ops))];
const guardKeys = guardClasses.map(({ configKey }) => configKey);

/** What a command decides about. */
export type Wanted = ReturnType<typeof wantedOf>;

/**
 * Reads the arguments and flags of a decision. `caller` is the user and the host that gave the
 * command, whatever --by says, and `calling` the shell that hands the same decision to a worker.
 * Throws Invalid if they are not clear.
 */
export function wantedOf(command: Command, shell: Shell) {
  const flags = command.opts<DecisionFlags>();
  const [hash] = command.args;
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
  if (op !== undefined && !ops.some((one) => one === op)) {
    throw new Invalid(`--op ${op}: there is no such change`, {
      fix: `name one of these: ${ops.join(', ')}`,
    });
  }
  if (guard !== undefined && !guardKeys.some((one) => one === guard)) {
    throw new Invalid(`--guard ${guard}: there is no such guard`, {
      fix: `name one of these: ${guardKeys.join(', ')}`,
    });
  }
  const only: PartFilter = {
    channel,
    op,
    guard: guardClasses.find(({ configKey }) => configKey === guard)?.id,
    people: people === undefined ? undefined : readOnlyPeople(people, '--people'),
  };
  // A worker that has the mirror cannot read this plan file, and would name its own user.
  const values = Object.entries({ by, reason, channel, op, guard });
  const named = values.flatMap(([name, value]) =>
    value === undefined ? [] : `--${name}=${value}`,
  );
  const files = people === undefined ? [] : ['--people', people];
  const argv = [command.name(), plan, ...(json ? ['--json'] : []), ...named, ...files];
  return { plan, only, by, caller, reason, calling: shell.argv ? { ...shell, argv } : shell };
}

/** Throws Invalid if a decision cannot be about this mirror: another plan file, another channel. */
export function refuseForeign(command: Command, config: Config): void {
  const { plan: file, channel } = command.opts<DecisionFlags>();
  if (file !== undefined) {
    const { mirror } = readPlan(file);
    if (mirror !== config.mirror) {
      const reason = `${file}: this is a plan for ${mirror}, not for ${config.mirror}`;
      throw new Invalid(reason, { fix: 'name the configuration of that mirror with -c' });
    }
  }
  const channels = config.contacts?.channels.map(({ id }) => id) ?? [];
  if (channel === undefined || channels.includes(channel)) return;
  throw new Invalid(`--channel ${channel}: the configuration has no such channel`, {
    fix: `name one of these: ${channels.join(', ')}`,
  });
}

/** Throws Invalid if a filter matches nothing although other changes await approval. */
export function refuseNoMatch({ held, rest }: Decided, { plan, only }: Wanted): void {
  const [some, others] = [heldWords(held), heldWords(rest)];
  if (some !== '' || others === '' || isWhole(only)) return;
  throw new Invalid(`no change that awaits approval under ${plan} matches these options`, {
    fix: `these wait: ${others}; \`crm-mirror status\` names them`,
  });
}

/** Returns the lines about what a decision left out. */
export function leftOutLines(
  { rest, uncreated, approved, unknown }: Decided,
  { plan, only }: Wanted,
): string[] {
  const others = heldWords(rest);
  const lines = unknown.slice(0, mostNamed).join(', ');
  const more = unknown.length > mostNamed ? ` and ${unknown.length - mostNamed} more` : '';
  return [
    ...(others === '' ? [] : [`Still awaiting approval under the plan ${plan}: ${others}.`]),
    ...(uncreated === 0
      ? []
      : [`${counted(uncreated, 'person', 'people')} left out: approve the creation as well.`]),
    ...(approved === 0
      ? []
      : [
          `${counted(approved, 'person', 'people')} left out: approved under another hash, which ` +
            '`crm-mirror status --json` shows; reject that one to end the approval.',
        ]),
    ...(unknown.length === 0
      ? []
      : [`${only.people?.file}: nobody who waits has the address or id of line ${lines}${more}.`]),
  ];
}

const mostNamed = 20;

/** Makes a key file for an approver. Returns the public key. Throws Invalid if there is a file. */
export function newKey(file: string): string {
  if (existsSync(file)) {
    const fix = 'name a new file: a key is never overwritten';
    throw new Invalid(`--new-key ${file}: there is a file already`, { fix });
  }
  try {
    return publicKeyOf(createKeyFile(file));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const why = `it cannot be written (${String(error.code)})`;
    throw new Invalid(`--new-key ${file}: ${why}`, { fix: 'name another file' });
  }
}

/**
 * Signs what awaits approval, and changes nothing. Throws Invalid if the key belongs to no approver
 * of the configuration, or if nothing awaits approval under the hash.
 */
export function signatureWith(
  file: string,
  config: Config,
  { plan, only, reason }: Wanted,
): ApprovalSignature | undefined {
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
    if (!snapshot.awaitingApproval.get(plan))
      throw unknownPlan(snapshot.awaitingApproval.current(), plan);
    const at = Date.now();
    const { made, whole, part, changes } = toSign(snapshot, { plan, only }, { approvers, now: at });
    if (made.length === 0) return undefined;
    return signPart(
      snapshot,
      { whole, part, changes },
      { approvers, key, name, at, reason: reason ?? null },
    );
  } finally {
    snapshot.close();
  }
}

const token = z.strictObject({
  name: z.string(),
  at: z.number().int(),
  reason: z.string().nullable(),
  signature: z.string(),
});

/** Returns a signature as one word of a command line. */
export function encodeSignature(signature: ApprovalSignature): string {
  return Buffer.from(JSON.stringify(signature)).toString('base64url');
}

/** Reads what encodeSignature returns. Throws Invalid for anything else. */
export function decodeSignature(text: string): ApprovalSignature {
  try {
    return token.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw new Invalid('--signature: this is none', { fix: 'sign with --sign KEYFILE' });
  }
}

/**
 * Describes what awaits approval: why it does, how to approve it, how long a rejection lasts, how
 * signatures are asked for and counted, and why a plan cannot be approved or rejected. Says what
 * canaries are doing, what was found when one was read back, and what waits for it.
 */
import type { Fault, RecordTypeName } from '../../domain/record.ts';
import { type GuardClass, guardRows, type Limit } from '../../domain/guard-classes.ts';
import type { AskedClass } from '../../domain/guards/plan-rule.ts';
import { mostOf, type HoldReason, type ChangeVolume } from '../../domain/guards/guard-limits.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  type Canary,
  type CanaryBound,
  canaryBounds,
  type CanaryCounts,
  type CanaryPolicy,
} from '../../domain/guards/canary.ts';

interface ToExplain {
  limit: Limit;
  plan: string | undefined;
  /** Whether an approval has to be signed. */
  signs?: boolean;
  until?: number | undefined;
  /** The run that the plan undoes. */
  undoes?: string | undefined;
}

/** Explains what is held and why, the usual cause, and how to release it. */
export function explainHeld(
  held: HoldReason,
  volume: ChangeVolume,
  { limit, plan, signs = false, until, undoes }: ToExplain,
): Fault {
  const { guard, fresh } = volume;
  const { words } = guardRows[guard];
  const is = undoes === undefined ? 'would' : 'undone';
  const reason = sayHeld(guard, fresh, whyOf(held, volume, limit), { is });
  if (undoes !== undefined) {
    const how = approvingUndo({ undoes, plan, signs });
    return { reason, fix: `see \`crm-mirror undo ${undoes} --dry-run\`, and ${how}` };
  }
  const often = asks[held.by] ?? words.causes?.[held.by] ?? words.cause;
  const right =
    plan === undefined
      ? 'a run will ask for approval'
      : `and if it is right: \`crm-mirror ${approving(plan, signs)}\``;
  const anyway = until === undefined ? '' : `; ${sayEnd(until)}`;
  return { reason, fix: `${often}; see \`crm-mirror plan\`, ${right}${anyway}` };
}

/**
 * States how many records await approval, and why. `is`: in what words the change is named; `ops`:
 * the changes that there are, if they are known, because deletes are often off.
 */
export function sayHeld(
  guard: GuardClass,
  n: number,
  why: string,
  { is = 'would', ops = [] }: { is?: 'would' | 'undone'; ops?: readonly string[] } = {},
): string {
  const { recordType, words } = guardRows[guard];
  const [op = ''] = new Set(ops).size === 1 ? ops : [];
  const would = (is === 'would' && 'wouldOnly' in words && words.wouldOnly[op]) || words[is];
  return `${countWords(recordType, n)} ${would}, and this awaits approval: ${why}`;
}

/** States how a plan of `undo` is approved: no other run makes its changes. */
export function approvingUndo({
  undoes,
  plan,
  signs = false,
}: {
  undoes: string;
  plan: string | undefined;
  signs?: boolean;
}): string {
  if (plan === undefined) return `if it is right: \`crm-mirror undo ${undoes}\``;
  if (!signs) return `if it is right: \`crm-mirror undo ${undoes} --approve ${plan}\``;
  return `if it is right: \`crm-mirror ${signing(plan)}\`, then \`crm-mirror undo ${undoes} --yes\``;
}

const asks: Partial<Record<HoldReason['by'], string>> = {
  rule: 'a rule of the configuration asks',
  canary: 'a canary is out of bounds',
};

/** Returns "1 person", "12 people" or "3 templates". */
export function countWords(type: RecordTypeName, n: number): string {
  const [one, many] = type === 'contact' ? ['person', 'people'] : ['template', 'templates'];
  return counted(n, one, many);
}

/**
 * States the time from which stated opt-outs are no longer held; `until` is in milliseconds since
 * the epoch.
 */
export function sayEnd(until: number): string {
  const at = new Date(until).toISOString().replace(/\.\d+/, '');
  return `from ${at} on, what the CRM still states is applied without approval`;
}

/** States why a guard, a rule or a canary withholds changes. */
export function whyOf(held: HoldReason, volume: ChangeVolume, limit: Limit): string {
  const { of } = guardRows[volume.guard].words;
  const most = mostOf(volume, limit);
  const greater = `the greater of ${limit.floor} and ${limit.percent} % of ${volume.of} ${of}`;
  const approved = volume.all - volume.fresh;
  const others = approved > 0 ? `with ${counted(approved, 'other', 'others')} of this run ` : '';
  switch (held.by) {
    case 'earlier run':
      return `it has waited since an earlier run, and nobody has approved it${held.says === undefined ? '' : `: ${held.says}`}`;
    case 'rule':
    case 'canary':
      return held.says;
    case 'everybody':
      return 'these are all the people who are subscribed';
    case 'run':
      return `${others}more than ${most} in one run (${greater})`;
    case 'week':
      return `with ${volume.week} of the last seven days more than twice ${most} (${greater})`;
    case 'domain':
      return 'all are of one mail domain, and our people as a whole are not';
    case 'withdrawn':
      return `${withCommas(held.people)} of the ${countWords('contact', held.of)} whose opt-out the CRM stated would be opted in: is a column empty in this export?`;
    case 'swap':
      return `in this export ${withCommas(held.toYes)} people turn to yes, and ${withCommas(held.toNo)} others turn away from it: was a column shifted by a row, or sorted alone?`;
    default:
      return `${held.length} of them stand in a row by their CRM ids, just as many as a page has`;
  }
}

/** States what waits for a window: `12 people to be created or opted in wait for Thu 09:00 UTC` */
export function waitWords(of: AskedClass, n: number, until: string): string {
  const { recordType, words } = guardRows[of];
  return `${countWords(recordType, n)} ${words.planned} ${n === 1 ? 'waits' : 'wait'} for ${until}`;
}

/** The time after which a rejected change awaits approval again, in milliseconds. */
export const rejectedForMs = 30 * 86_400_000;

/** Returns the command that approves a plan; `signs`: by a signature. */
export function approving(plan: string, signs: boolean): string {
  return signs ? signing(plan) : `approve ${plan}`;
}

/** Returns the command with which an approver signs. */
export function signing(plan: string): string {
  return `approve ${plan} --sign KEYFILE`;
}

/** Formats how far an approval is: "1 of 2 approvals (ada), needs one more" */
export function sayPending({ by, need }: { by: readonly string[]; need: number }): string {
  const more = need - by.length;
  const who = by.length === 0 ? '' : ` (${by.join(', ')})`;
  return `${by.length} of ${need} approvals${who}, needs ${more === 1 ? 'one' : more} more`;
}

/** Returns the error for an approval without a signature. */
export function needsSignature({ need }: { need: number }, plan: string): Invalid {
  const many = need === 1 ? 'a signature' : `${need} signatures`;
  return new Invalid(`an approval needs ${many} (policy.approvers)`, {
    fix: `sign it: \`crm-mirror ${signing(plan)}\``,
  });
}

/** Returns the error for rejecting a plan of `undo`. */
export function undoNotRejectable(undoes: string): Invalid {
  return new Invalid(`only \`crm-mirror undo ${undoes}\` makes these changes`, {
    fix: 'nothing: if it is not called again, nothing of this is done',
  });
}

/** States that nothing of the plan is left to approve or reject. */
export function nothingLeft(
  plan: string | undefined,
  to: 'approve' | 'reject' = 'approve',
): string {
  const of = plan === undefined ? '' : ` of the plan ${plan}`;
  return `nothing${of} is left to ${to}: it was done, rejected, or is no longer wanted`;
}

/**
 * Returns the error for a plan without held changes, and names the plans that can be approved
 * instead.
 */
export function unknownPlan(
  current: readonly { plan: string }[],
  plan: string,
  own?: string,
): Invalid {
  const mine = own === undefined ? '' : `, and this run plans ${own}`;
  const reason = `no change awaits approval under ${plan}${mine}`;
  if (current.length === 0) return new Invalid(`${reason}; nothing awaits approval at all`);
  const now = current.map((one) => one.plan).join(', ');
  const fix = `approve one of these: ${now}; \`crm-mirror status\` says what they are`;
  return new Invalid(reason, { fix });
}

/** Returns the error for rejecting opt-outs that the CRM states. */
export function notRejectable(people: number): Invalid {
  const reason = `${countWords('contact', people)} to be opted out because the CRM says so cannot be rejected`;
  const fix =
    'correct the CRM, or approve them; to reject the other changes, name them with --guard, --op, ' +
    '--channel or --people';
  return new Invalid(reason, { fix });
}

const words: Record<CanaryBound, (n: number) => string> = {
  unsubscribed: (n) => `unsubscribed or ${isOrAre(n, 'was', 'were')} blocked`,
  refused: (n) => `${isOrAre(n, 'was', 'were')} refused by the platform`,
  drift: (n) => `${isOrAre(n, 'does', 'do')} not show what was written`,
};

function isOrAre(n: number, one: string, many: string): string {
  return n === 1 ? one : many;
}

/** Returns what is out of bounds, if anything. A slice with nothing left has shown nothing. */
export function judgeCanary(
  guard: AskedClass,
  found: CanaryCounts,
  { bounds, afterMs }: { bounds: CanaryPolicy['bounds']; afterMs: number },
): string | undefined {
  const isAboutPeople = guardRows[guard].recordType === 'contact';
  if (found.of === 0)
    return `${isAboutPeople ? 'nobody' : 'no template'} of the canary is left to be read back`;
  const out = canaryBounds.filter((bound) => found[bound] * 100 > bounds[bound] * found.of);
  if (out.length === 0) return undefined;
  const [one, many] = isAboutPeople ? ['person', 'people'] : ['template', 'templates'];
  const said = out.map((bound, at) => {
    const n = withCommas(found[bound]);
    const whose = at === 0 ? ` of ${counted(found.of, one, many)} of the canary` : '';
    return `${n}${whose} ${words[bound](found[bound])}`;
  });
  const minutes = Math.max(1, Math.round(afterMs / 60_000));
  const hours = Math.round(minutes / 60);
  const within = minutes < 120 ? counted(minutes, 'minute') : counted(hours, 'hour');
  return `${said.join(', ')} within ${within}`;
}

/** How a canary is shown: in `--json`, by `status` and in the console. */
export interface ToldCanary {
  class: AskedClass;
  state: Canary['state'];
  because: Canary['because'];
  /** The run that began it, and lists the slice. */
  run: string;
  /** The people or templates of the slice, and of all that were planned. */
  size: number;
  of: number;
  since: string;
  /** When the slice may be read back; null unless it waits for that. */
  readFrom: string | null;
  /** What was found out of bounds; null if nothing was. */
  found: string | null;
  /** How many of a slice that is out of bounds count for each cause; null if that is not known. */
  counts: CanaryCounts | null;
}

/** Returns a canary as programs read it. */
export function tellCanary(
  guard: AskedClass,
  canary: Canary,
  { waitMs }: { waitMs: number },
): ToldCanary {
  const { state, because, run, size, of, begunAt } = canary;
  const readFrom = state === 'waiting' ? instant(canary.since.at + waitMs) : null;
  const found = state === 'failed' ? canary.says : null;
  const counts = (state === 'failed' && canary.counts) || null;
  const since = instant(begunAt);
  return { class: guard, state, because, run, size, of, since, readFrom, found, counts };
}

function instant(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
}

const reasons: Record<Canary['because'], string> = {
  'first load': 'this is a first load',
  mapping: 'the mapping has changed',
  templates: 'many templates change',
};

export function sliceWords({
  class: of,
  ...told
}: {
  class: AskedClass;
  size: number;
  of: number;
}): string {
  const { recordType, words: about } = guardRows[of];
  return `a canary of ${countWords(recordType, told.size)} of ${withCommas(told.of)} ${about.planned}`;
}

/** States what a canary is about, and how far it is. */
export function canaryWords(told: ToldCanary): string {
  const slice = sliceWords(told);
  const why = reasons[told.because];
  switch (told.state) {
    case 'applying':
      return `${slice} is being changed, because ${why}`;
    case 'waiting':
      return `${slice} has been changed, because ${why}; it is read back from ${told.readFrom} on`;
    case 'failed':
      return `${slice} is out of bounds: ${told.found}`;
    default:
      return `${slice} was within bounds`;
  }
}

/** States how many records wait for a canary, until when, and what to do. */
export function waitingWords(
  guard: AskedClass,
  waiting: number,
  { state, size, readFrom }: ToldCanary,
): { reason: string; fix: string } {
  const { recordType, words: about } = guardRows[guard];
  const wait = waiting === 1 ? 'waits' : 'wait';
  const who = `${countWords(recordType, waiting)} ${about.planned} ${wait}`;
  const canary = `the canary of ${countWords(recordType, size)} (policy.canary)`;
  if (state === 'applying')
    return { reason: `${who} for ${canary}`, fix: 'the next run goes on with the slice' };
  const reason = `${who} for ${canary}, which is read back from ${readFrom} on`;
  return { reason, fix: 'run again then; a worker goes on by itself' };
}

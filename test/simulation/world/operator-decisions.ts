/** What an operator decides at the command line between runs; none of it sends anything. */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Invalid } from '../../../src/domain/errors.ts';
import {
  approvePlan,
  rejectPlan,
  type PartFilter,
} from '../../../src/engine/judge/plan-decisions.ts';
import { resetRecord, settleConflict } from '../../../src/engine/erasure/person-decisions.ts';
import { addressOf } from '../../support/engine/sample-people.ts';
import type { Shown } from '../checks/approvals.ts';
import { checkAudit } from '../checks/audit-checks.ts';
import { mayEnd } from '../checks/settlements.ts';
import { calm, type Decision, type Part, type Resolving } from '../story/steps.ts';
import { keyIn, wishFor } from './crm.ts';
import { peopleOf, writeDecisions } from './operator-commands.ts';
import { close, lead, listOf, open, type Ground } from './process.ts';
import { placeOf, readFiles } from './snapshot-files.ts';

const by = 'an operator';
const caller = 'operator@host';
const reason = 'the operator says so';

/** Approves or rejects the newest of what is held, or what was held before, or a part of it. */
export function decideAbout(ground: Ground, { is, which, part }: Decision): void {
  const { path, world, known, aheadMs, reached } = ground;
  if (!existsSync(path)) return;
  const held = readFiles(path).held.toReversed();
  const plans = [...new Set(held.map(({ plan }) => plan))];
  const plan = plans[which] ?? plans[0];
  if (plan === undefined) return;
  const shown = held.filter((one) => one.plan === plan);
  const at = world.clock.now() + aheadMs;
  const opened = open(ground);
  let decided: string | undefined;
  try {
    decided = decideIn(opened.snapshot, { is, plan, only: filterOf(part, ground), at });
  } finally {
    close(ground, { ...opened, killed: false });
  }
  ground.log(`         ${is}: ${plan}${decided === undefined ? ', and nothing is decided' : ''}`);
  if (decided === undefined) {
    if (shown.every(({ guard }) => guard === 'opt_out'))
      known.judge('stated opt-outs cannot be rejected', false);
    return;
  }
  known.audit.decided(is);
  reached.note('run', `something is ${is === 'approve' ? 'approved' : 'rejected'}`);
  if (part) reached.note('run', `a part is ${is === 'approve' ? 'approved' : 'rejected'}`);
  const covered = readFiles(path).held.filter((one) => one.plan === decided);
  judgeCovered(ground, covered, { is, part, shown });
  if (is === 'approve') {
    known.approvals.approve(decided, at, covered);
    const isBack = known.rejections.takeBack(covered);
    if (isBack) reached.note('run', 'a rejection is taken back');
  } else {
    known.approvals.revoke(covered);
    known.rejections.reject(covered, at);
  }
  checkAudit(path, known, false);
}

interface Deciding {
  is: Decision['is'];
  plan: string;
  only: PartFilter;
  at: number;
}

/** Answers the hash of what was decided; undefined if nothing was, or if it was refused. */
function decideIn(
  snapshot: Parameters<typeof approvePlan>[0],
  { is, plan, only, at }: Deciding,
): string | undefined {
  const asked = { plan, only, decision: { at, by, reason } };
  try {
    const { part, held } =
      is === 'approve' ? approvePlan(snapshot, asked) : rejectPlan(snapshot, asked);
    const isSome = Object.values(held).some((n) => n > 0);
    return isSome ? (part ?? plan) : undefined;
  } catch (error) {
    if (error instanceof Invalid) return undefined;
    throw error;
  }
}

function filterOf(part: Part | undefined, { world }: Ground): PartFilter {
  const { people, channel, ...rest } = part ?? {};
  const channels = channel === undefined ? undefined : [channel];
  return { ...rest, channels, people: people && listOf(people, world.story) };
}

/** What was decided was shown, and matches what the operator has named. */
function judgeCovered(
  { known: { judge }, world }: Ground,
  covered: readonly Shown[],
  { is, part, shown }: { is: Decision['is']; part: Part | undefined; shown: readonly Shown[] },
): void {
  const named = part?.people && listOf(part.people, world.story).entries.map(({ word }) => word);
  const isShown = (one: Shown): boolean =>
    shown.some(({ key, op, part: of, guard }) =>
      [key === one.key, op === one.op, of === one.part, guard === one.guard].every(Boolean),
    );
  const isNamed = (one: Shown): boolean =>
    (part?.channel === undefined || one.part === part.channel) &&
    (part?.guard === undefined || one.guard === part.guard) &&
    (named === undefined || named.includes(one.key));
  const odd = covered.find((one) => !isShown(one) || !isNamed(one));
  const wrong =
    odd && `${is} decided about ${odd.op} of ${odd.key} ${odd.part}, which nobody named`;
  judge('an operator decides only about what was chosen', wrong ?? false);
  if (is === 'approve') return;
  const stated = covered.find(({ guard }) => guard === 'opt_out');
  const refused = stated && `the opt-out of ${stated.key} in ${stated.part} was rejected`;
  judge('stated opt-outs cannot be rejected', refused ?? false);
}

/** Settles what is in dispute about a channel, if the engine accepts that. */
export async function resolveConflict(
  ground: Ground,
  { who, channel, as }: Resolving,
): Promise<void> {
  const { world, known, aheadMs, reached } = ground;
  await world.clock.advance(1000);
  const key = addressOf(who % Math.max(1, world.story.people.length));
  let refused: string | undefined;
  const { done, outing, counts } = await lead(ground, calm, {
    forgets: key,
    async work(mirror, { stop: signal, abort }) {
      const asked = {
        contacts: peopleOf(mirror),
        key,
        channel,
        as,
        by,
        caller,
        reason,
        evidence: 'a letter',
      };
      try {
        const at = await settleConflict(mirror, asked, { signal, abort });
        known.audit.decided('resolve');
        await writeDecisions(mirror);
        return { at };
      } catch (error) {
        if (error instanceof Invalid) refused = error.message;
        throw error;
      }
    },
  });
  judgeSilent(ground, counts.writes);
  ground.log(`         ${done ? 'resolved' : (refused ?? 'not to its end')}`);
  if (!done) return;
  reached.note('run', `a conflict is resolved as an opt-${as}`);
  known.rejections.drop(key);
  const records = outing.people.records.filter((record) => keyIn(record) === key);
  const ids = records.map(({ id }) => String(id));
  if (as === 'out') {
    const times = records.flatMap(({ consent_at: at }) => Date.parse(String(at)) || []);
    const by = Math.max(world.clock.now() + aheadMs, ...times);
    const all = new Set([...ids, ...known.memories.everIdsOf(key)]);
    known.settlements.out({ key, channel, ids: all, at: world.clock.monotonic(), by });
    return;
  }
  const wrong = mayEnd({ key, channel, reading: outing.people }, known);
  known.judge('an opt-in that an operator resolves was nobody’s opt-out', wrong);
  const stating = ids.filter((_, at) => {
    const [record] = records.slice(at, at + 1);
    return record && wishFor({ records: [record], certified: true }, key, channel) === 'opt_in';
  });
  known.statements.settle(key, channel, stating);
  known.undone.drop(key);
  known.settlements.in(key, channel, known.witness.present(key));
}

/** Has the next run read a person again. */
export async function resetPerson(ground: Ground, key: string): Promise<void> {
  const { world, known, path, reached } = ground;
  await world.clock.advance(1000);
  const before = keptOf(path);
  const { done, counts } = await lead(ground, calm, {
    forgets: key,
    async work(mirror) {
      const { recorded } = resetRecord(mirror, { key, by, caller, reason });
      known.audit.decided('read again');
      await writeDecisions(mirror);
      return { recorded };
    },
  });
  judgeSilent(ground, counts.writes);
  if (done?.recorded) reached.note('run', 'what is recorded of somebody is reset');
  const after = keptOf(path);
  const lost = before?.find((line) => !after?.includes(line));
  const wrong = lost !== undefined && `after a reset of ${key} this is gone: ${lost}`;
  known.judge('a reset loses no opt-out', wrong);
}

function judgeSilent({ known, found }: Ground, writes: number): void {
  const [first] = found;
  if (first) throw first;
  const wrong = writes > 0 && `${writes} requests changed something`;
  known.judge('a decision of an operator sends nothing', wrong);
}

/** Everything that protects somebody, a line each; undefined without a snapshot. */
function keptOf(path: string): string[] | undefined {
  if (!existsSync(path)) return undefined;
  return [
    ...linesOf(path, 'select kind, key, id, body from recorded'),
    ...linesOf(
      path,
      'select guard, kind, key, op, part, decision from hold where ended_at is null',
    ),
    ...linesOf(path, 'select list, hold from listed'),
    ...linesOf(path, 'select id, verdict from decision where ended_at is null'),
    ...linesOf(placeOf(path).path, 'select * from do_not_contact where ended_at is null'),
  ];
}

function linesOf(path: string, sql: string): string[] {
  const db = new Database(path, { readonly: true });
  try {
    return db
      .prepare<[], object>(sql)
      .all()
      .map((row) => JSON.stringify(row));
  } finally {
    db.close();
  }
}

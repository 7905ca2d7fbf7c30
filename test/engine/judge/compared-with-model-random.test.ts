/**
 * The judge on a real database, beside a model of lists (test/support/engine/hold-model.ts): over
 * drawn histories of plans, decisions, clocks and kills, the same changes are sent, held, rejected
 * and left to later, and the same ones wait afterwards. HOLDS_SEED repeats a failure, HOLDS_PLANS
 * plays so many plans.
 */
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { Invalid } from '../../../src/domain/errors.ts';
import { byGuard, type GuardClass } from '../../../src/domain/guard-classes.ts';
import { hoursOf } from '../../../src/domain/guards/change-window.ts';
import { askedClasses } from '../../../src/domain/guards/plan-rule.ts';
import { localTime, weekdays } from '../../../src/domain/values/local-time.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { abandonLeftovers } from '../../../src/engine/begin-run.ts';
import { beginRun } from '../../support/engine/begun-run.ts';
import { noFindings } from '../../../src/engine/context/run-results.ts';
import * as holding from '../../../src/engine/judge/holds.ts';
import { judgePlan } from '../../../src/engine/judge/judge.ts';
import {
  approvePlan,
  type PartFilter,
  rejectPlan,
} from '../../../src/engine/judge/plan-decisions.ts';
import { commitPlan } from '../../../src/engine/decide/commit-plan.ts';
import { readPlan } from '../../../src/engine/decide/plan-summary.ts';
import { migrate } from '../../../src/store/database/schema.ts';
import { statementsOf, transactionsOf } from '../../../src/store/database/prepared-statements.ts';
import { memoryWithoutFile } from '../../../src/store/memory/memory.ts';
import { partsIn, type Snapshot } from '../../../src/store/snapshot.ts';
import { stagingTables } from '../../../src/store/staging/staging-tables.ts';
import { drawWorld, nameOf } from '../../support/engine/drawn-wishes.ts';
import { hour, rule } from '../../support/engine/change-volume.ts';
import { mirrorOf } from '../../support/engine/engine-stage.ts';
import {
  createHoldModel,
  type Facts,
  type Hold,
  type Place,
} from '../../support/engine/hold-model.ts';
import { extent, seedBase } from '../../support/extent.ts';

const first = Number(process.env['HOLDS_SEED'] ?? seedBase);
const plans = Number(process.env['HOLDS_PLANS'] ?? extent(2_000, 20_000));

const db = new Database(':memory:');
migrate(db, '');
db.exec(`pragma temp_store = memory; ${stagingTables}`);
const { immediate, deferred } = transactionsOf(db);
const never = (): never => {
  throw new Error('this is not asked for');
};
const snapshot: Snapshot = {
  ...partsIn(statementsOf(db)),
  stage: (work) => (db.inTransaction ? work() : deferred(work)),
  transaction: (work) => (db.inTransaction ? work() : immediate(work)),
  fence: never,
  withdrawFence: never,
  generation: never,
  fileNumber: never,
  copy: never,
  sibling: never,
  close: never,
};
const time = { ours: 0, platforms: 0, isKnown: true };
const source = { read: never };
const { account, ...mirror } = mirrorOf({
  snapshot,
  memory: memoryWithoutFile(),
  policy: {},
  random: seeded(1),
  send: never,
  clock: { now: () => time.ours, monotonic: () => 0, sleep: async () => undefined },
  contacts: source,
  templates: source,
});
/** It is asked for nothing but its time. */
const contacts = { ...account.platform.contacts, list: async () => undefined };
const { signal } = new AbortController();
const how = {
  writes: true,
  only: undefined,
  progress: () => undefined,
  stop: signal,
  abort: signal,
};

const tables = ['hold', 'listed', 'held_plan', 'decision', 'change', 'recorded', 'stated', 'run'];
const put = db.prepare(
  `insert into recorded (kind, key, id, ownership, body, seen_at)
   values (@kind, @key, 'id ' || @key, 'created', @body, 0)`,
);
const state = db.prepare(
  `insert into stated (kind, key, id, part, says) values ('contact', ?, 'crm', ?, 'opt_out')`,
);
const setOutcome = db.prepare(
  `update change set state = @state, sent_at = @at
   where run = @id and guard = @guard and key = @key and op = @op and part = @part`,
);
const outcomes = db.prepare<[], Place & { is: string }>(
  `select guard, kind, key, op, part, iif(held, 'held', 'sent') "is" from temp.planned
   union select guard, kind, key, op, part, "is" from temp.judged where "is" <> 'passed'`,
);
const waiting = db.prepare<[isKnown: number], object>(
  `select guard, key, op, part, target, body, stated, withdraws,
     iif(?, platform_at, at) since, decision from hold where ended_at is null`,
);
const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).toSorted();

/** Plays a history of runs of one mirror. Returns how many plans were judged. */
async function live(seed: number): Promise<number> {
  for (const table of tables) db.exec(`delete from ${table}`);
  db.exec("delete from meta where name <> 'name-key'");
  const drawn = drawWorld(seeded(seed), {
    put: (row) => put.run(row),
    state: (key, part) => state.run(key, part),
  });
  const { below, oneIn, pick, people, world, wishes, record, change } = drawn;
  Object.assign(time, { ours: 1e12, platforms: 1e12, isKnown: !oneIn(3) });
  const limits = byGuard((guard) => ({
    percent: pick([0, 0, 10, 30, 100]),
    floor: pick([0, 1, 2, 3, 5, 20]),
    ...(guard === 'opt_out' && { holdForMs: 72 * hour }),
  }));
  const model = createHoldModel();
  const hashes: string[] = [];
  const ids: string[] = [];
  let isLoaded = !oneIn(4);
  if (isLoaded) snapshot.meta.set('loaded', 'before');

  /** Decides about a plan, or a part of it. */
  function decide(): void {
    const plan = hashes.at(-1 - below(3));
    if (plan === undefined) return;
    const at = time.ours;
    const whole = model.decisions.find(({ id }) => id === plan)?.plan ?? plan;
    const isCreated = ({ key }: Hold, among: readonly Hold[]) =>
      among.some((one) => one.op === 'create' && one.key === key);
    // The further channels of a new person are shown as part of the creation.
    const isFurther = (hold: Hold) =>
      hold.op === 'opt_in' &&
      isCreated(
        hold,
        model.open().filter((one) => one.plans.has(whole)),
      );
    const guard = oneIn(3) ? pick(['delete', 'opt_out', 'opt_in', 'template']) : undefined;
    const channel = oneIn(5) ? pick(['ch_news', 'ch_product']) : undefined;
    const op = oneIn(5) ? pick(['create', 'opt_in', 'opt_out', 'delete', 'update']) : undefined;
    const named = oneIn(4) ? people.filter(() => oneIn(2)) : undefined;
    const file = named && { file: '', entries: named.map((word, line) => ({ word, line })) };
    const channels = channel === undefined ? undefined : [channel];
    const only: PartFilter = { guard, channels, op, people: file };
    const asked = { plan, only, decision: { at, by: 'x', reason: null } };
    const verdict = pick(['approved', 'approved', 'rejected']);
    const isApproved = (hold: Hold) => model.isApproved(hold, at);
    const approved = model.open().filter(isApproved);
    const matching = model
      .waitingUnder(plan)
      .filter(
        (hold) =>
          (guard === undefined || hold.guard === guard) &&
          (channel === undefined || hold.part === channel) &&
          (op === undefined || (isFurther(hold) ? 'create' : hold.op) === op) &&
          (named === undefined || named.includes(hold.key)),
      );
    const chosen = matching.filter((hold) =>
      verdict === 'rejected'
        ? hold.decision?.id === plan || !isApproved(hold)
        : !isFurther(hold) || isCreated(hold, [...matching, ...approved]),
    );
    if (verdict === 'rejected' && chosen.some((hold) => hold.guard === 'opt_out')) {
      expect(() => rejectPlan(snapshot, asked)).toThrow(Invalid);
      return;
    }
    const decided = (verdict === 'approved' ? approvePlan : rejectPlan)(snapshot, asked);
    const keysOf = (of: GuardClass) =>
      chosen.filter((one) => one.guard === of).map(({ key }) => key);
    expect(decided.held).toEqual(byGuard((of) => new Set(keysOf(of)).size));
    if (chosen.length === 0) return;
    const id = decided.part ?? plan;
    const all = id === plan ? model.open().filter((one) => one.plans.has(plan)) : chosen;
    model.decide({ id, plan: whole, verdict, at }, all);
    hashes.push(id);
  }

  /** Begins a run with what is drawn of its configuration. */
  function begin(nth: number) {
    const mode = pick(['full', 'full', 'fast']);
    const firstLoad = oneIn(8);
    const closed = oneIn(4) ? askedClasses.filter(() => oneIn(2)) : [];
    const today = weekdays.indexOf(localTime(time.ours, 'UTC').weekday);
    const allow = hoursOf(`${weekdays[(today + 3) % 7]} 08:00-09:00`);
    if ('reason' in allow) throw new Error(allow.reason);
    const asks = oneIn(4) && { over: below(6), for: askedClasses.filter(() => !oneIn(3)) };
    const results = beginRun(
      {
        ...mirror,
        account: { ...account, platform: { ...account.platform, contacts } },
        guards: limits,
        platformNow: () => (time.isKnown ? time.platforms : undefined),
        windows: closed.length === 0 ? [] : [{ allow, for: closed }],
        rules: asks ? [rule(`plan.people > ${asks.over}`, asks.for)] : [],
      },
      { ...how, mode, firstLoad },
    );
    const facts: Facts = {
      ...world,
      run: nth,
      mode,
      at: time.ours,
      waitAt: time.isKnown ? time.platforms : time.ours,
      isExempt: firstLoad || !isLoaded,
      limits,
      closed: new Set(closed),
      rule: asks || undefined,
    };
    return { results, facts, firstLoad };
  }

  const runs = 2 + below(8);
  for (let nth = 0; nth < runs; nth += 1) {
    change();
    const { results, facts, firstLoad } = begin(nth);
    const { run } = results;
    const { mode } = facts;
    ids.push(run.id);
    model.endRejections(time.ours);
    await abandonLeftovers(run, results.begun);
    const store = (some: ReturnType<typeof model.findOut>): void => {
      for (const one of some) setOutcome.run({ ...one, id: ids[one.run] });
    };
    store(model.findOut(() => pick(['acked', 'stale'])));
    const rows = [...wishes.values()];
    for (const { stated, withdraws: _, ...row } of rows) {
      const says = stated && row.op === 'delete' ? ('deleted' as const) : undefined;
      snapshot.staging.addPlanned({
        ...row,
        phase: 0,
        ...(says && { why: { rule: 'deleted', before: 'none', says } }),
      });
    }
    const isRead = !oneIn(6);
    const found = {
      ...noFindings,
      whole: true,
      still: () => true,
      sizes: { ...noFindings.sizes, valid: 1, wanted: world.wanted },
      listing: mode === 'full' ? listing : undefined,
    };
    results.known = new Map([
      ['contact', { ...found, certified: isRead, absenceCounts: isRead }],
      ['template', { ...found, certified: true }],
    ]);
    results.plan = await readPlan(run);
    results.verdict = await judgePlan(results, true);
    const begun = model.inForce(time.ours);
    const judged = model.judge(rows, facts);
    const kept = judged.filter(({ is }) => is !== 'kept out');
    expect({ nth, is: sorted(outcomes.all()) }).toEqual({
      nth,
      is: sorted(
        kept.map(({ row: { guard, kind, key, op, part }, is }) => ({
          guard,
          kind,
          key,
          op,
          part,
          is,
        })),
      ),
    });

    // The process may die after each of these steps.
    const steps = oneIn(8) ? below(5) : 5;
    const isHeld = judged.some(({ is }) => is === 'held');
    if (steps > 0) {
      await holding.holdWithheld(run);
      model.hold(judged, facts.waitAt);
    }
    if (steps > 1) {
      const { heldAs = '' } = results.verdict;
      await commitPlan(run, () => holding.keepPlan(run, heldAs));
      if (isHeld) hashes.push(heldAs);
      expect(!isHeld || model.show(judged, heldAs)).toBe(true);
      const ends = ['acked', 'acked', 'acked', 'rejected', 'stale', 'unknown'] as const;
      const sent = model.send(judged, facts, () => (steps === 2 ? 'stale' : pick(ends)));
      if (steps > 2) store(sent);
      const done = sent.filter((one) => one.state === 'acked');
      for (const one of done) wishes.delete(nameOf(one));
      for (const { key } of done.filter(({ op }) => op === 'create')) record(key);
    }
    const isDeferred = (of: string) =>
      judged.some(({ row, is }) => row.kind === of && is === 'deferred');
    const whole = (['contact', 'template'] as const).filter(
      (of) => mode === 'full' && !isDeferred(of) && (of === 'template' || isRead),
    );
    const settled = whole.filter((of) => of === 'template' || !firstLoad);
    if (steps > 3) {
      expect(snapshot.transaction(() => holding.closeApprovals(results))).toEqual(settled);
      isLoaded ||= whole.includes('contact');
      if (mode === 'full') model.endApprovals(begun, settled);
    }
    if (steps > 4) {
      await holding.closeHolds(results, settled);
      model.close(judged, { facts, settled, begun, isRead });
    }
    mirror.locks.end(run.id);
    expect({ nth, waits: sorted(waiting.all(Number(time.isKnown))) }).toEqual({
      nth,
      waits: sorted(model.open().map(asStored)),
    });
    for (let times = below(3); times > 0; times -= 1) decide();
    const ms = pick([1, 6, 20, 30, 80, 200]) * hour;
    time.platforms += ms;
    time.ours += ms + (oneIn(10) ? pick([-50, 100, 800]) * hour : 0);
  }
  return runs;
}

const listing = {
  complete: true,
  size: 0,
  startedAt: 0,
  endedAt: 0,
  knownEntries: 0,
  platformStartedAt: undefined,
  organization: undefined,
};

function asStored({ guard, kind, key, op, part, target = '', ...hold }: Hold) {
  const body = kind === 'template' ? hold.body : '';
  const [stated, withdraws] = [Number(hold.stated), Number(hold.withdraws)];
  const decision = hold.decision?.id ?? null;
  return { guard, key, op, part, target, body, stated, withdraws, since: hold.since, decision };
}

test('the judge and the model send, hold and forget the same', async () => {
  let played = 0;
  for (let seed = first; played < plans; seed += 1) {
    try {
      played += await live(seed);
    } catch (error) {
      throw new Error(`HOLDS_SEED=${seed}`, { cause: error });
    }
  }
});

/**
 * Random decisions about random plans, where a guard withholds every opt-in. Nobody is opted in
 * without an approval, or against a later rejection; a stated opt-out is never late.
 */
import { expect, test } from 'vitest';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import {
  approvePlan,
  type PartFilter,
  rejectPlan,
} from '../../../src/engine/guard/plan-decisions.ts';
import { createStage, type Stage } from '../../support/engine/engine-stage.ts';
import { hour, person } from '../../support/engine/change-volume.ts';
import { extent } from '../../support/extent.ts';

const seeds = extent(12, 100);
const steps = 40;
const people = 6;
const channels = ['ch_news', 'ch_product'] as const;
const all = { percent: 100, floor: 1_000 };
const guards = { opt_in: { percent: 0, floor: 0 }, opt_out: all, delete: all };

interface Play {
  stage: Stage;
  /** Picks a number below `n`. */
  pick(n: number): number;
  /** The root plans under which a change is approved and not done; by address and channel. */
  approved: Map<string, Set<string>>;
  rejected: Set<string>;
  plans: string[];
}

const nameOf = ({ key, part }: { key: string; part: string }): string => `${key} ${part}`;

function subscribed({ emulator }: Stage): Set<string> {
  return new Set(
    emulator.world
      .contacts()
      .flatMap(({ email, channels: of }) =>
        of
          .filter(({ subscription }) => subscription === 'opt_in')
          .map(({ id }) => nameOf({ key: email, part: id })),
      ),
  );
}

function filter({ pick }: Play): PartFilter {
  const few = Array.from({ length: 1 + pick(3) }, (_, at) => ({
    line: at + 1,
    word: person(pick(people)).email,
  }));
  const filters: PartFilter[] = [
    {},
    {},
    { channel: channels[pick(2)] },
    { op: pick(2) === 0 ? 'create' : 'opt_in' },
    { people: { file: 'few.txt', entries: few } },
  ];
  return filters[pick(filters.length)] ?? {};
}

/** The plans that an operator may name: what status shows, what was shown, and rejected parts. */
function planOf({ stage, pick, plans }: Play): string {
  const { current, rejections } = stage.snapshot.awaitingApproval;
  const known = [...current(), ...current(), ...rejections()].map(({ plan }) => plan);
  return [...known, ...plans][pick(known.length + plans.length)] ?? 'none';
}

function approve(play: Play): void {
  const { awaitingApproval } = play.stage.snapshot;
  const plan = planOf(play);
  if (!awaitingApproval.get(plan)) return;
  const whole = awaitingApproval.shown(plan);
  const rejection = awaitingApproval.rejections().find((one) => one.plan === plan);
  const decision = { at: play.stage.clock.now(), by: 'anna', reason: null };
  const { part } = approvePlan(play.stage.snapshot, { plan, only: filter(play), decision });
  const done = awaitingApproval.approvals(0).find((one) => one.at === decision.at);
  if (!done) return;
  const covered = part === undefined ? whole : awaitingApproval.shown(part);
  expect(covered.filter((one) => !whole.some((other) => nameOf(other) === nameOf(one)))).toEqual(
    [],
  );
  for (const name of covered.map(nameOf)) {
    if (rejection) play.rejected.delete(name);
    const roots = play.approved.get(name) ?? new Set();
    play.approved.set(name, roots.add(done.whole ?? done.plan));
  }
}

function reject(play: Play): void {
  const { awaitingApproval } = play.stage.snapshot;
  const decision = { at: play.stage.clock.now(), by: 'anna', reason: 'no' };
  const { part } = rejectPlan(play.stage.snapshot, {
    plan: planOf(play),
    only: filter(play),
    decision,
  });
  if (part === undefined) return;
  for (const name of awaitingApproval.shown(part).map(nameOf)) {
    play.rejected.add(name);
    play.approved.delete(name);
  }
}

function change({ stage, pick }: Play): void {
  const at = pick(people);
  const [channel, wish] = [channels[pick(2)] ?? 'ch_news', ['yes', 'no', ''][pick(3)]];
  const known = stage.people[at];
  if (!known || known[channel] === wish) return;
  stage.people[at] = { ...known, [channel]: wish };
  Object.assign(stage.certificate, { reading: `at ${stage.clock.now()}` });
}

async function sync(play: Play): Promise<void> {
  const { stage, approved, rejected } = play;
  const before = subscribed(stage);
  const mode = play.pick(3) === 0 ? 'fast' : 'full';
  const { plan, reasons } = await stage.sync({ mode, only: 'contacts' });
  expect(reasons).toEqual([]);
  play.plans.push(plan);
  const after = subscribed(stage);
  for (const name of after) {
    if (before.has(name)) continue;
    expect([name, approved.has(name), rejected.has(name)]).toEqual([name, true, false]);
    approved.delete(name);
  }
  for (const record of stage.people) {
    for (const part of channels) {
      const name = nameOf({ key: String(record['email']), part });
      if (record[part] === 'no') expect([name, after.has(name)]).toEqual([name, false]);
    }
  }
  if (mode === 'fast') return;
  approved.clear();
  const { awaitingApproval } = stage.snapshot;
  const open = awaitingApproval.rejections().flatMap((one) => awaitingApproval.shown(one.plan));
  const names = new Set(open.map(nameOf));
  for (const name of rejected) if (!names.has(name)) rejected.delete(name);
}

test.each(Array.from({ length: seeds }, (_, seed) => seed))(
  'seed %i opts in nobody without an approval, or against a rejection',
  async (seed) => {
    const random = seeded(seed);
    const stage = createStage({ guards, seed });
    const play: Play = {
      stage,
      pick: (n) => Math.floor(random() * n),
      approved: new Map(),
      rejected: new Set(),
      plans: [],
    };
    const wishes = () => Object.fromEntries(channels.map((one) => [one, 'no']));
    stage.people.push(...Array.from({ length: people }, (_, at) => person(at, wishes())));
    await stage.sync({ only: 'contacts' });
    for (let step = 0; step < steps; step += 1) {
      const act = [change, change, change, approve, approve, reject][play.pick(8)];
      if (act) act(play);
      else await sync(play);
      await stage.clock.advance(play.pick(20) * 60_000 + 1);
      if (play.pick(60) === 0) await stage.clock.advance(8 * 24 * hour);
    }
    stage.close();
  },
);

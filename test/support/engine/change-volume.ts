import { expect } from 'vitest';
import { compileRule } from '../../../src/config/schema/rule-condition.ts';
import type { AskedClass, PlanRule } from '../../../src/domain/guards/plan-rule.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage, type StageOptions } from './engine-stage.ts';
import type { CanaryPolicy } from '../../../src/domain/guards/canary.ts';
import {
  approvePlan,
  type PartFilter,
  rejectPlan,
} from '../../../src/engine/judge/plan-decisions.ts';
import { storedCanaries } from '../../../src/engine/judge/canaries.ts';

// A mirror whose guards hold changes of more than three people.

export const hour = 3_600_000;
const guards = { delete: { percent: 0, floor: 3 }, opt_in: { percent: 0, floor: 3 } };

export const person = (at: number, more: Record<string, unknown> = {}) => ({
  id: `${1000 + at}`,
  email: `p${at}@${at % 2 === 0 ? 'example' : 'example2'}.com`,
  ch_news: 'yes',
  ...more,
});
export const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => person(from + at));

/** Nobody is there yet, and three of a class pass. */
export function staged(options: StageOptions = {}): Stage {
  return openStage({ guards, policy: { deletes: 'owned' }, ...options });
}

/** Creates twenty people in a first run, which no guard holds. */
export async function mirrored(options: StageOptions = {}): Promise<Stage> {
  const stage = staged(options);
  stage.people.push(...range(0, 20));
  expect((await stage.sync()).contacts.applied).toMatchObject({ create: 20 });
  stage.writes();
  return stage;
}

/** The CRM's next export. */
export function exportOf(stage: Stage, people: Record<string, unknown>[]): void {
  stage.people.splice(0, stage.people.length, ...people);
  Object.assign(stage.certificate, { reading: `at ${stage.clock.now()}` });
}

/** Two exports, twenty hours apart, of these people alone; the second is not read yet. */
export async function leave(stage: Stage, people: Record<string, unknown>[]): Promise<void> {
  exportOf(stage, people);
  await stage.sync();
  await stage.clock.advance(21 * hour);
  exportOf(stage, people);
}

export const flag = (at: number) => person(at, { deleted: 'true' });
export const deletes = (stage: Stage) =>
  stage.writes().filter(({ method }) => method === 'DELETE').length;
export const approve = (stage: Stage, plan: string, only: PartFilter = {}) =>
  approvePlan(stage.snapshot, { plan, only, decision: decision(stage) });
export const reject = (stage: Stage, plan: string) =>
  rejectPlan(stage.snapshot, { plan, only: {}, decision: decision(stage) });
const decision = (stage: Stage) => ({ at: stage.clock.now(), by: 'anna', reason: 'looked' });
/** What a run is told that approves a plan. */
export const approving = (plan: string) => ({ plan, by: 'anna', reason: null });

/** A wire on which a process dies: once told `after` how many deletes, with the next. */
export function mortal() {
  const dying: { after?: number } = {};
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      if (request.method === 'DELETE' && dying.after !== undefined && dying.after-- <= 0) {
        throw new Error('killed');
      }
      return send(request, signal);
    };
  return { dying, wire };
}

/** A rule of the configuration that asks about these classes; all of them by default. */
export function rule(text: string, classes?: AskedClass[], say?: string): PlanRule {
  const when = compileRule(text);
  if (!('judge' in when)) throw new Error(when.reason);
  // oxlint-disable-next-line unicorn/no-thenable
  return { when, then: 'ask', for: classes, say };
}

// A mirror with a canary, and one that is under way.

export const policy: CanaryPolicy = {
  percent: 10,
  floor: 5,
  waitMs: 30 * 60_000,
  bounds: { unsubscribed: 20, refused: 20, drift: 20 },
};
export const minute = 60_000;

/** A mirror of twenty people with a canary from then on. */
export async function watchedCanary(more: StageOptions = {}) {
  const options: StageOptions = { policy: { deletes: 'owned', absent: 'opt_out' }, ...more };
  const stage = openStage(options);
  stage.people.push(...range(0, 20));
  await stage.sync();
  await stage.sync();
  stage.writes();
  Object.assign(options, { canary: policy });
  return { stage, options };
}

/** The same, with thirty new people by a new mapping, five of whom are in. */
export async function begun(more: StageOptions = {}) {
  const found = await watchedCanary(more);
  Object.assign(found.options, { manner: 'new' });
  exportOf(found.stage, range(0, 50));
  const run = await found.stage.sync();
  return { ...found, run };
}

/** The stored canary of a class. */
export const canaryOf = (stage: Stage, of: 'opt_in' | 'delete' | 'template' = 'opt_in') =>
  storedCanaries(stage.snapshot.meta)?.classes[of];
/** The people of the slice, as the platform shows them. */
export const created = (stage: Stage) => stage.emulator.world.contacts().slice(0, -20);

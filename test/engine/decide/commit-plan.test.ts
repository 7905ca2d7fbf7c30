/** What was decided of very many is written part by part; of few, in one go. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { Random } from '../../../src/domain/clock.ts';
import type { ListRemark } from '../../../src/domain/do-not-contact.ts';
import type { RecordedRow } from '../../../src/domain/record.ts';
import { memoryWithoutFile } from '../../../src/store/memory/memory.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import { abandonLeftovers } from '../../../src/engine/begin-run.ts';
import { createPersonLocks, type PersonLocks } from '../../../src/engine/context/person-locks.ts';
import { commitPlan } from '../../../src/engine/decide/commit-plan.ts';
import type { RunContext } from '../../../src/engine/context/run-context.ts';
import { beginRun } from '../../support/engine/begun-run.ts';
import { mirrorOf, openStage, type Stage } from '../../support/engine/engine-stage.ts';
import { quickClock } from '../../support/engine/engine-world.ts';

const all = 12_000;
const keys = Array.from({ length: all }, (_, nth) => `${String(nth).padStart(5, '0')}@example.com`);
const killed = new Error('killed');

let snapshot: Snapshot;
let beside: PersonLocks;
let random: Random;

beforeEach(() => {
  snapshot = openSnapshot('', { inMemory: true });
  beside = createPersonLocks();
  random = seeded(1);
  const { close } = snapshot;
  onTestFinished(() => close());
});

/** A run whose turns are told of, by their number. */
function runOf(turn: (nth: number) => void = () => undefined): RunContext {
  const { signal } = new AbortController();
  const never = () => Promise.reject(killed);
  const source = { describe: 'a CRM', read: never, name: 'crm' };
  const mirror = mirrorOf({
    send: never,
    snapshot,
    memory: memoryWithoutFile(),
    clock: quickClock(),
    random,
    policy: {},
    contacts: source as never,
    templates: source as never,
    beside,
  });
  const options = { mode: 'full', writes: true, only: 'contacts', stop: signal } as const;
  const { run } = beginRun(mirror, { ...options, abort: signal, progress: () => undefined });
  let nth = 0;
  const sleep = async () => turn((nth += 1));
  return { ...run, clock: { ...run.clock, sleep } };
}

const row = (key: string): RecordedRow => ({
  kind: 'contact',
  key,
  id: `of ${key}`,
  ownership: 'adopted',
  body: '{}',
  shown: 'shown',
  desired: undefined,
  seenAt: 1,
});

/** Stages the same decision for everybody: adopted, and to be opted in. */
function decideAll(isAlone: (key: string) => boolean = () => true): void {
  const { stage, staging } = snapshot;
  const change = { kind: 'contact', op: 'opt_in', part: 'ch_news', body: '{}', phase: 1 } as const;
  stage(() => {
    for (const key of keys) {
      staging.addNoted({ ...row(key), alone: isAlone(key) });
      staging.addPlanned({ ...change, key, target: undefined, guard: undefined });
    }
  });
}

const planned = (run: RunContext): string[] => [
  ...snapshot.journal
    .plannedNext({ run: run.id, kind: 'contact', phase: 1, after: '', count: all })
    .keys(),
];
const recorded = (): string[] =>
  [...snapshot.recordHistory.records('contact')].map(({ key }) => key);

describe('very many decisions', () => {
  test('are written in chunks of a few thousand', async () => {
    const sizes: number[] = [];
    const run = runOf(() => sizes.push(recorded().length + planned(run).length));
    decideAll();
    await commitPlan(run);
    sizes.push(recorded().length + planned(run).length);
    expect(planned(run)).toEqual(keys);
    expect(recorded()).toEqual(keys);
    const steps = sizes.map((size, nth) => size - (sizes[nth - 1] ?? 0));
    expect(Math.max(...steps)).toBeLessThanOrEqual(10_000);
    expect(sizes.at(-1)).toBe(2 * all);
  });

  test('leave whole records after a crash, and none of a person with another address', async () => {
    const run = runOf((nth) => {
      if (nth === 6) throw killed;
    });
    snapshot.transaction(() => snapshot.recorded.put(row('old@example.com')));
    decideAll((key) => key !== keys[7]);
    snapshot.staging.addForgotten('contact', 'old@example.com');
    await expect(commitPlan(run)).rejects.toBe(killed);
    const has = recorded();
    expect(has).toContain('old@example.com');
    expect(has).not.toContain(keys[7]);
    expect(has.length).toBeGreaterThan(4_000);
    expect(has.length).toBeLessThan(all);
    beside.end(run.id);
    const next = runOf();
    await abandonLeftovers(next, next);
    expect(planned(run)).toEqual([]);
    decideAll();
    snapshot.staging.addForgotten('contact', 'old@example.com');
    await commitPlan(next);
    expect(recorded()).toEqual(keys);
    expect(planned(next)).toEqual(keys);
  });

  test.each([1, 4, 6])('leave out a person taken by another run before chunk %i', async (at) => {
    const last = keys.at(-1) ?? '';
    const run = runOf((nth) => {
      if (nth === at) void beside.take({ keys: [last], ids: [] });
    });
    decideAll();
    await commitPlan(run);
    expect(planned(run)).not.toContain(last);
    expect(recorded()).not.toContain(last);
    expect(recorded()).toHaveLength(all - 1);
  });
});

describe('alone, without the rest of a chunk, is recorded', () => {
  /** Lists the people who were recorded, and whether each was recorded alone. */
  async function noted(happens: (stage: Stage, id: string) => void): Promise<[string, boolean][]> {
    const stage = openStage();
    stage.emulator.dashboard.signUp({ email: 'ann@example.com', channels: ['ch_news'] });
    stage.people.push({ id: '1', email: 'ann@example.com', ch_news: 'yes' });
    const add = vi.spyOn(stage.snapshot.staging, 'addNoted');
    await stage.sync();
    const [ann] = stage.emulator.world.contacts();
    expect(add.mock.lastCall).toMatchObject([{ alone: true }]);
    add.mockClear();
    happens(stage, ann?.id ?? '');
    await stage.sync();
    return add.mock.calls.map(([{ key, alone }]) => [key, alone]);
  }

  test('a person with an opt-out of their own', async () => {
    const calls = await noted(({ emulator }, id) => emulator.dashboard.leave(id, 'ch_news'));
    expect(calls).toEqual([['ann@example.com', true]]);
  });

  test('no person with a changed address, and no person who lost it', async () => {
    const calls = await noted(({ emulator, people }, id) => {
      emulator.dashboard.editContact(id, { email: 'new@example.com' });
      people[0] = { id: '1', email: 'new@example.com', ch_news: 'yes' };
    });
    expect(calls).toEqual([
      ['ann@example.com', false],
      ['new@example.com', false],
    ]);
  });

  test('no person whose contact vanished and may be another one now', async () => {
    const calls = await noted(({ emulator }, id) => emulator.dashboard.deleteContact(id));
    expect(calls).toEqual([['ann@example.com', false]]);
  });
});

test('few decisions are written in one transaction with all that belongs to them', async () => {
  const seen: number[] = [];
  const run = runOf(() => seen.push(recorded().length));
  snapshot.staging.addNoted({ ...row('a@example.com'), alone: true });
  snapshot.staging.addNoted({ ...row('b@example.com'), alone: false });
  await commitPlan(run, () => seen.push(-1));
  expect(seen).toEqual([0, 0, 0, -1]);
  expect(recorded()).toEqual(['a@example.com', 'b@example.com']);
});

test('the do-not-contact list is written first, in chunks', async () => {
  const told: number[] = [];
  const run = runOf(() => told.push(recorded().length));
  const remark = (key: string): ListRemark => ({ key, ids: [], adds: [], ends: [] });
  const adds = [{ part: '*', cause: 'blocked', contact: 'x', after: null, by: 1 }] as const;
  for (const key of keys.slice(0, 1_200)) snapshot.listNews.add({ ...remark(key), adds });
  snapshot.staging.addNoted({ ...row('a@example.com'), alone: true });
  await commitPlan(run);
  const known = keys
    .slice(0, 1_300)
    .map((key) => run.doNotContact.concerning({ key, ids: [] }).length);
  expect(known).toEqual(keys.slice(0, 1_300).map((_, nth) => (nth < 1_200 ? 1 : 0)));
  expect(told).toEqual([0, 0, 0, 0, 0, 0]);
  expect(recorded()).toEqual(['a@example.com']);
});

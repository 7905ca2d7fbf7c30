/** When runs of a schedule count as overdue, by a clock that a test moves. */
import { expect, test } from 'vitest';
import type { Tick } from '../../src/config/schema/cron-pattern.ts';
import type { OutageNotes } from '../../src/store/health-file.ts';
import { watchOverdue } from '../../src/worker/mirror-schedule.ts';

/** A worker that is given full runs each hour, and others each minute, if the test gives them. */
function stage(before?: string) {
  const time = { ms: Date.UTC(2026, 0, 1, 12) };
  const halted = { is: false };
  let told = before;
  const everyMinute = '* * * * *';
  const patterns = {
    full: '0 * * * *',
    fast: everyMinute,
    templates: undefined,
    sentinel: everyMinute,
  };
  const outages: OutageNotes = {
    failed: (_, { reason }) => void (told = reason),
    works: () => void (told = undefined),
  };
  const watch = watchOverdue(
    { patterns, timezone: 'UTC' },
    outages,
    () => time.ms,
    () => halted.is,
  );
  let end: 'over' | 'elsewhere' = 'over';
  let done = Promise.resolve();
  const run = watch.watched(async () => {
    await done;
    return end;
  });
  const make = async (ticks: readonly Tick[], as: typeof end = 'over'): Promise<void> => {
    end = as;
    done = Promise.resolve();
    for (const tick of ticks) await run(tick, time.ms);
  };
  return {
    halted,
    make,
    told: () => told,
    /** A run goes on until the returned function is called. */
    async begin(tick: Tick) {
      const { promise, resolve } = Promise.withResolvers<void>();
      done = promise;
      const ended = run(tick, time.ms);
      return async (): Promise<void> => {
        resolve();
        await ended;
      };
    },
    /** Looks each ten seconds, and gives these runs each minute. */
    async pass(minutes: number, ticks: readonly Tick[] = [], as: typeof end = 'over') {
      for (let nth = 1; nth <= minutes * 6; nth += 1) {
        time.ms += 10_000;
        if (nth % 6 === 0) await make(ticks, as);
        watch.look();
      }
    },
    set: (ms: number) => void (time.ms += ms),
  };
}

test('runs that are given are not overdue, and those that are kept are, after a minute', async () => {
  const { pass, told } = stage();
  await pass(5, ['fast', 'sentinel']);
  expect(told()).toBeUndefined();
  await pass(1, ['sentinel']);
  expect(told()).toBeUndefined();
  await pass(2, ['sentinel']);
  expect(told()).toBe('fast was due at 2026-01-01T12:06:00Z');
  await pass(1, ['fast', 'sentinel']);
  expect(told()).toBeUndefined();
});

test('a full run that is kept is overdue beside fast runs that are made', async () => {
  const { pass, told } = stage();
  await pass(61, ['fast', 'sentinel']);
  expect(told()).toBeUndefined();
  await pass(1, ['fast', 'sentinel']);
  expect(told()).toBe('full was due at 2026-01-01T13:00:00Z');
});

test('a run that is offered and cannot be made here stays overdue', async () => {
  const { pass, told } = stage();
  await pass(3, ['fast', 'sentinel'], 'elsewhere');
  expect(told()).toContain('fast was due at 2026-01-01T12:01:00Z');
});

test('no run is overdue during another one, but an unsubscribe check is', async () => {
  const { begin, pass, told } = stage();
  const end = await begin('full');
  await pass(10, ['sentinel']);
  expect(told()).toBeUndefined();
  await pass(3);
  expect(told()).toBe('unsubscribe check was due at 2026-01-01T12:11:00Z');
  await end();
});

test('nothing is overdue while the mirror is paused', async () => {
  const { halted, pass, told } = stage();
  halted.is = true;
  await pass(10);
  expect(told()).toBeUndefined();
});

test('after Redis was away, runs have a minute, and a time far ahead is none any more', async () => {
  const { pass, set, told } = stage();
  set(86_400_000);
  await pass(1);
  expect(told()).toBeUndefined();
  await pass(1, ['full', 'fast', 'sentinel']);
  set(-86_400_000);
  await pass(3);
  expect(told()).toContain('fast was due at 2026-01-01T12:03:00Z');
});

test('a worker that has just begun does not take an earlier outage for over', async () => {
  const { make, pass, told } = stage('full was due');
  await pass(1);
  expect(told()).toBe('full was due');
  await make(['fast', 'sentinel']);
  await pass(1);
  expect(told()).toBeUndefined();
});

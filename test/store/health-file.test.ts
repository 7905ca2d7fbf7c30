/** Outages of a mirror: when they begin, what ends them, and the sign of life of a worker. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readHealth, recordOutages } from '../../src/store/health-file.ts';
import { scratchFolder } from '../support/waiting.ts';

const why = { reason: 'it is away', fix: 'wait' };

function world() {
  const folder = scratchFolder();
  const path = join(folder, 'snapshot.sqlite');
  const time = { ms: 1_000_000 };
  const clock = { now: () => time.ms };
  const record = recordOutages(path, clock.now);
  const parts = () => record.outages().map(({ part }) => part);
  return { path, time, clock, record, parts };
}

test('a failure becomes an outage once it lasts, with the time of the first failure', () => {
  const { path, time, record, parts } = world();
  record.failed('platform', why, 'maybe');
  expect(parts()).toEqual([]);
  time.ms += 6_000;
  record.failed('platform', why, 'maybe');
  const outage = { part: 'platform', since: 1_000_000, seenAt: 1_006_000, ...why };
  expect(record.outages()).toMatchObject([outage]);
  expect(readHealth(path).outages).toMatchObject([outage]);
});

test('a success in between ends a failure that did not last', () => {
  const { time, record, parts } = world();
  record.failed('platform', why, 'maybe');
  record.works('platform');
  time.ms += 6_000;
  record.failed('platform', why, 'maybe');
  expect(parts()).toEqual([]);
});

test('a run that fails makes what failed in it an outage at once', () => {
  const { record, parts } = world();
  record.failed('platform', why, 'maybe');
  record.confirm();
  expect(parts()).toEqual(['platform']);
});

test.each([
  ['the part itself', 'surely', 'contacts', false, []],
  ['another part', 'surely', 'templates', false, ['contacts']],
  ['a probe, of what the work found', 'surely', 'contacts', true, ['contacts']],
  ['the part itself, of what a probe found', 'probe', 'contacts', false, []],
  ['a probe, of what a probe found', 'probe', 'contacts', true, []],
] as const)('an outage ends by %s as the table says', (_, found, part, isProbe, left) => {
  const { time, record, parts } = world();
  record.failed('contacts', why, found);
  time.ms += 6_000;
  record.failed('contacts', why, found);
  expect(parts()).toEqual(['contacts']);
  record.works(part, isProbe);
  expect(parts()).toEqual(left);
});

test('an outage survives its process, and ends in the next one', () => {
  const { path, clock, record } = world();
  record.failed('key', why, 'surely');
  const next = recordOutages(path, clock.now);
  expect(next.outages()).toMatchObject([{ part: 'key', since: 1_000_000 }]);
  next.works('key');
  expect(readHealth(path).outages).toMatchObject([{ part: 'key', endedAt: 1_000_000 }]);
});

test('a worker shows that it lives, since when, and that it left', () => {
  const { path, time, record } = world();
  expect(readHealth(path).worker).toBeNull();
  record.beat();
  time.ms += 10_000;
  record.beat();
  expect(readHealth(path).worker).toEqual({ since: 1_000_000, seenAt: 1_010_000 });
  record.leave();
  expect(readHealth(path).worker).toMatchObject({ endedAt: 1_010_000 });
  time.ms += 60_000;
  record.beat();
  expect(readHealth(path).worker).toEqual({ since: 1_070_000, seenAt: 1_070_000 });
});

test('what cannot be written is known to the process all the same', () => {
  const { time } = world();
  const record = recordOutages('/nowhere/at-all/snapshot.sqlite', () => time.ms);
  record.failed('disk', why, 'surely');
  record.beat();
  expect(record.outages()).toMatchObject([{ part: 'disk' }]);
});

test('tells at once that an outage has begun, and that it has ended', () => {
  const { record } = world();
  let heard = 0;
  record.listen(() => (heard += 1));
  record.failed('redis', why, 'surely');
  record.failed('redis', why, 'surely');
  record.works('redis');
  record.works('redis');
  expect(heard).toBe(2);
});

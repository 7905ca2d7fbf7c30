/** A record that the CRM says it has erased, in one process: who is forgotten, and who is not. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Request, Send } from '../../../src/domain/exchange.ts';
import type { Erased } from '../../../src/engine/erasure/privacy-deletions.ts';
import { unfinishedIn } from '../../../src/engine/erasure/pending/unfinished-erasures.ts';
import {
  type Stage,
  type StageOptions,
  alone,
  ann,
  failing,
  record,
  stageOf,
  wish,
} from '../../support/engine/engine-stage.ts';
import { playsAll } from '../../support/extent.ts';
import { scratchFolder } from '../../support/waiting.ts';

const dayMs = 86_400_000;

function open(options: StageOptions = {}): Stage {
  const stage = stageOf(options);
  onTestFinished(() => stage.close());
  return stage;
}

/** Removes a record from the CRM and sends the event; returns the outcome of each address. */
async function erase(stage: Stage, id: string): Promise<string[]> {
  drop(stage, id);
  await stage.clock.advance(1_000);
  return said(await stage.clock.run(stage.erase(id)));
}

const said = ({ people, rest }: Erased): string[] => [...people.map(({ is }) => is), rest];

function drop(stage: Stage, id: string): void {
  stage.people.splice(0, Infinity, ...stage.people.filter((one) => one['id'] !== id));
}

const has = (stage: Stage, email: string) => stage.emulator.world.contact(email) !== undefined;

test('an erasure reads the CRM by every known id, and the list knows the person by them', async () => {
  const stage = open();
  stage.people.push(record('3', ann));
  await stage.sync();
  drop(stage, '3');
  stage.asked.length = 0;
  expect(await erase(stage, '1')).toEqual(['forgotten', 'nothing']);
  expect(stage.asked).toEqual(['one 1', 'one 3']);
  // Under another address one of these ids is nobody new.
  stage.people.push(record('3', 'anna@example.com'));
  await stage.sync();
  expect([has(stage, ann), has(stage, 'anna@example.com')]).toEqual([false, false]);
  expect(await erase(stage, '1')).toEqual(['nothing']);
});

test('an event about a record that still exists is processed like any other', async () => {
  const stage = open();
  await stage.sync();
  expect(said(await stage.clock.run(stage.erase('1')))).toEqual(['event']);
  expect(has(stage, ann)).toBe(true);
  Object.assign(stage.people[0] ?? {}, { deleted: 'yes' });
  expect(said(await stage.clock.run(stage.erase('1')))).toEqual(['forgotten', 'nothing']);
  expect(has(stage, ann)).toBe(false);
});

test.each([
  ['with the address', ann],
  ['with an unreadable address', 'nobody'],
])('a living record %s keeps the person from being erased', async (_, email) => {
  const stage = open();
  stage.people.push(record('3', ann));
  await stage.sync();
  Object.assign(stage.people[2] ?? {}, { email });
  expect(await erase(stage, '1')).toEqual(['shared', 'event']);
  expect(has(stage, ann)).toBe(true);
  expect(unfinishedIn(stage.snapshot)).toEqual([]);
});

test('a record with another address by now is another person', async () => {
  const stage = open();
  stage.people.push(record('3', ann));
  await stage.sync();
  Object.assign(stage.people[2] ?? {}, { email: 'anna@example.com' });
  expect(await erase(stage, '1')).toEqual(['forgotten', 'nothing']);
  await alone(stage, '3');
  expect([has(stage, ann), has(stage, 'anna@example.com')]).toEqual([false, true]);
});

test('an event about an unknown record is done with after `allow` has read the CRM', async () => {
  const stage = open({ path: join(scratchFolder(), 'snapshot.sqlite') });
  await stage.sync();
  await stage.clock.run(stage.allow(ann));
  expect(await erase(stage, '9')).toEqual(['nothing']);
});

test('every address of the record is forgotten', async () => {
  const stage = open({ policy: { absent: 'keep' } });
  await stage.sync();
  Object.assign(stage.people[0] ?? {}, { email: 'anna@example.com' });
  await stage.sync();
  expect([has(stage, ann), has(stage, 'anna@example.com')]).toEqual([true, true]);
  expect(await erase(stage, '1')).toEqual(['forgotten', 'forgotten', 'nothing']);
  expect([has(stage, ann), has(stage, 'anna@example.com')]).toEqual([false, false]);
});

test.each([
  ['that has created the person lets them be forgotten once it has ended', 'POST'],
  ['that has read the person does not create them any more', 'GET'],
])('a run about everybody %s', async (_, method) => {
  let told: Promise<Erased> | undefined;
  const wire = (send: Send) => async (request: Request, signal?: AbortSignal) => {
    const isDue = request.method === method && (method === 'GET' || named(request));
    if (isDue && !told) {
      drop(stage, '1');
      told = stage.erase('1');
    }
    return send(request, signal);
  };
  const named = (request: Request) => JSON.stringify(request.body).includes(ann);
  const stage = open({ wire });
  await stage.sync();
  expect(told && said(await told)).toEqual(['again']);
  expect(has(stage, ann)).toBe(method === 'POST');
  expect(await erase(stage, '1')).toEqual(['forgotten', 'nothing']);
  expect([has(stage, ann), has(stage, 'bob@example.com')]).toEqual([false, true]);
});

test('the guard allows as many erasures a day as deletes a run, and twice that in a week', async () => {
  const stage = open({
    guards: { delete: { percent: 0, floor: 2 }, opt_in: { percent: 0, floor: 100 } },
  });
  const ids = Array.from({ length: 9 }, (_, at) => `1${at}`);
  for (const id of ids) stage.people.push(record(id, `p${id}@example.com`));
  await stage.sync();
  const next = async () => (await erase(stage, ids.shift() ?? ''))[0];
  expect([await next(), await next(), await next()]).toEqual(['forgotten', 'forgotten', 'held']);
  await stage.clock.advance(dayMs);
  expect([await next(), await next(), await next()]).toEqual(['forgotten', 'forgotten', 'held']);
  await stage.clock.advance(dayMs);
  expect(await next()).toBe('held');
  // Told of again when there is room, it is done.
  await stage.clock.advance(5 * dayMs);
  expect(await erase(stage, '12')).toEqual(['forgotten', 'nothing']);
  expect(unfinishedIn(stage.snapshot)).toMatchObject([
    { told: '15', held: true },
    { told: '16', held: true },
  ]);
  expect(has(stage, 'p15@example.com')).toBe(true);
});

test.runIf(playsAll)('a file that somebody reads is rewritten on a later attempt', async () => {
  const path = join(scratchFolder(), 'snapshot.sqlite');
  const stage = open({ path });
  await stage.sync();
  const reader = new Database(path, { readonly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from recorded').get();
  expect(await erase(stage, '1')).toEqual(['failed', 'again']);
  expect(has(stage, ann)).toBe(false);
  expect(unfinishedIn(stage.snapshot)).toMatchObject([{ told: '1', key: ann }]);
  reader.close();
  expect(await erase(stage, '1')).toEqual(['forgotten', 'nothing']);
  expect(unfinishedIn(stage.snapshot)).toEqual([]);
});

test('an erasure waits until a request that a killed run has sent can no longer arrive', async () => {
  const { state, wire } = failing();
  const stage = open({ wire });
  await stage.sync();
  state.how = 'breaks';
  wish(stage, '1', 'no');
  await expect(stage.sync()).rejects.toThrow('a bug');
  state.how = 'well';
  const before = stage.clock.now();
  expect(await erase(stage, '1')).toEqual(['forgotten', 'nothing']);
  expect(stage.clock.now() - before).toBeGreaterThanOrEqual(10_000);
});

test('an erasure whose file another process reads is begun again by its address', async () => {
  const path = join(scratchFolder(), 'snapshot.sqlite');
  const stage = open({ path });
  await stage.sync();
  const reader = new Database(path, { readonly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from recorded').get();
  expect(await erase(stage, '1')).toEqual(['failed', 'again']);
  expect(unfinishedIn(stage.snapshot)).toMatchObject([{ key: ann }]);
  reader.close();
  expect(said(await stage.clock.run(stage.erase('1')))).toEqual(['forgotten', 'nothing']);
  expect(unfinishedIn(stage.snapshot)).toEqual([]);
});

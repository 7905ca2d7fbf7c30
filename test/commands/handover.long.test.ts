/** Commands that are called beside a worker, with real processes on a real Redis. */
import { describe, expect, test } from 'vitest';
import { readFileSync, writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { createMemoryKey } from '../../src/store/memory/memory-key.ts';
import { callOf, withoutConfig } from '../../src/app/remote/worker-handover.ts';
import { sharedRedis } from '../support/redis.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { start } from '../support/worker/fleet.ts';
import { shellThat } from '../support/commands/mirrored-contacts.ts';
import { untilHolds } from '../support/waiting.ts';

const redis = await sharedRedis();

/** A worker that has nothing due, and a CRM. */
async function served(more: Record<string, unknown> = {}) {
  const world = await createWorld({ kinds: ['contact'] });
  const schedule = { full: '0 0 1 1 *' };
  const file = world.config({ redis: redis.url, schedule, timeoutMs: 5_000, ...more });
  world.people(['ann', 'bob'].map((name) => ({ email: `${name}@example.com`, news: 'yes' })));
  const worker = start(file);
  await worker.said('worker serves');
  const stop = async (): Promise<void> => expect(await worker.ends()).toBe(143);
  const call = async (...argv: string[]) => {
    const { code, stdout: out, stderr: err } = await launch(argv).ended;
    return { code, out, err };
  };
  return { ...world, file, worker, stop, call };
}

/** Everything that is said to Redis from now on. */
async function overheard(): Promise<{ said: string[]; end(): void }> {
  const said: string[] = [];
  const client = new Redis(redis.url);
  const listener = await client.monitor();
  client.disconnect();
  listener.on('monitor', (_: string, words: string[]) => said.push(words.join(' ')));
  return { said, end: () => listener.disconnect() };
}

test('the worker runs a command for its caller, who reads the output', async () => {
  const { said, end } = await overheard();
  const { file, stop, shown, call } = await served();
  const sync = await call('sync', '-c', file, '--json');
  expect(sync).toMatchObject({ code: 0 });
  expect(sync.err).toContain('the worker that has world runs this command');
  expect(JSON.parse(sync.out)).toMatchObject({
    status: 'done',
    mode: 'full',
    contacts: { applied: { create: 2 } },
  });
  expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
  // The log of the worker's requests is read while the worker has it open.
  const logged = async () => {
    const { out } = await call(
      'audit',
      'requests',
      '-c',
      file,
      '--json',
      '--person',
      'ann@example.com',
    );
    return JSON.parse(out).requests;
  };
  await untilHolds(async () => expect(await logged()).toHaveLength(1));
  expect(await logged()).toMatchObject([{ run: JSON.parse(sync.out).run, status: 201 }]);
  const forgotten = await call('forget', 'ann@example.com', '--yes', '-c', file);
  expect(forgotten.code).toBe(0);
  expect(shown('ann@example.com')).toBeUndefined();
  expect(await logged()).toEqual([]);
  expect(await call('sync', '--person', 'ann@example.com', `--config=${file}`)).toMatchObject({
    code: 0,
  });
  expect(shown('ann@example.com')).toBeUndefined();
  expect(await call('allow', 'ann@example.com', '-c', file)).toMatchObject({ code: 2 });
  expect(await call('retry', '-c', file)).toMatchObject({ code: 0 });
  expect((await call('approve', 'beef', '-c', file)).err).toContain('the worker that has');
  const plan = `${file}.plan.json`;
  expect(await call('plan', '-c', file, '--out', plan)).toMatchObject({ code: 0 });
  expect(await call('sync', '--plan', plan, '-c', file)).toMatchObject({ code: 0 });
  expect((await call('sync', '--plan', plan, '-c', file)).err).toContain('used up');
  // Nobody's address was ever in Redis.
  expect(said.length).toBeGreaterThan(100);
  expect(said.filter((words) => words.includes('example.com'))).toEqual([]);
  end();
  await stop();
  // Without a worker it is done here.
  expect((await call('sync', '-c', file)).err).not.toContain('the worker that has');
});

test('the caller runs its command itself if the worker was killed', async () => {
  const { file, worker, shown, call } = await served();
  worker.kill('SIGKILL');
  const sync = await call('sync', '-c', file);
  expect(sync).toMatchObject({ code: 0, err: expect.stringContaining('the command runs here') });
  expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
});

test('the worker decides about a part of a plan, as the caller names it', async () => {
  const { said, end } = await overheard();
  const { file, people, stop, call } = await served({
    guards: { optIns: { percent: 0, floor: 1 } },
  });
  expect(await call('sync', '-c', file)).toMatchObject({ code: 0 });
  const names = ['ann', 'bob', 'eve', 'kim', 'lea'];
  people(names.map((name) => ({ email: `${name}@example.com`, news: 'yes' })));
  expect(await call('sync', '-c', file)).toMatchObject({ code: 3 });
  const plan = `${file}.plan.json`;
  await call('plan', '-c', file, '--out', plan);
  const few = `${file}.txt`;
  writeFileSync(few, 'eve@example.com\n');
  const approved = await call('approve', '--plan', plan, '--people', few, '-c', file, '--json');
  expect(approved.err).toContain('the worker that has world runs this command');
  expect(JSON.parse(approved.out)).toMatchObject({ held: { opt_in: 1 }, rest: { opt_in: 2 } });
  const why = ['--reason', '- a test -', '--by', 'Anna'];
  const rejected = await call('reject', '--plan', plan, ...why, '-c', file, '--json');
  expect(JSON.parse(rejected.out)).toMatchObject({ held: { opt_in: 2 }, by: 'Anna' });
  const synced = await call('sync', '-c', file, '--json');
  expect(JSON.parse(synced.out)).toMatchObject({ contacts: { applied: { create: 1 } } });
  expect(said.filter((words) => words.includes('example.com'))).toEqual([]);
  end();
  await stop();
});

test('commands against a paused mirror are refused, from any caller', async () => {
  const { file, stop, call } = await served();
  expect(await call('pause', '-c', file)).toMatchObject({ code: 0 });
  for (const argv of [['sync'], ['forget', 'ann@example.com', '--yes']]) {
    const { code, err } = await call(...argv, '-c', file);
    expect({ code, err }).toEqual({ code: 75, err: expect.stringContaining('world is paused') });
  }
  await stop();
});

test('a command with the key of another memory is refused', async () => {
  const { file, stop, call } = await served();
  const elsewhere = `${file}.yaml`;
  createMemoryKey(`${file}.key`, 'other');
  const lines = readFileSync(file, 'utf8').replace('{', `{"memoryKeyFile": "${file}.key", `);
  writeFileSync(elsewhere, lines);
  const { code, err } = await call('sync', '-c', elsewhere);
  expect({
    code,
    said: err.includes('encrypted with the key of another memory'),
  }).toEqual({
    code: 2,
    said: true,
  });
  expect(err).not.toContain('bug');
  await stop();
});

test('the output has colours where the output of the caller has them', async () => {
  const { file, stop, call } = await served();
  expect((await call('sync', '-c', file)).out).not.toContain('\u001B[');
  expect((await launch(['sync', '-c', file], { FORCE_COLOR: '1' }).ended).stdout).toContain(
    '\u001B[',
  );
  await stop();
});

test('the file of a plan is found in any folder', () => {
  const shell = shellThat({});
  const file = import.meta.filename;
  expect(
    callOf(shell, ['sync', '--json', '-c', 'a.yaml', `--plan=${file}`, '--strict']),
  ).toMatchObject({
    argv: ['sync', '--json', '--plan', file, '--strict'],
    files: [{ at: 3, text: readFileSync(file, 'utf8') }],
  });
});

describe('the worker receives the whole command line except the configuration', () => {
  test.each([
    [
      ['sync', '-c', 'a.yaml', '--json'],
      ['sync', '--json'],
    ],
    [['-c=a', 'one'], ['one']],
    [
      ['one', '--config', 'a', 'x@y.z'],
      ['one', 'x@y.z'],
    ],
    [
      ['one', '--config=a', '--', '-c', 'x'],
      ['one', '--', '-c', 'x'],
    ],
    [
      ['sync', '--only', 'contacts', '-ca.yaml'],
      ['sync', '--only', 'contacts'],
    ],
  ])('%j', (argv, left) => expect(withoutConfig(argv)).toEqual(left));
});

/** Moves of mirrors between workers with local disks: real processes on a real Redis. */
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { createMemoryKey } from '../../src/store/memory/memory-key.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import {
  askToMove,
  followMove,
  movedWords,
  planMove,
} from '../../src/worker/moves/request-move.ts';
import { moveStore } from '../../src/compose/placement/move-store.ts';
import { openEventQueue } from '../../src/compose/queues/event-queue.ts';
import { serve } from '../support/http/test-server.ts';
import { sharedRedis } from '../support/redis.ts';
import { until, twoMachines } from '../support/worker/fleet.ts';

const redis = await sharedRedis();

/** A mirror on the first machine, whose key the second one has, too. */
async function stage() {
  const staged = await twoMachines({ redis: redis.url, mirrors: ['acme'] });
  const { start, stateOf, homeOf, worlds } = staged;
  const world = worlds.get('acme');
  if (!world) throw new Error('the mirror has a world');
  const file = (machine: 'one' | 'two', end: string) => join(stateOf(machine), `acme.${end}`);
  const one = await start('one');
  await until(async () => (await homeOf('acme')) === one.node);
  await until(() => world.shown('ann@acme.example')?.['ch_news'] === 'opt_in');
  const two = await start('two');
  return {
    ...staged,
    world,
    one,
    two,
    file,
    copyKey(): void {
      mkdirSync(stateOf('two'), { recursive: true });
      copyFileSync(file('one', 'key'), file('two', 'key'));
    },
    isServedBy: async (node: string) => until(async () => (await homeOf('acme')) === node),
    /** What is there of the mirror on a machine, without locks and logs. */
    left: (machine: 'one' | 'two') =>
      readdirSync(stateOf(machine)).filter((name) =>
        /^acme\.sqlite(?!\.requests).*(?<!-lease|-wal|-shm|-journal)$/.test(name),
      ),
  };
}

test('a mirror moves with its do-not-contact list and its audit log, and goes on there', async () => {
  const staged = await stage();
  const { one, two, fleet, world, file, left, isServedBy, copyKey } = staged;
  copyKey();
  const moved = await fleet('move', 'acme', '--to', two.node, '--json');
  expect({ code: moved.code, err: moved.stderr }).toMatchObject({ code: 0 });
  const told = JSON.parse(moved.stdout);
  expect(told).toMatchObject({ mirror: 'acme', from: one.node, to: two.node, people: 1 });
  await isServedBy(two.node);
  await until(() => left('one').every((name) => name.includes('.moved-to-')));
  expect(left('two')).toEqual(['acme.sqlite', 'acme.sqlite-memory']);
  expect(existsSync(file('one', 'sqlite'))).toBe(false);
  world.people([
    { email: 'ann@acme.example', news: 'yes' },
    { email: 'bob@acme.example', news: 'yes' },
  ]);
  await until(() => world.shown('bob@acme.example')?.['ch_news'] === 'opt_in');
  // Back again, where the old files are under other names.
  const back = await fleet('move', 'acme', '--to', one.node);
  expect(back.stdout).toContain('2 people and');
  await isServedBy(one.node);
  expect((await fleet('move', 'acme', '--to', one.node)).stdout).toContain('is on');
});

test('an event that arrives during a move is applied after it, once', async () => {
  const people = new Map<string, object>();
  const crm = await serve(({ url = '' }, response) => {
    const found = people.get(/\/people\/(\w+)/.exec(url)?.[1] ?? '');
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  const source = { type: 'http', url: `${crm}/people`, one: `${crm}/people/{id}` };
  const channels = [{ id: 'ch_news', subscription: 'news' }];
  const webhook = { format: 'standard', secret: 'whsec_c2VjcmV0IHNlY3JldA==' };
  const contacts = { source, id: 'id', email: 'email', channels, webhook };
  const place = { url: redis.url, mirror: 'acme', clock: systemClock, notice: () => undefined };
  const queue = openEventQueue(place);
  onTestFinished(async () => queue.close());
  const tell = async (): Promise<void> => {
    const id = `p${people.size}`;
    people.set(id, { id, email: `${id}@acme.example`, news: 'yes' });
    await queue.add([id]);
  };
  const { start, homeOf, worlds, stateOf, fleet } = await twoMachines({
    redis: redis.url,
    mirrors: ['acme'],
    lines: { schedule: {}, contacts },
  });
  const world = worlds.get('acme');
  const one = await start('one');
  await until(async () => (await homeOf('acme')) === one.node);
  await tell();
  const isDone = () => [...people.keys()].every((id) => world?.shown(`${id}@acme.example`));
  await until(isDone);
  const two = await start('two');
  mkdirSync(stateOf('two'), { recursive: true });
  copyFileSync(join(stateOf('one'), 'acme.key'), join(stateOf('two'), 'acme.key'));
  for (const to of [two.node, one.node]) {
    const moving = new AbortController();
    const moved = fleet('move', 'acme', '--to', to).finally(() => moving.abort());
    while (!moving.signal.aborted) {
      await tell();
      await pause(100);
    }
    expect(await moved).toMatchObject({ code: 0 });
    await until(async () => (await homeOf('acme')) === to);
    await tell();
    await until(isDone);
  }
  const created = world?.writes().flatMap(({ body, status }) => (status < 300 ? body.email : []));
  expect(created?.toSorted()).toEqual(
    [...people.keys()].map((id) => `${id}@acme.example`).toSorted(),
  );
});

/** A mirror in the middle of a move: the target stands still, and not everything is sent. */
async function inTheMiddle() {
  const staged = await stage();
  const { one, two, file, copyKey, look, fleet, quick } = staged;
  copyKey();
  const snapshot = new Database(file('one', 'sqlite'));
  snapshot.exec('create table filler (bytes blob)');
  snapshot.prepare('insert into filler values (?)').run(randomBytes(32 * 1024 * 1024));
  snapshot.close();
  const command = fleet('move', 'acme', '--to', two.node);
  // Before the target takes the first part. A worker that is stopped for fifteen seconds counts as
  // dead.
  await until(async () => {
    const { state } = (await look()).moves.get('acme') ?? {};
    return state === 'leaving' || state === 'sending';
  });
  two.kill('SIGSTOP');
  let parts = '';
  await until(async () => {
    const { id } = (await look()).moves.get('acme') ?? {};
    parts = `crm-mirror:move:${id}:parts`;
    return (await quick.redis.hlen(parts)) === 8;
  });
  expect(await quick.redis.memory('USAGE', parts)).toBeLessThan(4 * 1024 * 1024);
  return { ...staged, command, parts, one, two };
}

test('a damaged part ends the move where it began, and the mirror can be moved again', async () => {
  const { command, parts, quick, one, two, left, isServedBy, fleet } = await inTheMiddle();
  const [part = ''] = (await quick.redis.hkeys(parts)).toSorted((a, b) => Number(b) - Number(a));
  const sealed = await quick.redis.hgetBuffer(parts, part);
  sealed?.writeUInt8(sealed.readUInt8(100) ^ 1, 100);
  await quick.redis.hset(parts, part, sealed ?? '');
  two.kill('SIGCONT');
  const { code, stderr } = await command;
  expect({ code, said: stderr.includes(`part ${part} of acme was damaged on its way`) }).toEqual({
    code: 1,
    said: true,
  });
  await isServedBy(one.node);
  expect([left('two'), left('one').includes('acme.sqlite')]).toEqual([[], true]);
  expect(await quick.redis.keys('crm-mirror:move:*:parts')).toEqual([]);
  expect((await fleet('move', 'acme', '--to', two.node)).code).toBe(0);
  await isServedBy(two.node);
});

test('after the source was killed in the middle, the mirror is served by its next worker', async () => {
  const { command, one, two, left, isServedBy, start } = await inTheMiddle();
  one.kill('SIGKILL');
  two.kill('SIGCONT');
  const again = await start('one');
  expect((await command).stderr).toContain(`${one.node} is gone`);
  await isServedBy(again.node);
  await until(() => left('two').length === 0);
  expect(left('one').filter((name) => name.includes('mov'))).toEqual([]);
});

test('after the target was killed in the middle, the source goes on; nothing stays there', async () => {
  const { command, one, two, left, isServedBy, start, world } = await inTheMiddle();
  // The source stands still meanwhile, so that the move cannot end.
  one.kill('SIGSTOP');
  two.kill('SIGCONT');
  await until(() => left('two').length > 0);
  two.kill('SIGKILL');
  one.kill('SIGCONT');
  expect((await command).stderr).toContain(`${two.node} is gone`);
  await isServedBy(one.node);
  expect(left('two')).not.toEqual([]);
  const again = await start('two');
  await until(() => left('two').length === 0);
  world.people([{ email: 'bob@acme.example', news: 'yes' }]);
  await until(() => world.shown('bob@acme.example')?.['ch_news'] === 'opt_in');
  expect(again.heard()).not.toContain('worker serves');
});

test('after Redis lost everything in the middle, the source goes on', async () => {
  const { command, one, two, left, isServedBy } = await inTheMiddle();
  await redis.kill();
  await redis.start();
  two.kill('SIGCONT');
  const { code, stderr } = await command;
  expect({ code, said: stderr.includes('Redis was emptied meanwhile') }).toEqual({
    code: 1,
    said: true,
  });
  await isServedBy(one.node);
  await until(() => left('two').length === 0);
});

test('a source that was killed after the move renames its files at its next start', async () => {
  const { one, two, copyKey, look, quick, left, isServedBy, start } = await stage();
  copyKey();
  const fleet = await look();
  const target = fleet.nodes.find(({ name }) => name === two.node) ?? expect.fail('not there');
  const plan = planMove(fleet, 'acme', target) ?? expect.fail('there already');
  const move = { mirror: 'acme', id: 'a move', plan };
  // First the source stands still, until the target has agreed, then the target, until all is sent.
  // A worker that stands still for fifteen seconds counts as dead, so no command is started here.
  one.kill('SIGSTOP');
  await askToMove(quick, move);
  await until(async () => (await look()).moves.get('acme')?.state === 'ready');
  two.kill('SIGSTOP');
  one.kill('SIGCONT');
  // The manifest and two files.
  await until(async () => (await quick.redis.hlen(`crm-mirror:move:${move.id}:parts`)) === 3);
  one.kill('SIGSTOP');
  two.kill('SIGCONT');
  await isServedBy(two.node);
  one.kill('SIGKILL');
  const stop = new AbortController().signal;
  const follow = { clock: systemClock, stop, tell: () => undefined };
  const { kept, ...moved } = await followMove(moveStore(quick, 'acme', move.id), follow);
  expect(kept).toBeUndefined();
  const words = movedWords({ mirror: 'acme', ...plan, ...moved, kept: null, ms: 0 });
  expect(words.join('\n')).toContain(`${one.node} renames its files as soon as it can`);
  expect(left('one')).toContain('acme.sqlite');
  const again = await start('one');
  await until(() => left('one').every((name) => name.includes('.moved-to-')));
  await again.said('2 workers for 1 mirror');
  await isServedBy(two.node);
});

test('what cannot be moved is refused in one line, and nothing is interrupted', async () => {
  const { one, two, fleet, isServedBy, copyKey, file, left } = await stage();
  const refused = async (words: string[], said: string, code = 2) => {
    const told = await fleet('move', ...words);
    expect({ code: told.code, said: told.stderr.includes(said), told }).toMatchObject({
      code,
      said: true,
    });
    expect(
      told.stderr
        .trim()
        .split('\n')
        .filter((line) => line.includes('→')),
    ).toHaveLength(1);
  };
  const to = ['acme', '--to', two.node];
  await refused(to, `${two.node} has no key of the memory of acme`);
  createMemoryKey(file('two', 'key'));
  await refused(to, `${two.node} has another key of the memory of acme`);
  copyKey();
  writeFileSync(file('two', 'sqlite-memory'), '');
  await refused(to, `has a file at ${file('two', 'sqlite-memory')} already`);
  rmSync(file('two', 'sqlite-memory'));
  await refused(['beta', '--to', two.node], 'no usable file names the mirror beta');
  await refused(['acme', '--to', 'nobody'], 'no living worker is named nobody');
  expect((await fleet('drain', two.node)).code).toBe(0);
  await refused(to, `${two.node} is draining, and takes no mirror`);
  await isServedBy(one.node);
  expect([left('two'), one.heard().includes('another worker takes it')]).toEqual([[], false]);
});

/** Workers that share the folder of snapshots, or do not: real processes on a real Redis. */
import { copyFileSync, existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ownerOf } from '../../src/compose/fleet/fleet.ts';
import { sharedRedis } from '../support/redis.ts';
import { until, twoMachines } from '../support/worker/fleet.ts';
import { findProgram, run } from '../support/program.ts';
import { scratch } from '../support/sources/source-reading.ts';

const redis = await sharedRedis();

test('no empty snapshot begins on a machine without the folder that has one, and who has it goes on', async () => {
  const mirrors = ['m0', 'm1', 'm2', 'm3'];
  const staged = await twoMachines({ redis: redis.url, mirrors });
  const { start, fleet, homeOf, stateOf, worlds } = staged;
  const one = await start('one');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === one.node);
  for (const [mirror, { shown }] of worlds) {
    await until(() => shown(`ann@${mirror}.example`)?.['ch_news'] === 'opt_in');
  }
  const two = await start('two');
  await two.said('2 workers for 4 mirrors');
  const missing =
    'has no snapshot of m0, m1, m2, m3, and one was begun elsewhere; none is begun here';
  await two.said(`${stateOf('two')} ${missing}`);
  one.kill('SIGKILL');
  await until(async () => (await fleet('status')).code === 1);
  const { stdout } = await fleet('status');
  expect(stdout).toContain('Nobody serves 4 mirrors: m0, m1, m2, m3');
  expect(mirrors.filter((name) => existsSync(join(stateOf('two'), `${name}.sqlite`)))).toEqual([]);
  const again = await start('one');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === again.node);
  expect(two.heard()).not.toContain('worker serves');
});

test('a mirror that was copied to another machine goes on there', async () => {
  const staged = await twoMachines({ redis: redis.url, mirrors: ['acme'] });
  const { start, homeOf, stateOf, worlds } = staged;
  const world = worlds.get('acme');
  const isIn = async (name: string) =>
    until(() => world?.shown(`${name}@acme.example`)?.['ch_news'] === 'opt_in');
  const one = await start('one');
  await isIn('ann');
  const two = await start('two');
  expect(await one.ends()).toBe(143);
  await two.said('has no snapshot of acme, and one was begun elsewhere');
  for (const name of readdirSync(stateOf('one')).filter((name) => name.startsWith('acme.'))) {
    const from = join(stateOf('one'), name);
    copyFileSync(from, join(stateOf('two'), name));
    renameSync(from, join(stateOf('one'), `old-${name}`));
  }
  await until(async () => (await homeOf('acme')) === two.node);
  const again = await start('one');
  const people = ['ann', 'bob'].map((name) => ({ email: `${name}@acme.example`, news: 'yes' }));
  world?.people(people);
  await isIn('bob');
  expect(await homeOf('acme')).toBe(two.node);
  expect(again.heard()).not.toContain('worker serves');
});

/** A library that answers each request for a lock on a file with yes, as some file systems do. */
const noLocks = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
static int answer(const char *name, int fd, int cmd, void *arg) {
  if (cmd == F_SETLK || cmd == F_SETLKW) return 0;
  if (cmd == F_GETLK) { ((struct flock *)arg)->l_type = F_UNLCK; return 0; }
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
  return real(fd, cmd, arg);
}
#define PASS(name) int name(int fd, int cmd, ...) { va_list list; va_start(list, cmd); \\
  void *arg = va_arg(list, void *); va_end(list); return answer(#name, fd, cmd, arg); }
PASS(fcntl)
PASS(fcntl64)
`;

async function withoutLocks(): Promise<string | undefined> {
  const compiler = await findProgram(['cc', 'gcc', 'clang']);
  if (compiler === undefined) return undefined;
  const folder = await scratch();
  const [source, library] = [join(folder, 'locks.c'), join(folder, 'locks.so')];
  writeFileSync(source, noLocks);
  await run(compiler, ['-shared', '-fPIC', '-o', library, source, '-ldl']);
  return library;
}

test('workers of a folder that locks files share the mirrors, and one that is killed is no alarm', async () => {
  const mirrors = ['m0', 'm1', 'm2', 'm3'];
  const staged = await twoMachines({ redis: redis.url, mirrors });
  const { start, stateOf, homeOf, look } = staged;
  const one = await start('one');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === one.node);
  const two = await start('two', { STATE: stateOf('one') });
  await until(async () => {
    const { nodes, mirrors: seen } = await look();
    return (
      nodes.length === 2 && seen.every((mirror) => mirror.holder === ownerOf(mirror.name, nodes))
    );
  });
  one.kill('SIGKILL');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === two.node);
  expect(two.heard()).not.toContain('does not lock files');
  expect(await two.ends()).toBe(143);
  expect(readdirSync(stateOf('one')).filter((name) => name.includes(two.node))).toEqual([]);
});

test('of two workers of a folder that does not lock files, the later one serves nothing', async (context) => {
  const library = await withoutLocks();
  if (library === undefined) return context.skip('no C compiler');
  const staged = await twoMachines({ redis: redis.url, mirrors: ['m0', 'm1'] });
  const { start, stateOf, homeOf } = staged;
  const env = { LD_PRELOAD: library, STATE: stateOf('one') };
  const one = await start('one', env);
  for (const mirror of ['m0', 'm1']) await until(async () => (await homeOf(mirror)) === one.node);
  const two = await start('two', env);
  const said = `${stateOf('one')} does not lock files between this worker and`;
  await two.said(`${said} ${one.node}; this worker serves no mirror there`);
  await one.said(`${said} ${two.node}; ${two.node} serves no mirror there`);
  for (const mirror of ['m0', 'm1']) await until(async () => (await homeOf(mirror)) === one.node);
  return undefined;
});

test('while Redis has lost its data, no other machine begins with an empty snapshot', async () => {
  const staged = await twoMachines({ redis: redis.url, mirrors: ['m0', 'm1'] });
  const { start, stateOf, homeOf, look } = staged;
  const one = await start('one');
  for (const mirror of ['m0', 'm1']) await until(async () => (await homeOf(mirror)) === one.node);
  const two = await start('two');
  await two.said('2 workers for 2 mirrors');
  one.kill('SIGSTOP');
  await redis.kill();
  await redis.start();
  await until(async () => (await look().catch(() => undefined))?.nodes[0]?.name === two.node);
  // The one worker that Redis knows has looked at the fleet.
  await two.said('1 worker for 2 mirrors');
  one.kill('SIGCONT');
  for (const mirror of ['m0', 'm1']) await until(async () => (await homeOf(mirror)) === one.node);
  expect(existsSync(join(stateOf('two'), 'm0.sqlite'))).toBe(false);
  expect(two.heard()).not.toContain('worker serves');
});

/** What receivers get when several processes send, or when the snapshot cannot be written. */
import { expect, test } from 'vitest';
import { openSnapshot } from '../../src/store/snapshot.ts';
import { receiver, refusing, reporting } from '../support/commands/notice-receivers.ts';
import { untilHolds } from '../support/waiting.ts';
import { tamper } from '../support/commands/mirrored-contacts.ts';

/** A mirror whose last run failed, with a Slack receiver that gives these answers. */
async function failing(...replies: Parameters<typeof receiver>) {
  const { heard, url } = await receiver(...replies);
  const mirror = await reporting({ to: [{ slack: { url } }] });
  const fault = refusing(mirror.world, 403);
  expect((await mirror.world.call('sync')).code).toBe(1);
  return { ...mirror, heard, fault };
}

/** Lets no process store a fact whose name matches, as a full disk does. */
const refuseToStore = (path: string, names: string): void =>
  tamper(
    path,
    `create trigger full before insert on meta when new.name like '${names}'
     begin select raise(abort, 'the disk is full'); end`,
  );

test('two notifiers of one snapshot tell a receiver once', async () => {
  const { heard, told, begin } = await failing(503);
  const notifiers = [begin(), begin()];
  for (const notifier of notifiers) notifier.ran();
  await Promise.all(notifiers.map(async (notifier) => notifier.close()));
  expect(heard).toHaveLength(2);
  expect(told.filter(({ why }) => why === undefined)).toHaveLength(1);
});

test('a problem that ended during an attempt is reported as solved by the next attempt', async () => {
  const answer = Promise.withResolvers<void>();
  const { heard, told, world, fault, begin } = await failing({
    status: 503,
    after: answer.promise,
  });
  const notifier = begin();
  notifier.ran();
  await untilHolds(() => expect(heard).toHaveLength(1));
  fault.undo();
  expect((await world.call('sync')).code).toBe(0);
  answer.resolve();
  await notifier.close();
  expect(heard).toHaveLength(2);
  expect(heard[1]?.body).toContain('solved since: the last full run');
  expect(told.map(({ notice }) => notice?.type)).toEqual(['mirror.recovered']);
});

test('a claim keeps other processes from sending until it ends', async () => {
  const { heard, told, world, clock, begin } = await failing();
  const claim = (ms: number): void => {
    const { meta, close } = openSnapshot(world.path);
    meta.set('notices-claim.slack', String(clock.now() + ms));
    close();
  };
  const tell = async () => {
    const notifier = begin();
    notifier.ran();
    await notifier.close();
  };
  claim(110_000);
  await tell();
  expect(told.map(({ why }) => why)).toEqual(['another process is sending to this receiver']);
  expect(heard).toEqual([]);
  clock.pass(110_000);
  await tell();
  expect(heard).toHaveLength(1);
});

test('a claim by a clock that was far ahead does not count', async () => {
  const { heard, world, clock, run } = await failing();
  const { meta, close } = openSnapshot(world.path);
  meta.set('notices-claim.slack', String(clock.now() + 86_400_000));
  close();
  await run();
  expect(heard).toHaveLength(1);
});

test('nothing is sent while the claim cannot be stored, and the log says why', async () => {
  const { heard, told, world, run } = await failing();
  refuseToStore(world.path, 'notices-claim%');
  await run();
  expect(heard).toEqual([]);
  expect(told.map(({ why }) => why)).toEqual([
    expect.stringContaining('nothing is sent while it cannot be stored that it was: '),
  ]);
  tamper(world.path, 'drop trigger full');
  await run();
  await run();
  expect(heard).toHaveLength(1);
});

test('a process that cannot store what it sent remembers it, and stores it later', async () => {
  const { heard, told, world, begin, run } = await failing();
  refuseToStore(world.path, 'notices.%');
  const notifier = begin();
  notifier.ran();
  await untilHolds(() => expect(told).toHaveLength(1));
  expect(told[0]).toMatchObject({
    why: undefined,
    but: /^it cannot be stored that this was sent: /,
  });
  await world.call('sync');
  notifier.ran();
  tamper(world.path, 'drop trigger full');
  await world.call('sync');
  notifier.ran();
  await notifier.close();
  await run();
  expect(heard).toHaveLength(1);
});

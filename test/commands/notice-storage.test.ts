/** What receivers get when a problem ends meanwhile, or when the snapshot cannot be written. */
import { expect, test } from 'vitest';
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

/** Lets no process store what a receiver was told, as a full disk does. */
const refuseToStore = (path: string): void =>
  tamper(
    path,
    `create trigger full before insert on meta when new.name like 'notices.%'
     begin select raise(abort, 'the disk is full'); end`,
  );

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

test('nothing is sent while the attempt cannot be stored, and the log says why', async () => {
  const { heard, told, world, run } = await failing();
  refuseToStore(world.path);
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
  const answer = Promise.withResolvers<void>();
  const { heard, told, world, begin, run } = await failing({ status: 204, after: answer.promise });
  const notifier = begin();
  notifier.ran();
  await untilHolds(() => expect(heard).toHaveLength(1));
  refuseToStore(world.path);
  answer.resolve();
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

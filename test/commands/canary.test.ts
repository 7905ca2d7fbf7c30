/** A canary, from the command line to the platform and back. */
import { describe, expect, test } from 'vitest';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { storedCanaries } from '../../src/engine/judge/canaries.ts';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  rehearsable,
} from '../support/commands/mirrored-contacts.ts';

const lines = { policy: { canary: { floor: 1, wait: '30m' } } };

/** Moves the beginning of the wait into the past. */
function letAnHourPass({ path }: Mirrored): void {
  const snapshot = openSnapshot(path);
  const book = storedCanaries(snapshot.meta);
  const canary = book?.classes.opt_in;
  if (canary?.state !== 'waiting') throw new Error(`it is ${canary?.state}`);
  const earlier = (at: number | null) => (at === null ? null : at - 3_600_000);
  const since = {
    at: canary.since.at - 3_600_000,
    platformAt: earlier(canary.since.platformAt),
  };
  const classes = { ...book?.classes, opt_in: { ...canary, since } };
  snapshot.meta.set('canary', JSON.stringify({ ...book, classes }));
  snapshot.close();
}

describe.each(['backfill', 'sync'])('a first load by %s', (command) => {
  test('says what waits, until when and what to run next, and goes on by itself', async () => {
    const world = await mirrored({ lines });
    const { call } = world;
    const run = await call(command, '--json');
    expect(run.code).toBe(0);
    expect(run.json).toMatchObject({
      status: 'done',
      deferred: { opt_in: 1 },
      contacts: { applied: { create: 1 } },
      canaries: [{ class: 'opt_in', state: 'waiting', because: 'first load', size: 1, of: 2 }],
    });
    const [{ readFrom }] = run.json.canaries;
    const waits = `1 person to be created or opted in waits for the canary of 1 person (policy.canary), which is read back from ${readFrom} on → run again then; a worker goes on by itself`;
    expect((await call(command)).said).toContain(waits);
    expect((await call('plan')).said).toContain(waits);

    const words = `a canary of 1 person of 2 to be created or opted in has been changed, because this is a first load; it is read back from ${readFrom} on`;
    expect((await call('status')).out).toContain(words);
    expect((await call('status', '--json')).json.canaries).toMatchObject(run.json.canaries);
    const explained = await Promise.all([call('explain', ann), call('explain', bob)]);
    const waiting = explained.filter(({ out }) =>
      out.includes('not in the slice, so the change waits'),
    );
    expect(waiting).toHaveLength(1);
    expect(waiting[0]?.out).toContain(words);

    letAnHourPass(world);
    const next = await call(command, '--json');
    expect(next.json).toMatchObject({
      status: 'done',
      deferred: { opt_in: 0 },
      reasons: [],
      contacts: { applied: { create: 1 } },
    });
    const { out } = await call('status');
    expect(out).toContain('none is under way');
    const { lastCanary } = (await call('status', '--json')).json;
    expect(lastCanary).toMatchObject({
      class: 'opt_in',
      ended: 'passed',
      size: 1,
      of: 2,
      found: null,
    });
    const slice = '1 person of 2 to be created or opted in';
    expect(out).toContain(`a canary of ${slice} was within bounds at ${lastCanary.at}`);
  });
});

test('people of the canary who unsubscribe are a question, which an approval answers', async () => {
  const world = await mirrored({ lines });
  const { call, emulator } = world;
  await call('backfill');
  const [first] = emulator.world.contacts();
  emulator.dashboard.unsubscribe(first?.id ?? '');
  letAnHourPass(world);
  const run = await call('sync', '--json');
  expect(run.code).toBe(3);
  const found = '1 of 1 person of the canary unsubscribed or was blocked within 60 minutes';
  expect(run.json.problems[0].reason).toContain(found);
  const status = (await call('status', '--json')).json;
  const counts = { unsubscribed: 1, refused: 0, drift: 0, of: 1 };
  expect(status).toMatchObject({ canaries: [{ state: 'failed', counts }], lastCanary: null });
  const [{ run: slice }] = status.canaries;
  expect((await call('runs', slice)).out).toContain('create');
  const command = (words: string) => `\`crm-mirror ${words} -c ${world.file}\``;
  expect((await call('status')).out).toContain(
    `is out of bounds: ${found} (unsubscribed 1, refused 0, drift 0): ` +
      `${command(`runs ${slice}`)} lists the slice, ${command('explain PERSON')} says what became of one`,
  );
  expect((await call('approve', run.json.plan)).code).toBe(0);
  expect((await call('sync', '--json')).json.contacts.applied).toMatchObject({ create: 1 });
  const { lastCanary } = (await call('status', '--json')).json;
  expect(lastCanary).toMatchObject({ ended: 'approved', found, run: slice });
  expect((await call('status')).out).toContain(
    `was out of bounds: ${found}; approved at ${lastCanary.at}`,
  );
});

test.each([
  ['replaced', { ...lines, contacts: { unsubscribed: 'product' } }, 'ended by another mapping at'],
  ['unwanted', lines, 'ended, because no run plans the rest any more, at'],
])('a canary out of bounds is %s', async (ended, after, words) => {
  const world = await mirrored({ lines });
  const { call, emulator } = world;
  await call('backfill');
  const [first] = emulator.world.contacts();
  emulator.dashboard.unsubscribe(first?.id ?? '');
  letAnHourPass(world);
  await call('sync');
  world.config(after);
  if (ended === 'unwanted') world.people([{ email: first?.email ?? '', news: 'yes' }]);
  await call('sync');
  const status = (await call('status', '--json')).json;
  expect(status.lastCanary).toMatchObject({ ended, counts: { unsubscribed: 1 } });
  expect((await call('status')).out).toContain(words);
});

test('a rehearsal shows the slice, and says that the rest would wait', async () => {
  const { call, writes } = await rehearsable({ lines });
  const told = await call('rehearse');
  expect(told.code).toBe(0);
  expect(told.out).toContain(
    '1 person would wait until the canary of 1 person has been read back (policy.canary)',
  );
  const { json } = await call('rehearse', '--json');
  expect(json).toMatchObject({ deferred: { opt_in: 1 }, canaries: [{ size: 1, of: 2 }] });
  expect(writes()).toEqual([]);
});

test('without the key, no document and no page names a canary', async () => {
  const { call } = await mirrored();
  for (const command of ['plan', 'sync', 'status']) {
    const { json } = await call(command, '--json');
    expect(JSON.stringify(json)).not.toContain('canar');
  }
  expect((await call('status')).out).not.toContain('canary');
  expect((await call('explain', ann, '--json')).out).not.toContain('canar');
});

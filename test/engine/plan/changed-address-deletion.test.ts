/** An address that changed in the CRM where policy deletes: the old contact is deleted instead. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { moved, NEW, OLD, sent } from '../../support/engine/sample-people.ts';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

const policy = { deletes: 'created' } as const;
const hour = 3_600_000;

const optedOut = [`opt_out ${OLD} ch_news`, `opt_out ${OLD} ch_product`];
const made = [`opt_in ${NEW} ch_news`, `opt_in ${NEW} ch_product`];
const whole = [...made, `delete ${OLD}`];

/** What is sent does not arrive, and is refused in these words. */
const refusing =
  (what: (request: Parameters<Send>[0]) => boolean, status: number) =>
  (send: Send): Send =>
  async (request, signal) =>
    what(request)
      ? { status, headers: {}, body: JSON.stringify({ message: 'no' }) }
      : send(request, signal);

test('one run creates the new contact, then deletes the old one; the next does nothing', async () => {
  const stage = await moved({}, { policy });
  const summary = await stage.sync();
  expect(summary).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 1, opt_in: 1, opt_out: 0, delete: 1 } },
  });
  const route = stage.emulator.world.requests().map(({ method, path }) => `${method} ${path}`);
  const at = route.findIndex((line) => line.startsWith('DELETE'));
  const id = route[at]?.split('/').at(-1);
  expect(route[at - 1]).toBe(`GET /api/contacts/retrieve/${id}`);
  expect(sent(stage)).toEqual(whole);
  for (const mode of ['fast', 'full'] as const) {
    expect((await stage.sync({ mode })).contacts.conflicts).toBe(0);
    expect(sent(stage)).toEqual([]);
  }
});

/** As a run leaves it that reads only what changed. */
async function changed(): Promise<Stage> {
  const stage = openStage({ policy, tellsChanges: true });
  stage.people.push({ id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' });
  await stage.sync();
  await stage.sync({ mode: 'fast' });
  Object.assign(stage.people[0] ?? {}, { email: NEW });
  stage.changed.push('1');
  stage.writes();
  await stage.sync({ mode: 'fast' });
  expect(sent(stage)).toEqual([...made, ...optedOut]);
  return stage;
}

test('a plan shows what it would do once the new contact exists', async () => {
  const stage = await changed();
  const plan = await stage.sync({ writes: false });
  expect(plan.contacts.changes).toMatchObject({ opt_out: 0, delete: 1 });
  expect(sent(stage)).toEqual([]);
  expect((await stage.sync()).plan).toBe(plan.plan);
  expect(sent(stage)).toEqual(whole.slice(2));
});

describe('the old contact is not deleted', () => {
  test('not even opted out while a record that had the address is missing and not yet due', async () => {
    const both = (stage: Stage) => {
      for (const id of ['1', '2']) stage.people.push({ id, email: OLD, ch_news: 'yes' });
    };
    const stage = await moved({ ch_product: '' }, { policy, before: both });
    stage.people.length = 1;
    await stage.sync();
    expect(sent(stage)).toEqual(made.slice(0, 1));
    await stage.clock.advance(21 * hour);
    Object.assign(stage.certificate, { reading: 'more' });
    await stage.sync();
    expect(sent(stage)).toEqual([`opt_out ${OLD} ch_news`, `delete ${OLD}`]);
  });

  test('while the new contact cannot be created, however long that takes', async () => {
    const isNew: Parameters<typeof refusing>[0] = ({ method, body }) =>
      method === 'POST' && body?.includes(NEW) === true;
    const stage = await moved({}, { policy, wire: refusing(isNew, 400) });
    for (const reading of ['one', 'two', 'three']) {
      Object.assign(stage.certificate, { reading });
      await stage.sync();
      await stage.clock.advance(30 * hour);
    }
    expect(sent(stage).filter((line) => line.startsWith('delete'))).toEqual([]);
  });

  test('when it has the new address on the platform too, or anything else has changed', async () => {
    const renamed = await moved({}, { policy });
    renamed.emulator.dashboard.editContact(OLD, { email: NEW });
    for (const mode of ['fast', 'full', 'full'] as const) await renamed.sync({ mode });
    expect(sent(renamed)).toEqual([]);
    const now: { renames?(): void } = {};
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        if (request.method === 'POST' && request.path.endsWith('ch_product')) now.renames?.();
        return answer;
      };
    const stage = await moved({}, { policy, wire });
    now.renames = () => {
      delete now.renames;
      stage.emulator.dashboard.editContact(OLD, { email: 'other@example.com' });
    };
    await stage.sync();
    expect(sent(stage)).toEqual(made);
  });

  test('not even opted out above the limit of a guard', async () => {
    const guards = { delete: { percent: 0, floor: 0 } };
    const stage = await moved({}, { policy, guards });
    const summary = await stage.sync();
    expect(summary).toMatchObject({ status: 'held', contacts: { held: { delete: 1 } } });
    expect(summary.contacts.changes).toMatchObject({ delete: 1 });
    expect(sent(stage)).toEqual(made);
  });
});

test('a platform without deletes: the contact is opted out, and not asked about every night', async () => {
  const stage = await moved({}, { policy, wire: refusing((one) => one.method === 'DELETE', 422) });
  await stage.sync();
  expect((await stage.sync()).contacts.rejected).toBe(1);
  expect(sent(stage)).toEqual([...made, `opt_out ${OLD} ch_news`, `opt_out ${OLD} ch_product`]);
  expect(await stage.sync()).toMatchObject({ contacts: { rejected: 1 } });
  expect(sent(stage)).toEqual([]);
});

describe('an opt-out carried over from a deleted old address', () => {
  const leaves = {
    'left a channel': (stage: Stage) => stage.emulator.dashboard.leave(OLD, 'ch_news'),
    'left all mail': (stage: Stage) => stage.emulator.dashboard.unsubscribe(OLD),
  };
  test.each(Object.entries(leaves))('keeps out a person who %s', async (_what, leave) => {
    const stage = await moved({ ch_news: '', ch_product: '' }, { policy });
    leave(stage);
    // Somebody made the new one on the platform; the CRM has no opinion yet.
    stage.emulator.seed.contact({ email: NEW });
    await stage.sync();
    await stage.sync();
    expect(sent(stage)).toEqual([`delete ${OLD}`]);
    stage.people[0] = { id: '1', email: NEW, ch_news: 'yes' };
    expect((await stage.sync()).contacts.conflicts).toBe(1);
    stage.people[0] = { id: '1', email: OLD, ch_news: 'yes' };
    expect((await stage.sync()).contacts.conflicts).toBe(1);
    expect(sent(stage).filter((line) => line.startsWith('opt_in'))).toEqual([]);
  });
});

test('an opt-out of a replaced channel keeps a person out of the channel that replaces it', async () => {
  const replaces = { ch_news: 'ch_old' };
  const platform = {
    channels: ['ch_news', 'ch_product', 'ch_old'].map((id) => ({ id, name: id })),
  };
  const before = (stage: Stage) => {
    stage.emulator.seed.contact({ email: OLD, channels: { ch_old: 'opt_out' } });
    stage.emulator.seed.contact({ email: NEW });
    stage.people.push({ id: '1', email: OLD });
  };
  const wishes = { ch_news: '', ch_product: '' };
  const rules = { deletes: 'owned', replaces } as const;
  const stage = await moved(wishes, { policy: rules, platform, before });
  await stage.sync();
  await stage.sync();
  expect(sent(stage)).toEqual([`delete ${OLD}`]);
  stage.people[0] = { id: '1', email: NEW, ch_news: 'yes' };
  expect((await stage.sync()).contacts.conflicts).toBe(1);
  expect(sent(stage)).toEqual([]);
});

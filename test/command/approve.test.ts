/** What a guard holds, as the command line tells it and lets it pass. */
import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { takeLease } from '../../src/snapshot/lease.ts';
import { ann, bob, mirrored, type Mirrored } from './mirrored.ts';

const hash = /[0-9a-f]{16}/;

/** After a first load two more people come, where one passes. */
async function held(): Promise<Mirrored & { plan: string }> {
  const world = await mirrored();
  world.config({ guards: { optIns: { percent: 0, floor: 1 } } });
  expect((await world.call('sync')).code).toBe(0);
  const names = [ann, bob, 'eve@example.com', 'kim@example.com'];
  world.people(names.map((email) => ({ email, news: 'yes' })));
  const { code, json } = await world.call('sync', '--json');
  expect({ code, status: json.status, held: json.contacts.held }).toEqual({
    code: 3,
    status: 'held',
    held: { delete: 0, opt_in: 2 },
  });
  world.writes();
  return { ...world, plan: json.plan };
}

test('a run that holds something says what, why, and how to let it pass', async () => {
  const world = await held();
  const { code, err, out } = await world.call('sync');
  expect(code).toBe(3);
  expect(err).toContain('2 people would be created or opted in, and this was held');
  expect(err).toContain(`crm-mirror approve ${world.plan}`);
  expect(out).toMatch(/Run \S+ of world: held/);
  expect(`${out}${err}`).not.toContain('@');
  const planned = await world.call('plan', '--exit-code', '--json');
  expect(planned).toMatchObject({ code: 3, json: { plan: world.plan, status: 'held' } });
  expect((await world.call('plan')).out).toMatch(/create contact #\w+ in ch_news \(held\)/);
  expect(world.writes()).toEqual([]);
});

test('approve records the consent and runs nothing; the next run does it', async () => {
  const world = await held();
  const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
  const before = (await world.call('status', '--json')).json;
  expect(before).toMatchObject({
    ok: false,
    attention: [{ code: 'held', text: expect.stringContaining('2 people to be created') }],
    held: [{ plan: world.plan, since, delete: 0, opt_in: 2, changes: [{ op: 'create' }, {}] }],
    approvals: [],
  });
  expect((await world.call('status')).out).toMatch(/create #\w{12} in ch_news/);
  const { code, json } = await world.call('approve', world.plan.toUpperCase(), '--json');
  expect({ code, json }).toEqual({
    code: 0,
    json: { mirror: 'world', approved: world.plan, held: { delete: 0, opt_in: 2 }, until: since },
  });
  expect(world.writes()).toEqual([]);
  expect((await world.call('status', '--json')).json).toMatchObject({
    ok: true,
    approvals: [{ plan: world.plan, at: since, until: since }],
  });
  expect((await world.call('status')).out).toMatch(/approved +[0-9a-f]{16}, until the next full/);
  expect((await world.call('sync')).code).toBe(0);
  expect(world.writes()).toHaveLength(2);
  expect((await world.call('status', '--json')).json).toMatchObject({
    ok: true,
    held: [],
    approvals: [],
  });
});

test('sync --approve does both at once, of a plan that only `plan` has shown too', async () => {
  const world = await held();
  world.people(
    ['eve', 'kim', 'lea'].map((name) => ({ email: `${name}@example.com`, news: 'yes' })),
  );
  const { plan } = (await world.call('plan', '--json')).json;
  expect(plan).not.toBe(world.plan);
  const { code, json } = await world.call('sync', '--approve', plan, '--json');
  expect({ code, applied: json.contacts.applied.create }).toEqual({ code: 0, applied: 3 });
});

test.each(['approve', 'sync --approve'])(
  '%s of an unknown plan names what is held',
  async (how) => {
    const world = await held();
    const { code, err } = await world.call(...how.split(' '), '0123456789abcdef');
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining(`held now: ${world.plan}`),
    });
    expect(world.writes()).toEqual([]);
  },
);

test('where nothing is held there is nothing to approve, and no snapshot is made', async () => {
  const world = await mirrored();
  const { code, err } = await world.call('approve', 'cafe');
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('nothing is held now') });
  expect(existsSync(world.path)).toBe(false);
});

test('beside a process that holds the lease: come back later', async () => {
  const world = await held();
  const lease = takeLease(world.path);
  onTestFinished(() => lease.release());
  expect((await world.call('approve', world.plan)).code).toBe(75);
  expect(world.plan).toMatch(hash);
});

test('a backfill asks no guard whom it brings in', async () => {
  const world = await held();
  expect((await world.call('backfill')).code).toBe(0);
  expect(world.writes()).toHaveLength(2);
});

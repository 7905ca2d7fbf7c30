/** retry --read-again: the next run reads a person, and nothing that protects them is lost. */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const reset = (world: Mirrored, ...more: string[]) =>
  world.call('retry', ann, '--read-again', '--reason', 'looks wrong', '--by', 'eva', ...more);
const idOf = (world: Mirrored): string => world.emulator.world.contact(ann)?.id ?? '';
const lines = (...rows: string[]) => ['id,email,news,product', ...rows, ''].join('\n');

/** Every stored row, by table, without the few values that a reset may change. */
function kept(world: Mirrored): Record<string, unknown> {
  const db = new Database(world.path, { readonly: true });
  const tables = db.prepare<[], { name: string }>(
    "select name from sqlite_schema where type = 'table' and name <> 'sqlite_sequence' order by name",
  );
  const some: Record<string, string> = {
    recorded: 'kind, key, id, ownership, body, seen_at',
    problem: 'kind, key, class, part, target, reason, fix, since, run',
    meta: "name, iif(name glob 'c* of contacts' or name glob 'lease*', '', value) value",
  };
  const rows = tables.all().map(({ name }): [string, unknown[]] => {
    const where =
      name === 'meta'
        ? " where name not in ('reset of contacts', 'cursor of contacts', 'audit-head')"
        : '';
    return [name, db.prepare(`select ${some[name] ?? '*'} from ${name}${where}`).all()];
  });
  db.close();
  return Object.fromEntries(rows);
}

/** The worlds in which something protects Ann from a subscription, which the CRM states. */
const protectedBy: [string, () => Promise<Mirrored>][] = [
  [
    'she left the channel on the platform',
    async () => {
      const world = await mirrored();
      await world.call('sync');
      world.emulator.dashboard.leave(idOf(world), 'ch_news');
      return world;
    },
  ],
  [
    'she unsubscribed from all mail',
    async () => changed(({ dashboard }) => dashboard.unsubscribe(ann)),
  ],
  ['her contact vanished', async () => changed(({ dashboard }) => dashboard.deleteContact(ann))],
  [
    'a record that is gone had stated our opt-out',
    async () => {
      const world = await mirrored();
      world.csv(lines(`1,${ann},yes,`));
      await world.call('sync');
      world.csv(lines(`1,${ann},yes,`, `2,${ann},no,`));
      await world.call('sync');
      world.csv(lines(`1,${ann},yes,`));
      return world;
    },
  ],
];

async function changed(by: (emulator: Mirrored['emulator']) => void): Promise<Mirrored> {
  const world = await mirrored();
  await world.call('sync');
  by(world.emulator);
  return world;
}

describe('retry --read-again never opts in anybody who', () => {
  test.each(protectedBy)('%s', async (_, begin) => {
    const world = await begin();
    // A run with a reset must end like the same run without one.
    await world.call('sync');
    const before = world.shown(ann);
    const problems = (await world.call('sync', '--json')).json.contacts;
    world.writes();
    for (const mode of ['--fast', '--full']) {
      const rows = kept(world);
      expect(await reset(world)).toMatchObject({ code: 0 });
      expect(kept(world)).toEqual(rows);
      await world.call('sync', mode);
    }
    const after = (await world.call('sync', '--json')).json.contacts;
    expect(world.writes()).toEqual([]);
    expect(world.shown(ann)).toEqual(before);
    expect(after.conflicts).toBe(problems.conflicts);
  });
});

describe('retry --read-again', () => {
  test('has a fast run read the person, which it would not', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(idOf(world), 'ch_news');
    const fast = async () => (await world.call('sync', '--fast', '--json')).json.contacts.conflicts;
    expect(await fast()).toBe(0);
    expect((await reset(world, '--json')).json).toEqual({
      mirror: 'world',
      person: expect.stringMatching(/^#/),
      by: 'eva',
      reason: 'looks wrong',
      at: expect.any(String),
      recorded: true,
      changes: 0,
      reports: 0,
    });
    const { out } = await world.call('explain', ann, '--offline');
    expect(out).toContain('to be read again: the next run reads it on the platform');
    world.server.arrived.splice(0);
    expect(await fast()).toBe(1);
    const reads = world.server.arrived.filter(({ method }) => method === 'GET');
    expect(reads.length).toBeLessThan(5);
    world.server.arrived.splice(0);
    expect(await fast()).toBe(1);
    expect(world.server.arrived.filter(({ method }) => method === 'GET')).toEqual([]);
  });

  test('has refused changes tried again', async () => {
    const world = await mirrored();
    const refusal = world.server.fail(({ body }) => body.email === ann, {
      is: 'answer',
      status: 422,
    });
    await world.call('sync');
    refusal.undo();
    await world.call('sync');
    expect(world.shown(ann)).toBeUndefined();
    const { out } = await reset(world);
    expect(out).toMatch(/Nothing is recorded of .*\nIt tries 1 refused change again/);
    await world.call('sync', '--fast');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('keeps the reset while the person cannot be read, and goes on with others', async () => {
    const world = await mirrored();
    await world.call('sync');
    await reset(world);
    world.people([
      { email: ann, news: 'yes' },
      { email: bob, news: 'no', product: 'no' },
    ]);
    const broken = world.server.fail(({ method }) => method === 'GET', {
      is: 'answer',
      status: 403,
    });
    const { err } = await world.call('sync', '--fast');
    expect(err).toContain('1 reset person could not be read again');
    expect(world.shown(bob)).toMatchObject({ ch_news: 'opt_out' });
    broken.undo();
    const shown = async () =>
      (await world.call('explain', ann, '--offline', '--json')).json.snapshot;
    expect((await shown()).reset).toBe(true);
    await world.call('sync', '--fast');
    expect((await shown()).reset).toBe(false);
  });

  test('is refused while a change of the person has no known outcome', async () => {
    const world = await mirrored();
    world.config({ timeoutMs: 1_000 });
    world.people([{ email: ann, news: 'yes' }]);
    world.server.fail(({ method }) => method === 'POST', { is: 'half' });
    const isLater = ({ nth, route }: { nth: number; route: string }) =>
      route === 'contacts.list' && nth > 1;
    world.server.fail(isLater, { is: 'answer', status: 403 });
    await world.call('sync');
    const { code, err } = await reset(world);
    expect({ code, err }).toMatchObject({
      code: 75,
      err: expect.stringMatching(/outcome of 1 change/),
    });
  });

  test('needs a reason without an address, and names the operator', async () => {
    const world = await mirrored();
    await world.call('sync');
    const of = (...more: string[]) => world.call('retry', ann, '--read-again', ...more);
    expect(await of()).toMatchObject({ code: 2 });
    expect(await of('--reason', ' ')).toMatchObject({ code: 2 });
    expect(await of('--reason', `asked by ${bob}`)).toMatchObject({ code: 2 });
    const { json, err } = await of('--reason', 'by phone', '--json');
    expect(json.by).toMatch(/ on /);
    expect(err).toContain('"reason":"by phone"');
    expect(err).not.toContain('@');
  });
});

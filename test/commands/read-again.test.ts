/** retry --read-again: the next run reads a person, and nothing that protects them is lost. */
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const reset = (world: Mirrored, ...more: string[]) =>
  world.call('retry', ann, '--read-again', '--reason', 'looks wrong', '--by', 'eva', ...more);

describe('retry --read-again', () => {
  test('has a fast run read the person, which it would not', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
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
    const { json, err } = await of('--reason', 'by phone', '--json');
    expect(json.by).toMatch(/ on /);
    expect(err).toContain('"reason":"by phone"');
    expect(err).not.toContain('@');
  });
});

test.each([
  ['allow', ann, '--reason', 'by letter'],
  ['forget', ann, '--yes'],
  ['retry', ann, '--read-again', '--reason', 'looks wrong'],
  [
    'resolve',
    bob,
    '--channel',
    'ch_news',
    '--out',
    '--reason',
    'by letter',
    '--evidence',
    'letter',
  ],
])(
  'after `%s %s`, a fast run reads the whole CRM: the record has not changed there',
  async (...words) => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(bob, 'ch_news');
    await world.call('sync');
    expect((await world.call(...words)).code).toBe(0);
    const db = new Database(world.path, { readonly: true });
    onTestFinished(() => void db.close());
    const cursor = db.prepare(`select value from meta where name = 'cursor of contacts'`).pluck();
    expect(cursor.get()).toBe('spoilt');
  },
);

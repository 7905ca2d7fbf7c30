/** Opt-outs on the platform are reported to the CRM, whatever happens to the reporting process. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { Interrupted, Invalid, RateLimited, Unavailable } from '../../../src/domain/errors.ts';
import type { OptOutReport, ReturnCause } from '../../../src/domain/opt-out-report.ts';
import { csvReturns } from '../../../src/sources/shared/files/file-write-back.ts';
import type { WriteBack } from '../../../src/sources/source.ts';
import type { RunOptions } from '../../../src/engine/context/mirror-context.ts';
import { run } from '../../../src/engine/run.ts';
import { stuckIn } from '../../../src/engine/write-back/report-opt-outs.ts';
import { hearing, told } from '../../support/engine/engine-stage.ts';
import { createWorld, type World } from '../../support/engine/engine-world.ts';

const never = new AbortController().signal;
const at = (name: string): string => `${name}@example.com`;

/** It names who it was told of, and which channel. */
function crm(overrides: Partial<WriteBack> = {}) {
  const { heard, returns } = hearing(overrides);
  const names = () => heard.map(({ email, channel }) => `${email.split('@')[0]} ${channel}`);
  return { heard, returns, names };
}

/** It is told of nobody: this is thrown before anything arrives. */
const failing = (error: Error) =>
  crm({
    async *tell() {
      yield* [];
      throw error;
    },
  });

/** These are subscribed to the newsletter, and were seen so. */
async function standing(...names: string[]): Promise<World> {
  const world = await createWorld({ kinds: ['contact'] });
  world.people(names.map((name) => ({ email: at(name), news: 'yes' })));
  await world.sync();
  return world;
}

async function sync(world: World, returns: WriteBack, options: Partial<RunOptions> = {}) {
  const connected = world.connect();
  try {
    const how = { writes: true, only: undefined, stop: never, abort: never } as const;
    const all = { mode: 'full', ...how, progress: () => undefined, ...options } as const;
    return await run({ ...world.mirror(connected), returns }, all);
  } finally {
    await connected.close();
  }
}

const leave = (world: World, ...names: string[]): void => {
  for (const name of names) world.emulator.dashboard.leave(at(name), 'ch_news');
};

describe('a process that crashes', () => {
  const crash = new Error('killed');

  test('before an answer reports again under the same id', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    const dead = crm({
      async *tell(batch) {
        dead.heard.push(...batch);
        yield* [];
        throw crash;
      },
    });
    await expect(sync(world, dead.returns)).rejects.toBe(crash);
    const { returns, heard } = crm();
    expect((await sync(world, returns)).returns).toMatchObject({ told: 1, waiting: 0 });
    expect(heard.map(({ id }) => id)).toEqual(dead.heard.map(({ id }) => id));
    await sync(world, returns);
    expect(heard).toHaveLength(1);
  });

  test('in the middle of a file does not write a row twice', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann', 'bob');
    const path = join(world.folder, 'back.csv');
    const file = csvReturns({ path });
    const dead: WriteBack = {
      ...file,
      async *tell(batch, signal) {
        yield* file.tell(batch.slice(0, 1), signal);
        throw crash;
      },
    };
    await expect(sync(world, dead)).rejects.toBe(crash);
    expect((await sync(world, file)).returns).toMatchObject({ told: 1, waiting: 0 });
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n').slice(1);
    expect(lines.map((line) => line.split(',')[1])).toEqual([at('ann'), at('bob')]);
  });

  test('does not report a person who has come back since', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    const dead = failing(crash);
    await expect(sync(world, dead.returns)).rejects.toBe(crash);
    world.emulator.dashboard.signUp({ email: at('ann'), channels: ['ch_news'] });
    const { returns, heard } = crm();
    expect((await sync(world, returns)).returns).toMatchObject({ told: 0, waiting: 0 });
    expect(heard).toEqual([]);
  });
});

describe('an unreachable CRM', () => {
  test('is asked once a run, and a record that it fails on comes last in the next', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann', 'bob');
    const it = crm({
      most: 1,
      async *tell([one]) {
        if (one) it.heard.push(one);
        if (one?.email === at('ann')) throw new Unavailable('away', { acted: 'maybe' });
        yield told;
      },
    });
    const first = await sync(world, it.returns);
    expect(first).toMatchObject({ status: 'rejected', returns: { told: 0, waiting: 2 } });
    expect(first.reasons.join()).toContain('2 opt-outs could not be reported');
    expect(it.names()).toEqual(['ann ch_news']);
    expect((await sync(world, it.returns)).returns).toMatchObject({ told: 1, waiting: 1 });
    expect(it.names()).toEqual(['ann ch_news', 'bob ch_news', 'ann ch_news']);
  });

  test('counts as tried what it failed at, and nothing behind it', async () => {
    const world = await standing('ann', 'bob', 'cid');
    leave(world, 'ann', 'bob', 'cid');
    const first = crm({
      async *tell() {
        yield told;
        throw new Unavailable('away', { acted: 'maybe' });
      },
    });
    await sync(world, first.returns);
    const { returns, names } = crm();
    await sync(world, returns);
    expect(names()).toEqual(['cid ch_news', 'bob ch_news']);
  });

  test.each([
    [new Invalid('no such column'), 'planned'],
    [new RateLimited('wait', { route: 'crm', retryAfterMs: 1 }), 'planned'],
    [new Unavailable('away', { acted: 'maybe' }), 'unknown'],
  ])('leaves it open whether a report arrived only if it may have: %s', async (error, state) => {
    const world = await standing('ann');
    leave(world, 'ann');
    await sync(world, failing(error).returns);
    const rows = world.snapshot.optOutReports.of({ kind: 'contact', key: at('ann') });
    expect(rows.map((row) => row.state)).toEqual([state]);
  });

  test('is told which reports may have arrived before, whatever failed since', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    const counts: (number | undefined)[] = [];
    const errors = [new Invalid('no such column'), new Unavailable('away', { acted: 'maybe' })];
    for (const error of [...errors, ...errors]) {
      const { returns } = crm({
        async *tell(_batch, _signal, repeated) {
          counts.push(repeated?.size);
          yield* [];
          throw error;
        },
      });
      await sync(world, returns);
    }
    expect(counts).toEqual([0, 0, 1, 1]);
  });

  test('does not keep the mirror from being proven', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    const away = failing(new Unavailable('away', { acted: 'maybe' }));
    const { run: id } = await sync(world, away.returns);
    expect(world.snapshot.runs.proven()?.id).toBe(id);
  });
});

describe('a report that waits', () => {
  const away = () => failing(new Unavailable('away', { acted: 'maybe' })).returns;

  test('is dropped by a fast run, which reads the contacts again, if the person came back', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann', 'bob');
    await sync(world, away());
    world.emulator.dashboard.signUp({ email: at('ann'), channels: ['ch_news'] });
    const { returns, names } = crm();
    const fast = await sync(world, returns, { mode: 'fast' });
    expect(fast.returns).toMatchObject({ told: 1, waiting: 0 });
    expect(names()).toEqual(['bob ch_news']);
  });

  test('waits on beyond the people that a fast run reads', async () => {
    const names = Array.from({ length: 101 }, (_, nth) => `p${nth}`);
    const world = await standing(...names);
    leave(world, ...names);
    await sync(world, away());
    const { returns } = crm();
    const mode = 'fast';
    expect((await sync(world, returns, { mode })).returns).toMatchObject({ told: 100, waiting: 1 });
    expect((await sync(world, returns, { mode })).returns).toMatchObject({ told: 1, waiting: 0 });
  });

  const refused = (status: number) => ({ is: 'answer', status, body: { message: 'no' } }) as const;
  const reads = (world: World) =>
    world.server.arrived.filter(({ path }) => /search=(ann|bob)/.test(path));

  test.each([400, 404, 500])(
    'keeps nobody else waiting if its person is answered %i',
    async (no) => {
      const world = await standing('ann', 'bob', 'cid');
      leave(world, 'ann', 'bob', 'cid');
      await sync(world, away());
      const play = world.server.fail(({ path }) => path.includes('bob'), refused(no));
      // One at a time: the report that waits is the first of the next batch, too.
      const { returns, names } = crm({ most: 1 });
      const fast = await sync(world, returns, { mode: 'fast' });
      expect(names()).toEqual(['cid ch_news', 'ann ch_news']);
      expect(fast).toMatchObject({ status: 'rejected', returns: { told: 2, waiting: 1 } });
      expect(fast.reasons.join()).toMatch(
        /^1 contact to report could not be read on the platform; .*/,
      );
      play.undo();
      await sync(world, returns, { mode: 'fast' });
      expect(names().at(-1)).toBe('bob ch_news');
    },
  );

  test('waits without a request about its person once the platform answers nobody', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann', 'bob');
    await sync(world, away());
    const { returns, heard } = crm();
    const play = world.server.fail(() => true, refused(403));
    await sync(world, returns, { mode: 'fast' });
    expect(reads(world)).toHaveLength(1);
    play.undo();
    world.server.fail(() => true, { is: 'cut' });
    world.people([...'uvwxyz'].map((name) => ({ email: at(name), news: 'yes' })));
    const { reasons } = await sync(world, returns, { mode: 'fast' });
    expect(reasons.join()).toContain('5 requests in a row had no usable answer');
    expect({ reads: reads(world).length, heard }).toEqual({ reads: 1, heard: [] });
    expect(stuckIn(world.snapshot)?.reason).toBe('away');
  });

  test('waits if reading takes longer than a minute, like everybody behind its person', async () => {
    const names = ['ann', 'bob', 'cid'];
    const world = await standing(...names);
    leave(world, ...names);
    await sync(world, away());
    world.server.watch.arrived = ({ method }) => {
      if (method === 'GET') world.clock.pass(40_000);
    };
    const { returns } = crm();
    const fast = await sync(world, returns, { mode: 'fast' });
    expect(fast.returns).toMatchObject({ told: 2, waiting: 1 });
  });

  test('is not sent by an undo', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann');
    await sync(world, away());
    world.emulator.dashboard.signUp({ email: at('ann'), channels: ['ch_news'] });
    const { returns, heard } = crm();
    const undo = await sync(world, returns, { mode: 'undo', undo: { run: 'last' } });
    expect({ returns: undo.returns, heard }).toEqual({ returns: null, heard: [] });
    expect((await sync(world, returns)).returns).toMatchObject({ told: 0, waiting: 0 });
  });
});

describe('the time of a report', () => {
  test('is the next run for all above a thousand', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    const names = Array.from({ length: 1_005 }, (_, nth) => `p${nth}`);
    world.people(names.map((name) => ({ email: at(name), news: 'yes' })));
    for (const name of names) {
      world.emulator.seed.contact({ email: at(name), channels: { ch_news: 'opt_out' } });
    }
    // By this one the platform is known to show nobody a channel's default.
    world.emulator.seed.contact({ email: at('foreign'), channels: { ch_product: 'opt_in' } });
    const { returns, heard } = crm({ most: 500 });
    expect((await sync(world, returns)).returns).toMatchObject({ told: 1_000, waiting: 5 });
    expect((await sync(world, returns)).returns).toMatchObject({ told: 5, waiting: 0 });
    expect(new Set(heard.map(({ email }) => email))).toHaveLength(1_005);
  });

  test('is the run about that person, which reports nobody else', async () => {
    const world = await standing('ann', 'bob');
    leave(world, 'ann', 'bob');
    const { returns, names } = crm();
    await sync(world, returns, { mode: { single: at('bob') } });
    expect(names()).toEqual(['bob ch_news']);
    await sync(world, returns);
    expect(names()).toEqual(['bob ch_news', 'ann ch_news']);
  });

  test('is not a run that is asked to stop, or about templates', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    await world.sync();
    const { returns, heard } = crm();
    const stop = AbortSignal.abort(new Interrupted('SIGTERM'));
    expect((await sync(world, returns, { stop })).returns).toBeNull();
    expect((await sync(world, returns, { only: 'templates' })).returns).toBeNull();
    expect(heard).toEqual([]);
  });

  test('does not delay the mirror when the file cannot be written', async () => {
    const world = await standing('ann');
    leave(world, 'ann');
    const path = join(world.folder, 'nowhere/back.csv');
    const { status, returns, reasons } = await sync(world, csvReturns({ path }));
    expect({ status, returns }).toMatchObject({ status: 'rejected', returns: { waiting: 1 } });
    expect(reasons.join()).toContain('its folder is not there → make it');
    expect(existsSync(path)).toBe(false);
  });
});

describe('a report', () => {
  test('is an opt-out, by its type: nothing else can be reported', () => {
    expectTypeOf<keyof OptOutReport>().toEqualTypeOf<
      'id' | 'email' | 'crmId' | 'channel' | 'cause' | 'after' | 'by'
    >();
    expectTypeOf<'opt_in'>().not.toExtend<ReturnCause>();
    expectTypeOf<'subscribed'>().not.toExtend<ReturnCause>();
    expectTypeOf<WriteBack['tell']>().parameter(0).toEqualTypeOf<readonly OptOutReport[]>();
  });

  test('names only people who are out, whatever CRM and platform say of others', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    const wishes = ['yes', 'no', ''];
    const stands = ['opt_in', 'opt_out', undefined] as const;
    const cases = wishes.flatMap((news) =>
      stands.flatMap((is) =>
        (['subscribed', 'unsubscribed'] as const).map((status) => ({ news, is, status })),
      ),
    );
    const people = cases.map((one, nth) => ({ ...one, email: at(`p${nth}`) }));
    world.people(people.map(({ email, news }) => ({ email, news, product: 'no' })));
    for (const { email, is, status } of people) {
      const channels = is ? { ch_news: is } : {};
      world.emulator.seed.contact({ email, channels, status });
    }
    const { returns, heard } = crm();
    await sync(world, returns);
    await sync(world, returns);
    const expected = people.flatMap(({ email, news, is, status }) => {
      const isTold = news !== 'no';
      const left = isTold && is === 'opt_out' ? [`${email} ch_news`] : [];
      return [...left, ...(isTold && status === 'unsubscribed' ? [`${email} *`] : [])];
    });
    const said = heard.map(({ email, channel }) => `${email} ${channel}`);
    expect(said.toSorted()).toEqual(expected.toSorted());
    for (const { cause } of heard) expect(['opt_out', 'unsubscribed']).toContain(cause);
  });
});

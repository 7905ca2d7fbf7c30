/** The guard for stated opt-outs: a wrong column empties no list, and holds nobody for good. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import { everything } from '../../../src/store/database/key-range.ts';
import { storedDifference } from '../../../src/engine/context/platform-knowledge.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { approve, exportOf, hour, person, range } from '../../support/engine/change-volume.ts';

const guards = { opt_out: { percent: 10, floor: 3, holdForMs: 72 * hour } };

function staged(options: StageOptions = {}): Stage {
  return openStage({ guards, ...options });
}

function snapshotPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-out-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 's.sqlite');
}

/** Twenty people of ours, all of them subscribed. */
async function subscribed(options: StageOptions = {}): Promise<Stage> {
  const stage = staged(options);
  stage.people.push(...range(0, 20));
  expect((await stage.sync()).contacts.applied).toMatchObject({ create: 20 });
  stage.writes();
  return stage;
}

/** The column is wrong from this one on: everybody has said no. */
const allOut = (from = 0) => [
  ...range(0, from),
  ...range(from, 20).map((one) => ({ ...one, ch_news: 'no' })),
];

const isOut = (stage: Stage, at: number): boolean =>
  stage.emulator.world.contact(person(at).email)?.channels.find(({ id }) => id === 'ch_news')
    ?.subscription === 'opt_out';
const countOut = (stage: Stage): number => range(0, 20).filter((_, at) => isOut(stage, at)).length;

const held = (n: number) => ({ status: 'held', contacts: { held: { opt_out: n, delete: 0 } } });

test.each([
  [6, 'done'],
  [7, 'held'],
])('%i of twenty are judged by all who were subscribed before them: %s', async (n, status) => {
  const guard = { percent: 30, floor: 3, holdForMs: 72 * hour };
  const stage = await subscribed({ guards: { opt_out: guard } });
  exportOf(stage, [...allOut().slice(0, n), ...range(n, 20)]);
  expect((await stage.sync()).status).toBe(status);
});

describe('a wrong column that opts everybody out', () => {
  test('sends nothing in the first run, and prints the way out and the end of the hold', async () => {
    const stage = staged();
    for (const { email } of range(0, 20)) {
      stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
    }
    exportOf(stage, allOut());
    const summary = await stage.sync();
    expect(summary).toMatchObject({ ...held(20), reasons: [] });
    expect(stage.writes()).toEqual([]);
    const [problem] = summary.problems;
    expect(problem).toMatchObject({ class: 'held', key: 'opt_out' });
    expect(problem?.reason).toContain('20 people would be opted out');
    expect(problem?.reason).toContain(
      'awaits approval: these are all the people who are subscribed',
    );
    expect(problem?.fix).toContain(`crm-mirror approve ${summary.plan}`);
    expect(problem?.fix).toContain('from 2026-01-04T00:00:0');
  });

  test.each(['full', 'fast'] as const)(
    'is held in a later %s run, can be approved, and is sent once',
    async (mode) => {
      const stage = await subscribed();
      exportOf(stage, allOut());
      const { plan, ...summary } = await stage.sync({ mode });
      expect(summary).toMatchObject(held(20));
      expect(stage.writes()).toEqual([]);
      expect((await stage.sync({ writes: false })).contacts.held.opt_out).toBe(20);
      approve(stage, plan);
      expect(await stage.sync({ mode })).toMatchObject({
        status: 'done',
        contacts: { applied: { opt_out: 20 }, held: { opt_out: 0 } },
      });
      expect(stage.writes()).toHaveLength(20);
      expect((await stage.sync()).status).toBe('done');
      expect(stage.writes()).toEqual([]);
    },
  );

  test.each(['full', 'fast'] as const)(
    'is applied by %s runs when the hold ends, and not before',
    async (mode) => {
      const stage = await subscribed();
      exportOf(stage, allOut());
      for (let day = 0; day < 3; day += 1) {
        expect(await stage.sync({ mode })).toMatchObject(held(20));
        await stage.clock.advance(23.9 * hour);
      }
      expect(await stage.sync({ mode })).toMatchObject(held(20));
      expect(countOut(stage)).toBe(0);
      await stage.clock.advance(hour);
      expect(await stage.sync({ mode })).toMatchObject({
        status: 'done',
        contacts: { applied: { opt_out: 20 }, held: { opt_out: 0 } },
      });
      expect(countOut(stage)).toBe(20);
      expect(stage.snapshot.holds.oldest('opt_out')).toBeUndefined();
    },
  );

  test.each(['full', 'fast'] as const)(
    'goes on waiting while a %s run cannot read the column, and no longer than that',
    async (mode) => {
      const stage = await subscribed();
      const unread = allOut().map((one) => ({ ...one, ch_news: '???' }));
      for (const people of [allOut(), unread, allOut()]) {
        exportOf(stage, people);
        await stage.sync({ mode });
        await stage.clock.advance(25 * hour);
      }
      expect(await stage.sync({ mode })).toMatchObject({ contacts: { applied: { opt_out: 20 } } });
      expect(stage.snapshot.holds.oldest('opt_out')).toBeUndefined();
    },
  );

  test('does not wait anew where the column could not be read when its time was over', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    await stage.sync();
    exportOf(
      stage,
      allOut().map((one) => ({ ...one, ch_news: '???' })),
    );
    await stage.clock.advance(73 * hour);
    await stage.sync();
    expect(stage.writes()).toEqual([]);
    exportOf(stage, allOut());
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 20 });
  });

  test('starts a new hold after it was corrected', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    await stage.sync();
    exportOf(stage, range(0, 20));
    expect((await stage.sync({ mode: 'fast' })).status).toBe('done');
    await stage.clock.advance(80 * hour);
    exportOf(stage, allOut());
    expect(await stage.sync()).toMatchObject(held(20));
    expect(stage.writes()).toEqual([]);
  });

  test('does not hold the opt-out of one person that is stated the day after', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut(5));
    expect(await stage.sync()).toMatchObject(held(15));
    await stage.clock.advance(24 * hour);
    exportOf(stage, [person(0, { ch_news: 'no' }), ...allOut(5).slice(1)]);
    expect(await stage.sync({ mode: 'fast' })).toMatchObject({
      ...held(15),
      contacts: { applied: { opt_out: 1 }, held: { opt_out: 15 } },
    });
    expect(isOut(stage, 0)).toBe(true);
    // Nor when the others have been applied in the same week.
    await stage.clock.advance(49 * hour);
    await stage.sync();
    expect(countOut(stage)).toBe(16);
    exportOf(stage, [...[0, 1].map((at) => person(at, { ch_news: 'no' })), ...allOut(5).slice(2)]);
    expect(await stage.sync()).toMatchObject({ status: 'done' });
    expect(countOut(stage)).toBe(17);
  });
});

describe('a person whose opt-out is held', () => {
  test('is opted in nowhere, and is opted in once the CRM no longer states the opt-out', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    for (const one of stage.people) one['ch_product'] = 'yes';
    expect(await stage.sync()).toMatchObject(held(20));
    expect(await stage.sync({ mode: 'fast' })).toMatchObject(held(20));
    expect(stage.writes()).toEqual([]);
    exportOf(
      stage,
      range(0, 20).map((one) => ({ ...one, ch_product: 'yes' })),
    );
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_in: 20, opt_out: 0 });
  });

  test('is judged separately for another channel, and each hold ends at its own time', async () => {
    const stage = staged();
    stage.people.push(...range(0, 20).map((one) => ({ ...one, ch_product: 'yes' })));
    await stage.sync();
    exportOf(
      stage,
      allOut().map((one) => ({ ...one, ch_product: 'yes' })),
    );
    expect(await stage.sync()).toMatchObject(held(20));
    await stage.clock.advance(48 * hour);
    for (const one of stage.people.slice(0, 2)) one['ch_product'] = 'no';
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 2 },
      held: { opt_out: 20 },
    });
    for (const one of stage.people) one['ch_product'] = 'no';
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 0 },
      held: { opt_out: 20 },
    });
    await stage.clock.advance(25 * hour);
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 20 },
      held: { opt_out: 18 },
    });
    await stage.clock.advance(48 * hour);
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 18 },
      held: { opt_out: 0 },
    });
  });

  test('is opted out at once by an event, which holds nobody and counts', async () => {
    const stage = await subscribed({ path: snapshotPath() });
    exportOf(stage, allOut());
    await stage.sync();
    expect(await stage.clock.run(stage.one('1003'))).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_out: 1 }, held: { opt_out: 0 } },
    });
    expect(isOut(stage, 3)).toBe(true);
    expect(await stage.sync()).toMatchObject(held(19));
    // More than the guard lets pass in a week, one by one.
    for (let at = 4; at < 11; at += 1) await stage.clock.run(stage.one(`${1000 + at}`));
    expect(countOut(stage)).toBe(8);
    const noted = stage.snapshot.meta.get('opt-outs past the limit');
    expect(JSON.parse(noted ?? '{}')).toMatchObject({ people: 8, most: 6 });
  });

  test('is stored with all others or not at all, or those that are not would pass', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    const { holds } = stage.snapshot;
    const { hold } = holds;
    const stored: unknown[] = [];
    holds.hold = ({ guard, after, upTo }, made) => {
      if (guard === 'opt_out') stored.push({ after, upTo });
      hold({ guard, after, upTo }, made);
    };
    await stage.sync();
    expect(new Set(stored.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify(everything)]),
    );
  });

  test('stays held after an uncertified reading that names somebody else', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    await stage.sync();
    stage.people.splice(1);
    Object.assign(stage.certificate, { complete: false, why: 'cut short', fix: 'mend it' });
    const summary = await stage.sync({ mode: 'fast' });
    expect(summary.contacts.held.opt_out).toBe(20);
    const [plan] = stage.snapshot.holds.current();
    expect(summary.problems[0]?.fix).toContain(`approve ${plan?.plan}`);
    Object.assign(stage.certificate, { complete: true });
    expect(stage.writes()).toEqual([]);
  });
});

describe('a person whose opt-out is held is opted in nowhere under another address', () => {
  const moved = 'moved@example.com';
  const news = { email: moved, ch_product: 'yes' };

  /** A record of one of them has a new address, or the contact has that of another record. */
  test.each([
    ['the record', 'full', allOut().toSpliced(3, 1, { ...person(3), ch_news: 'no', ...news })],
    ['the record', 'fast', allOut().toSpliced(3, 1, { ...person(3), ch_news: 'no', ...news })],
    ['the other record', 'full', [...allOut(), { id: '9', ...news }]],
    ['the other record', 'event', [...allOut(), { id: '9', ...news }]],
    ['the contact', 'full', [...allOut(), { id: '8', ...news }]],
    ['the contact', 'event', [...allOut(), { id: '8', ...news }]],
  ] as const)('that %s has in a run: %s', async (which, mode, people) => {
    const stage = await subscribed({ path: snapshotPath() });
    exportOf(stage, [...allOut(), { id: '9', email: person(3).email }]);
    expect(await stage.sync()).toMatchObject(held(20));
    if (which === 'the contact') {
      stage.emulator.dashboard.editContact(person(3).email, { email: moved });
    }
    exportOf(stage, [...people]);
    const id = which === 'the contact' ? '8' : '9';
    if (mode === 'event') await stage.clock.run(stage.one(id));
    else expect(await stage.sync({ mode })).toMatchObject(held(20));
    expect(stage.writes()).toEqual([]);
    await stage.clock.advance(73 * hour);
    await stage.sync();
    expect((await stage.sync()).status).toBe('done');
    const product = stage.emulator.world
      .contact(moved)
      ?.channels.find(({ id }) => id === 'ch_product');
    expect(product?.subscription).toBe('opt_in');
  });

  test('until the CRM withdraws the opt-out', async () => {
    const stage = await subscribed({ path: snapshotPath() });
    exportOf(stage, allOut());
    await stage.sync();
    exportOf(stage, allOut().toSpliced(3, 1, { ...person(3), ...news }));
    await stage.clock.run(stage.one('1003'));
    expect(stage.emulator.world.contact(moved)?.channels).toHaveLength(2);
  });
});

describe('the guard does not hold', () => {
  test('an opt-out that an earlier run let through and could not send', async () => {
    const stage = await subscribed();
    exportOf(stage, [person(0, { ch_news: 'no' }), ...range(1, 20)]);
    const stop = new AbortController();
    const foresees = () => stop.abort(new Interrupted('SIGTERM'));
    expect((await stage.sync({ stop: stop.signal, foresees })).status).toBe('interrupted');
    expect(countOut(stage)).toBe(0);
    exportOf(stage, allOut());
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 1 },
      held: { opt_out: 19 },
    });
    expect(isOut(stage, 0)).toBe(true);
  });

  test('an opt-out of a channel that a creation has added', async () => {
    const stage = staged({ platform: { quirks: ['all-channels=opt_in'] } });
    stage.people.push(...range(0, 20).map((one) => ({ ...one, ch_product: 'no' })));
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 20, opt_out: 20 } },
    });
  });

  test('the opt-out of everybody where they are three', async () => {
    const stage = staged();
    stage.people.push(...range(0, 3));
    await stage.sync();
    exportOf(stage, allOut().slice(0, 3));
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 3 });
  });
});

test('the guard holds the opt-out of everybody where they are four, whatever the floor is', async () => {
  const stage = staged({ guards: { opt_out: { percent: 99, floor: 100, holdForMs: hour } } });
  stage.people.push(...range(0, 5));
  await stage.sync();
  exportOf(stage, [person(0), ...allOut().slice(1, 5)]);
  expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 4 });
  exportOf(stage, range(0, 5));
  await stage.sync();
  stage.people.splice(0, 5, ...range(0, 5));
  const before = countOut(stage);
  exportOf(stage, [...range(5, 9), ...range(0, 5)]);
  await stage.sync();
  exportOf(stage, [...allOut().slice(5, 9), ...allOut().slice(0, 5)]);
  expect((await stage.sync()).contacts.held.opt_out).toBe(9 - before);
});

describe('a clock', () => {
  const skewed = async () => {
    const skew = { ms: 0 };
    const stage = await subscribed({ ahead: () => skew.ms, path: snapshotPath() });
    exportOf(stage, allOut());
    return { skew, stage };
  };

  test('put back holds nobody longer', async () => {
    const { skew, stage } = await skewed();
    expect(await stage.sync()).toMatchObject(held(20));
    skew.ms = -1000 * hour;
    await stage.clock.advance(71 * hour);
    expect(await stage.sync({ mode: 'fast' })).toMatchObject(held(20));
    await stage.clock.advance(2 * hour);
    expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ opt_out: 20 });
  });

  test('running ahead ends no hold, and is told in each run until it is right', async () => {
    const { skew, stage } = await skewed();
    await stage.sync();
    skew.ms = 96 * hour;
    await stage.clock.run(stage.look());
    expect(storedDifference(stage.snapshot.meta)).toMatchObject({ aheadMs: 96 * hour });
    for (const mode of ['fast', 'full'] as const) {
      const summary = await stage.sync({ mode });
      expect(summary).toMatchObject(held(20));
      expect(summary.reasons.join()).toContain(
        'the clock of this machine is 4 days ahead of that of the platform, so that nothing',
      );
    }
    skew.ms = 0;
    expect((await stage.sync({ mode: 'fast' })).reasons.join()).not.toContain('the clock');
    expect(storedDifference(stage.snapshot.meta)).toBeUndefined();
    await stage.clock.advance(73 * hour);
    expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ opt_out: 20 });
  });

  test.each<[string, [boolean, boolean], number]>([
    ['never states its time: ours counts', [false, false], 20],
    ['states its time late, four days behind ours: a hold begins then', [false, true], 0],
    ['states its time no more: the last difference counts', [true, false], 0],
  ])('the platform %s', async (_, states, applied) => {
    const skew = { ms: 0, isStated: states[0] };
    const stage = await subscribed({
      ahead: () => skew.ms,
      wire: (send) => async (request, signal) => {
        const { headers, ...answer } = await send(request, signal);
        const { date: _, ...others } = headers;
        return { ...answer, headers: skew.isStated ? headers : others };
      },
    });
    exportOf(stage, allOut());
    expect(await stage.sync()).toMatchObject(held(20));
    skew.ms = 96 * hour;
    if (skew.isStated) await stage.sync();
    skew.isStated = states[1];
    expect((await stage.sync()).contacts.applied['opt_out']).toBe(applied);
  });
});

test('a CRM that lists changes repeats held people until the hold ends', async () => {
  const stage = await subscribed({ tellsChanges: true });
  await stage.sync({ mode: 'fast' });
  exportOf(stage, allOut());
  stage.changed.push(...range(0, 20).map(({ id }) => id));
  for (const _ of [1, 2]) expect(await stage.sync({ mode: 'fast' })).toMatchObject(held(20));
  await stage.clock.advance(73 * hour);
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({
    status: 'done',
    contacts: { applied: { opt_out: 20 }, held: { opt_out: 0 } },
  });
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({
    status: 'done',
    contacts: { desired: 0 },
  });
});

describe('a hold continues under a new address', () => {
  const anew = () => allOut().map((one, at) => ({ ...one, email: `q${at}@example.com` }));
  const rename = (stage: Stage): void => {
    for (const [at, { email }] of anew().entries()) {
      stage.emulator.dashboard.editContact(person(at).email, { email });
    }
  };

  test.each([
    ['when it changed in the CRM and on the platform at once', false, anew()],
    ['where the platform had it first', true, anew()],
    [
      'when the CRM has made the records anew',
      false,
      anew().map((one) => ({ ...one, id: `new ${one.id}` })),
    ],
  ])('%s', async (_what, isFirst, people) => {
    const stage = await subscribed();
    if (isFirst) {
      rename(stage);
      await stage.sync();
    }
    exportOf(stage, allOut());
    expect(await stage.sync()).toMatchObject(held(20));
    await stage.clock.advance(71 * hour);
    if (!isFirst) rename(stage);
    exportOf(stage, people);
    expect(await stage.sync()).toMatchObject(held(20));
    await stage.clock.advance(2 * hour);
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 20 });
  });

  test('but not under the address of somebody else', async () => {
    const stage = await subscribed();
    exportOf(stage, allOut());
    await stage.sync();
    await stage.clock.advance(71 * hour);
    const others = anew().map((one) => ({ ...one, id: `new ${one.id}` }));
    for (const { email } of others) {
      stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
    }
    exportOf(stage, [...range(0, 20), ...others]);
    expect(await stage.sync()).toMatchObject(held(20));
    await stage.clock.advance(2 * hour);
    expect(await stage.sync()).toMatchObject(held(20));
  });
});

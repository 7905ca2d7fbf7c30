/** The guard for opt-ins: a column that came empty takes back no list of opt-outs. */
import { describe, expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { approve, exportOf, person, range } from '../../support/engine/change-volume.ts';

/** Nothing but the rule itself holds an opt-in. */
const guards = { opt_in: { percent: 100, floor: 1_000_000 } };

const no = (at: number, more: Record<string, unknown> = {}) =>
  person(at, { ch_news: 'no', ...more });

/** Twelve people of ours; the CRM has stated the opt-outs of the first `out` of them. */
async function optedOut(out: number, options: StageOptions = {}): Promise<Stage> {
  const stage = openStage({ guards, ...options });
  exportOf(stage, range(0, 12));
  await stage.sync();
  exportOf(stage, [...range(0, out).map((_, at) => no(at)), ...range(out, 12)]);
  expect((await stage.sync()).contacts.applied['opt_out']).toBe(out);
  stage.writes();
  return stage;
}

/** The first `back` of `out` people say yes again. */
const withdrawn = (back: number, out: number) => [
  ...range(0, back),
  ...range(back, out).map((_, at) => no(back + at)),
  ...range(out, 12),
];

const isIn = (stage: Stage, { email }: { email: string }): boolean =>
  stage.emulator.world.contact(email)?.channels.find(({ id }) => id === 'ch_news')?.subscription ===
  'opt_in';
const countIn = (stage: Stage): number => range(0, 12).filter((one) => isIn(stage, one)).length;

describe('a column that came empty', () => {
  test.each<[string, object]>([
    ['a full run', {}],
    ['a fast run', { mode: 'fast' }],
    ['a first load', { firstLoad: true }],
  ])('is held in %s, with its likely cause, until it is approved', async (_, options) => {
    const stage = await optedOut(6);
    exportOf(stage, range(0, 12));
    const { plan, problems, ...summary } = await stage.sync(options);
    expect(summary).toMatchObject({ status: 'held', contacts: { held: { opt_in: 6 } } });
    expect(stage.writes()).toEqual([]);
    expect(problems).toMatchObject([{ class: 'held', key: 'opt_in' }]);
    expect(problems[0]?.reason).toContain(
      '6 of the 6 people whose opt-out the CRM stated would be opted in: is a column empty in this export?',
    );
    expect(problems[0]?.fix).toContain(`crm-mirror approve ${plan}`);
    // The next run gives the same reason.
    expect((await stage.sync({ ...options, writes: false })).problems[0]?.reason).toBe(
      problems[0]?.reason,
    );
    approve(stage, plan);
    expect(await stage.sync(options)).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_in: 6 }, held: { opt_in: 0 } },
    });
    expect(countIn(stage)).toBe(12);
  });

  test.each<[string, object]>([
    ['a full run', {}],
    ['a first load', { firstLoad: true }],
  ])('holds no other opt-in of %s', async (_, options) => {
    const stage = await optedOut(6);
    exportOf(stage, range(0, 15));
    expect(await stage.sync(options)).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 3 }, held: { opt_in: 6 } },
    });
    expect(countIn(stage)).toBe(6);
    exportOf(stage, range(0, 16));
    expect(await stage.sync(options)).toMatchObject({
      contacts: { applied: { create: 1 }, held: { opt_in: 6 } },
    });
  });

  test('holds the other channels of these people as well', async () => {
    const stage = await optedOut(6);
    exportOf(
      stage,
      range(0, 12).map((one) => ({ ...one, ch_product: '1' })),
    );
    expect(await stage.sync()).toMatchObject({
      contacts: { changes: { opt_in: 18 }, applied: { opt_in: 6 }, held: { opt_in: 6 } },
    });
  });

  test('holds the rest, too, of people of whom some were let through before', async () => {
    const stage = await optedOut(9);
    exportOf(stage, withdrawn(3, 9));
    expect((await stage.sync()).contacts.applied['opt_in']).toBe(3);
    exportOf(stage, range(0, 12));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 6 } } });
  });

  test('is held together with whoever follows later, and ends when the column is back', async () => {
    const stage = await optedOut(6);
    exportOf(stage, withdrawn(4, 6));
    const { plan } = await stage.sync();
    exportOf(stage, withdrawn(5, 6));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 5 } } });
    approve(stage, plan);
    expect(await stage.sync()).toMatchObject({
      contacts: { applied: { opt_in: 4 }, held: { opt_in: 1 } },
    });
    exportOf(stage, [...range(0, 4), no(4), no(5), ...range(6, 12)]);
    expect(await stage.sync()).toMatchObject({ status: 'done', contacts: { held: { opt_in: 0 } } });
    expect(countIn(stage)).toBe(10);
  });

  test('is held where the people have new addresses', async () => {
    const stage = await optedOut(6);
    const moved = range(0, 6).map((one) => ({ ...one, email: `new-${one.email}` }));
    exportOf(stage, [...moved, ...range(6, 12)]);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 0, opt_in: 0 }, held: { opt_in: 6 } },
    });
    expect(moved.filter((one) => isIn(stage, one))).toEqual([]);
  });
});

/** A first load of `all` people, every `nth` of whom the CRM has opted out: nobody creates them. */
async function neverCreated(all: number, nth: number, options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  exportOf(
    stage,
    range(0, all).map((one, at) => (at % nth === 0 ? no(at) : one)),
  );
  await stage.sync();
  return stage;
}
const count = ({ emulator }: Stage): number => emulator.world.contacts().length;

describe('people who were never created, because the CRM had stated their opt-out', () => {
  test.each([[2000, 7, 286]])(
    'of %i people, every %ith: all %i wait when the column comes empty',
    async (all, nth, out) => {
      const stage = await neverCreated(all, nth);
      expect(count(stage)).toBe(all - out);
      exportOf(stage, range(0, all));
      const { plan, problems, ...summary } = await stage.sync({ writes: false });
      expect(summary).toMatchObject({ status: 'held', contacts: { held: { opt_in: out } } });
      expect(problems[0]?.reason).toContain(
        `${out} of the ${out} people whose opt-out the CRM stated would be opted in`,
      );
      expect(await stage.sync()).toMatchObject({ plan, status: 'held' });
      expect(await stage.sync({ mode: 'fast' })).toMatchObject({
        status: 'held',
        contacts: { held: { opt_in: out } },
      });
      expect(count(stage)).toBe(all - out);
      approve(stage, plan);
      expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: out } } });
    },
  );
});

type Row = Record<string, unknown>;

/** Twelve people, of whom the CRM opts six out before the mirror has created anybody. */
const six = [...range(0, 6).map((_, at) => no(at)), ...range(6, 12)];

/** What a run after these exports, each read by one run, holds of the six people. */
async function heldAfter(exports: Row[][], options: StageOptions = {}): Promise<number> {
  const stage = openStage(options);
  for (const people of exports.slice(0, -1)) {
    exportOf(stage, people);
    await stage.sync();
  }
  exportOf(stage, exports.at(-1) ?? []);
  const { contacts } = await stage.sync();
  expect(contacts.applied['create']).toBe(0);
  expect(range(0, 6).filter((one) => isIn(stage, one))).toEqual([]);
  return contacts.held.opt_in;
}

const all = range(0, 12);
const blank = six.map((one, at) => (at < 6 ? { ...one, ch_news: '' } : one));
const broken = six.map((one, at) => (at < 6 ? { ...one, ch_product: 'perhaps' } : one));
const renumbered = all.map((one) => ({ ...one, id: `new-${one.id}` }));
const readdressed = all.map((one, at) => (at < 6 ? { ...one, email: `new-${one.email}` } : one));
const left = range(0, 6).map((one) => ({ ...one, unsubscribed: 'yes' }));
const unread = range(0, 6).map((one) => ({ ...one, unsubscribed: 'maybe' }));
const eightOut = range(12, 20).map((_, at) => no(12 + at));
const eightSilent = range(12, 20).map((one) => ({ ...one, ch_news: '' }));
const both = [...six, ...range(0, 6).map((one) => ({ ...one, id: `other-${one.id}` }))];

test.each<[string, Row[][], StageOptions?]>([
  ['the column', [six, all]],
  ['the column, and it was blank in between', [six, blank, all]],
  ['a record that was invalid, and stated it', [broken, all]],
  [
    'a record that was flagged, and stated it',
    [six.map((one, at) => (at < 6 ? { ...one, deleted: 'true' } : one)), all],
  ],
  ['the column, and the records have other ids', [six, renumbered]],
  ['the column, and the records have other addresses', [six, readdressed]],
  [
    'the column, and the other record of each person said yes all along',
    [both, [...all, ...both.slice(12)]],
  ],
  ['the column, and people were missing in between', [six, six.slice(5), all]],
  [
    'one column, and another one states more opt-outs',
    [
      [...left, ...range(6, 12), ...eightOut],
      [...all, ...eightOut],
    ],
  ],
  [
    'the column, and most of its people have no opinion any more',
    [
      [...left, ...range(6, 12), ...eightSilent.map((one) => ({ ...one, unsubscribed: 'yes' }))],
      [...all, ...eightSilent],
    ],
  ],
  [
    'opt-outs that could not be read',
    [
      [...unread, ...range(6, 12), ...eightOut],
      [...all, ...eightOut],
    ],
  ],
  [
    'deletion flags that could not be read',
    [[...range(0, 6).map((one) => ({ ...one, deleted: '?' })), ...range(6, 12)], all],
  ],
  ['an opt-out that could not be read in between', [six, [...unread, ...range(6, 12)], all]],
  [
    'the column of one channel of two',
    [
      six.map((one, at) => ({ ...one, ch_product: at > 5 ? 'no' : '' })),
      all.map((one, at) => ({ ...one, ch_product: at > 5 ? 'no' : '' })),
    ],
  ],
])('never created, and withdrawn: %s', async (_, exports, options) => {
  expect(await heldAfter(exports, options)).toBe(6);
});

test('a word that the configuration names meanwhile was no opt-out', async () => {
  const options: StageOptions = { manner: 'old' };
  const stage = openStage(options);
  exportOf(stage, [...unread, ...range(6, 12)]);
  await stage.sync();
  Object.assign(options, { manner: 'new' });
  exportOf(stage, all);
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 6 } },
  });
});

test('a first load that died after its first creation has remembered what it read', async () => {
  let left = 1;
  const dying: StageOptions['wire'] = (send) => async (request, signal) => {
    if (request.method === 'POST' && left-- <= 0) throw new Error('killed');
    return send(request, signal);
  };
  const stage = openStage({ wire: dying });
  exportOf(stage, six);
  await expect(stage.sync()).rejects.toThrow('killed');
  left = Infinity;
  exportOf(stage, all);
  const summary = await stage.sync({ firstLoad: true });
  expect(summary).toMatchObject({ status: 'held', contacts: { held: { opt_in: 6 } } });
  expect(countIn(stage)).toBe(6);
});

test.each<[string, Row[][]]>([
  ['of which nothing was known', []],
  ['that had stated no opinion', [blank]],
])(
  'an incomplete reading remembers opt-outs of records %s, and forgets none',
  async (_, before) => {
    const stage = openStage();
    for (const people of before) {
      exportOf(stage, people);
      await stage.sync();
    }
    exportOf(stage, six);
    Object.assign(stage.certificate, { complete: false, why: 'cut short', fix: 'ask again' });
    await stage.sync();
    exportOf(stage, all);
    await stage.sync();
    Object.assign(stage.certificate, { complete: true });
    exportOf(stage, all);
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 6 } } });
  },
);

test('one person who withdraws an opt-out is never held', async () => {
  const stage = openStage();
  exportOf(stage, six);
  await stage.sync();
  exportOf(stage, all);
  for (const { email } of all.slice(0, 6)) {
    expect(await stage.sync({ mode: { single: email } })).toMatchObject({ status: 'done' });
  }
  expect(countIn(stage)).toBe(12);
});

test('what the CRM stated is dropped once the record has been gone for long', async () => {
  const stage = openStage();
  const day = 86_400_000;
  exportOf(stage, six);
  await stage.sync();
  exportOf(stage, six.slice(5));
  await stage.sync();
  const of = { kind: 'contact' as const, key: 'p0@example.com', ids: [], mapping: '' };
  expect(stage.snapshot.stated.optOutsOf(of)).toEqual(['ch_news']);
  await stage.clock.advance(91 * day);
  exportOf(stage, six.slice(5));
  await stage.sync();
  expect(stage.snapshot.stated.optOutsOf(of)).toEqual([]);
});

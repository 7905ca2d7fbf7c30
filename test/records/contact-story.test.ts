/** What follows from a decision: once it is carried out, nothing is left to do. */
import { describe, expect, test } from 'vitest';
import { observedBody } from '../../src/records/contact/observe/contact-state.ts';
import type { DesiredRow, ObservedRow, RecordedRow } from '../../src/domain/record.ts';
import {
  ANN,
  bothIn,
  remembered,
  shown,
  steps,
  wish,
  carryOut,
  LATER,
  NEWS,
  open,
  PRODUCT,
  states,
  type States,
  acked,
  bodyOf,
  newsOf,
} from '../support/records/record-stage.ts';
import { sampled } from '../support/extent.ts';

const words = ['yes', 'no', ''];
const desires = words.flatMap((newsletter) =>
  words.flatMap((product) =>
    ['', 'yes'].map((archived) => wish({ newsletter, product, archived })),
  ),
);
const shows = ['opt_in', 'opt_out', undefined] as const;
const observations: ObservedRow[][] = [
  [],
  ...shows.flatMap((news) =>
    shows.flatMap((product) =>
      ['subscribed', 'blocked'].map((status) => [
        shown({ status, ...(news && { news }), ...(product && { product }) }),
      ]),
    ),
  ),
  [shown({ id: 'con_1', news: 'opt_in' }), shown({ id: 'con_2', product: 'opt_in' })],
];
const pasts = ['in', 'us', 'platform', undefined] as const;
const memories: (RecordedRow | undefined)[] = [
  undefined,
  ...pasts.flatMap((news) => pasts.map((product) => remembered({ news, product }))),
  remembered({ id: undefined, news: 'in' }),
  remembered({ id: undefined, left: true }),
];

interface World extends States {
  wanted: DesiredRow;
}

function worlds(): World[] {
  return desires.flatMap((wanted) =>
    observations.flatMap((observed) =>
      memories.flatMap((recorded) =>
        [true, false].map((certified) => ({
          ...states({ desired: [wanted], observed, recorded, certified }),
          wanted,
        })),
      ),
    ),
  );
}

/** The platform after it did all that was asked of it. */
function afterwards(recorded: RecordedRow | undefined): ObservedRow[] {
  if (recorded?.id === undefined) return [];
  const { contacts } = bodyOf(recorded);
  const { left, channels } = observedBody.parse(contacts[0]);
  const news = channels[NEWS];
  const product = channels[PRODUCT];
  const status = left ? 'blocked' : 'subscribed';
  return [shown({ id: recorded.id, status, ...(news && { news }), ...(product && { product }) })];
}

const policies = [
  { absent: 'keep', missing: 'respect' },
  { absent: 'opt_out', missing: 'recreate' },
] as const;

describe.each(sampled(policies, 2))('under %j, in every world', (contacts) => {
  const kind = open({ contacts }).contacts;
  const alone = worlds().filter(({ observed }) => observed.length < 2);

  test('nothing remains after the changes, in a fast and in a full run', () => {
    for (const { wanted, ...world } of alone) {
      const recorded = carryOut(kind, world);
      const next = { ...world, recorded, observed: [] };
      const assumed = kind.decide({ ...next, sight: 'assumed' });
      const listed = kind.decide({ ...next, observed: afterwards(recorded) });
      expect({ wanted, world, changes: [assumed.changes, listed.changes] }).toEqual({
        wanted,
        world,
        changes: [[], []],
      });
    }
  });

  test('a person is settled exactly when nothing remains, and no problem prints the address', () => {
    const order = new Map<string, number>(
      Object.entries({ opt_out: 0, create: 1, opt_in: 1, delete: 2 }),
    );
    let settled = 0;
    const printed: string[] = [];
    for (const { wanted, ...world } of worlds()) {
      const { changes, problems, note } = kind.decide(world);
      const done = world.certified && changes.length + problems.length === 0;
      if (note?.desired !== undefined) settled += 1;
      const desired = done && note ? wanted.fingerprint : undefined;
      if (note?.desired !== desired) expect({ world, desired: note?.desired }).toEqual({ desired });
      printed.push(...problems.map(({ reason, fix }) => `${reason} ${fix}`));
      // Every change is about this person, and has its place in the order.
      for (const { op, phase, key, kind: of } of changes) {
        expect([key, of, phase]).toEqual([ANN, 'contact', order.get(op)]);
        expect(world.certified || op === 'opt_out').toBe(true);
      }
    }
    expect(settled).toBeGreaterThan(100);
    expect(printed.length).toBeGreaterThan(100);
    expect(printed.filter((text) => /@|\bann\b|con_\d|\n/.test(text))).toEqual([]);
  });
});

describe('an acknowledged change', () => {
  const kind = open().contacts;
  const again = open({ contacts: { missing: 'recreate' } }).contacts;

  test('makes a created person ours, with both channels', () => {
    const recorded = carryOut(kind, states({ desired: [bothIn()] }));
    expect(recorded).toMatchObject({ id: 'con_new', ownership: 'created', seenAt: LATER });
    expect(bodyOf(recorded).channels).toEqual({
      [NEWS]: { is: 'opt_in', by: 'us' },
      [PRODUCT]: { is: 'opt_in', by: 'us' },
    });
  });

  test('makes an opt-out ours by a 2xx, and the platform’s when it was found there', () => {
    const desired = [wish({ newsletter: 'no' })];
    const { changes, note } = kind.decide(
      states({ desired, observed: [shown({ news: 'opt_in' })] }),
    );
    const by = (found: boolean) =>
      newsOf(kind.acknowledge(note, changes[0]!, acked('con_1', { found })));
    expect(by(false)).toEqual({
      is: 'opt_out',
      by: 'us',
      acked: LATER,
      bound: ['1'],
      cause: 'stated',
      stated: ['1'],
    });
    expect(by(true)).toMatchObject({ is: 'opt_out', by: 'platform' });
  });

  test('leads to a new decision after a creation: unwanted channels are opted out at once', () => {
    const desired = [wish({ newsletter: 'yes', product: 'no' })];
    const [change] = kind.decide(states({ desired })).changes;
    const observed = shown({ news: 'opt_in', product: 'opt_in' });
    const recorded = kind.acknowledge(undefined, change!, acked('con_1', { observed }));
    const next = kind.decide(states({ desired, recorded, sight: 'assumed' }));
    expect(steps(next)).toEqual(['opt_out ch_product → con_1']);
  });

  test('without the new membership is not taken for its loss', () => {
    const desired = [wish({ newsletter: 'yes' })];
    const [change] = kind.decide(states({ desired })).changes;
    const recorded = kind.acknowledge(undefined, change!, acked('con_1', { observed: shown() }));
    const next = kind.decide(states({ desired, recorded, sight: 'assumed' }));
    expect(next).toMatchObject({ changes: [], problems: [] });
  });

  test('with an opt-out in the answer to a creation records a default, not the person’s', () => {
    const desired = [wish({ newsletter: 'yes' })];
    const [change] = kind.decide(states({ desired })).changes;
    const observed = shown({ news: 'opt_in', product: 'opt_out' });
    const recorded = kind.acknowledge(undefined, change!, acked('con_1', { observed }));
    const known = states({ desired: [bothIn()], recorded });
    const fast = kind.decide({ ...known, sight: 'assumed' });
    expect(steps(fast)).toEqual(['opt_in ch_product → con_1']);
    expect(steps(kind.decide({ ...known, observed: [observed] }))).toEqual(steps(fast));
  });

  test('starts over for a new contact: memberships of the vanished one are no loss', () => {
    const recorded = remembered({ id: undefined, news: 'in', product: 'in' });
    const desired = [bothIn()];
    const { changes } = again.decide(states({ desired, recorded }));
    const observed = shown({ id: 'con_2', news: 'opt_in' });
    const made = again.acknowledge(recorded, changes[0]!, acked('con_2', { observed }));
    const next = again.decide(states({ desired, recorded: made, sight: 'assumed' }));
    expect(next.problems).toEqual([]);
    expect(steps(next)).toEqual(['opt_in ch_product → con_2']);
  });

  const deletion = { kind: 'contact', key: ANN, op: 'delete', part: '', phase: 2 } as const;
  const afterDelete = (row: RecordedRow | undefined, target: string) =>
    kind.acknowledge(row, { ...deletion, target, body: '{}' }, acked(target));

  test('a delete leaves nothing recorded', () => {
    expect(afterDelete(remembered({ news: 'in' }), 'con_1')).toBeUndefined();
  });

  test('a delete keeps the opt-outs of ours that another contact of the address has', () => {
    const both = [shown({ news: 'opt_in' }), shown({ id: 'con_2', news: 'opt_in' })];
    const wanted = [wish({ newsletter: 'no' })];
    const recorded = carryOut(kind, states({ desired: wanted, observed: both }));
    const left = afterDelete(recorded, 'con_1');
    expect(left).toMatchObject({ id: undefined, ownership: 'noted' });
    const observed = [shown({ id: 'con_2', news: 'opt_out' })];
    const { note } = kind.decide(states({ desired: wanted, recorded: left, observed }));
    expect(newsOf(note)).toMatchObject({ is: 'opt_out', by: 'us' });
    expect(afterDelete(left, 'con_2')).toBeUndefined();
  });
});

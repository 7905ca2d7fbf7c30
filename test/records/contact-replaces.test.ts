/** A channel that took over from another one: who left that one is not opted in here. */
import { describe, expect, test } from 'vitest';
import { observe } from '../../src/records/contact/observe/observed-contact.ts';
import type { Decision } from '../../src/records/decision.ts';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import type { Subscription } from '../../src/platform/request-schemas.ts';
import { openStage } from '../support/engine/engine-stage.ts';
import {
  ANN,
  bothIn,
  conflicts,
  remembered,
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
} from '../support/records/record-stage.ts';

const OLD = 'ch_old';
const kind = open({ replaces: { [NEWS]: OLD } }).contacts;
const looked = new Set([NEWS, PRODUCT, OLD]);

type Shown = Partial<Record<'news' | 'old' | 'product', Subscription>>;

function shown({ news, old, product }: Shown) {
  const all = [
    { id: NEWS, subscription: news },
    { id: OLD, subscription: old },
    { id: PRODUCT, subscription: product },
  ];
  const channels = all.flatMap(({ id, subscription }) =>
    subscription ? [{ id, name: '', subscription }] : [],
  );
  return observe({ id: 'con_1', email: ANN, status: 'subscribed', channels }, looked);
}

const inNews = wish({ newsletter: 'yes' });
const outOfNews = wish({ newsletter: 'no' });
const decide = (known: Partial<States>): Decision =>
  kind.decide(states({ desired: [inNews], ...known }));

/** What is recorded after these were seen one after the other. */
function after(sights: readonly Shown[], desired = [wish()]): RecordedRow | undefined {
  return sights.reduce<RecordedRow | undefined>(
    (recorded, sight) =>
      kind.decide(states({ desired, recorded, observed: [shown(sight)] })).note ?? recorded,
    undefined,
  );
}

/** The same with the opt-out of the old channel as ours. */
function ours(row: RecordedRow | undefined): RecordedRow | undefined {
  if (!row) return row;
  const body = bodyOf(row);
  const channels = { ...body.channels, [OLD]: { is: 'opt_out', by: 'us' } };
  return { ...row, body: canonicalJson({ ...body, channels }) };
}

describe('a person who left the replaced channel', () => {
  test.each([{ old: 'opt_out' }, { old: 'opt_out', product: 'opt_in' }] as Shown[])(
    'shown as %j, is not opted in: a conflict with its own words',
    (sight) => {
      const decision = decide({ observed: [shown(sight)] });
      expect(steps(decision)).toEqual([]);
      expect(decision.problems).toMatchObject([
        { part: NEWS, class: 'conflict', reason: expect.stringContaining('replaces') },
      ]);
    },
  );
  test('stays out in later runs, also when the old channel is gone', () => {
    for (const sight of [{ old: 'opt_out' }, {}] as Shown[]) {
      const recorded = after([{ old: 'opt_out' }, sight]);
      expect(conflicts(decide({ recorded, observed: [shown(sight)] }))).toEqual([NEWS]);
      expect(conflicts(decide({ recorded, sight: 'assumed' }))).toEqual([NEWS]);
    }
  });
  test('stays out who was in both at a time, and left the old one later', () => {
    const sights: Shown[] = [
      { old: 'opt_in', news: 'opt_in' },
      { old: 'opt_out', news: 'opt_in' },
    ];
    expect(bodyOf(after(sights)).outgrown).toEqual([]);
    const [, left] = sights;
    expect(bodyOf(after([{ old: 'opt_out' }, left ?? {}])).outgrown).toEqual([NEWS]);
  });
  test('is not created in it again after the contact vanished, but in others', () => {
    const again = open({ contacts: { missing: 'recreate' }, replaces: { [NEWS]: OLD } }).contacts;
    const recorded = after([{ old: 'opt_out' }]);
    const decision = again.decide(states({ desired: [bothIn()], recorded }));
    expect(steps(decision)).toEqual([`create ${PRODUCT}`]);
    expect(conflicts(decision)).toEqual([NEWS]);
    const made = carryOut(again, states({ desired: [bothIn()], recorded }));
    expect(conflicts(again.decide(states({ desired: [bothIn()], recorded: made })))).toContain(
      NEWS,
    );
  });
  test('under a former address, stays out under the new one', () => {
    const row = after([{ old: 'opt_out' }]);
    const former = row ? [{ row: { ...row, key: 'old@example.com' }, seen: [] }] : [];
    expect(conflicts(decide({ former }))).toEqual([NEWS]);
    const now = [{ row: { ...remembered(), key: 'old@example.com' }, seen: [shown({})] }];
    expect(steps(decide({ former: now }))).toEqual([`create ${NEWS}`]);
  });
  test('is not brought back by a newer consent either', () => {
    const policy = { contacts: { resubscribe: 'newer' as const } };
    const hour = 3_600_000;
    const body = canonicalJson({ ...JSON.parse(inNews.body), consentAt: LATER + 1 });
    const newer = { desired: [{ ...inNews, body }], at: LATER + hour, by: LATER + hour };
    for (const [old, expected] of [
      ['opt_out', []],
      ['opt_in', [`opt_in ${NEWS} → con_1`]],
    ] as const) {
      const sight = { old, news: 'opt_out' } as const;
      const known = { ...newer, recorded: after([sight]), observed: [shown(sight)] };
      const decision = open({ ...policy, replaces: { [NEWS]: OLD } }).contacts.decide(
        states(known),
      );
      expect(steps(decision)).toEqual(expected);
    }
  });
  test('is opted out of the new channel when the CRM says so', () => {
    const observed = [shown({ old: 'opt_out', news: 'opt_in' })];
    expect(steps(decide({ desired: [outOfNews], observed }))).toEqual([`opt_out ${NEWS} → con_1`]);
  });
});

describe('a person who did not leave the replaced channel', () => {
  test.each([{ old: 'opt_in' }, {}] as Shown[])('shown as %j, is opted in', (sight) => {
    expect(steps(decide({ observed: [shown(sight)] }))).toEqual([`opt_in ${NEWS} → con_1`]);
  });
  test('is opted in when we opted them out', () => {
    const recorded = ours(after([{ old: 'opt_out' }]));
    const observed = [shown({ old: 'opt_out' })];
    expect(steps(decide({ recorded, observed }))).toEqual([`opt_in ${NEWS} → con_1`]);
  });
  test('is opted in when the old channel is gone', () => {
    const recorded = after([{ old: 'opt_in' }]);
    expect(steps(decide({ recorded, observed: [shown({})] }))).toEqual([`opt_in ${NEWS} → con_1`]);
  });
  test('is opted in when a creation opted them out there by default', () => {
    const desired = [wish({ product: 'yes' })];
    const [change] = kind.decide(states({ desired })).changes;
    const observed = shown({ product: 'opt_in', old: 'opt_out' });
    const recorded = kind.acknowledge(undefined, change!, acked('con_1', { observed }));
    const next = decide({ desired: [bothIn()], recorded, observed: [observed] });
    expect(steps(next)).toEqual([`opt_in ${NEWS} → con_1`]);
  });
  test('is opted in after a return to the old channel', () => {
    const recorded = after([{ old: 'opt_out' }, { old: 'opt_in' }]);
    const observed = [shown({ old: 'opt_in' })];
    expect(steps(decide({ recorded, observed }))).toEqual([`opt_in ${NEWS} → con_1`]);
  });
});

describe('a person who joined the new channel themselves', () => {
  const joined = [{ old: 'opt_out' }, { old: 'opt_out', news: 'opt_in' }] as const;

  test('is left as they are', () => {
    const recorded = after(joined);
    expect(decide({ recorded, observed: [shown(joined[1])] })).toMatchObject({
      changes: [],
      problems: [],
    });
  });
  test('is opted out and in again as the CRM says', () => {
    const out = { desired: [outOfNews], observed: [shown(joined[1])] };
    const recorded = carryOut(kind, states({ ...out, recorded: after(joined) }));
    const observed = [shown({ old: 'opt_out', news: 'opt_out' })];
    expect(steps(decide({ recorded, observed }))).toEqual([`opt_in ${NEWS} → con_1`]);
  });
  test('stays out after leaving the old channel once more', () => {
    const sights = [...joined, { old: 'opt_in' }, { old: 'opt_out' }] as const;
    const recorded = after(sights, [outOfNews]);
    expect(conflicts(decide({ recorded, observed: [shown({ old: 'opt_out' })] }))).toEqual([NEWS]);
  });
  test('is not one that we brought in', () => {
    const there = [shown({ old: 'opt_in' })];
    const recorded = carryOut(kind, states({ desired: [inNews], observed: there }));
    const out = states({
      desired: [outOfNews],
      recorded,
      observed: [shown({ old: 'opt_out', news: 'opt_in' })],
    });
    const observed = [shown({ old: 'opt_out', news: 'opt_out' })];
    const decision = decide({ recorded: carryOut(kind, out), observed });
    expect(conflicts(decision)).toEqual([NEWS]);
  });
});

test('on the whole platform, only people who did not leave are enrolled, none in the old channel', async () => {
  const channels = ['ch_news', 'ch_product', OLD].map((id) => ({ id, name: id }));
  const stage = openStage({ platform: { channels }, policy: { replaces: { ch_news: OLD } } });
  for (const [name, is] of Object.entries({ left: 'opt_out', stayed: 'opt_in' } as const)) {
    stage.emulator.seed.contact({ email: `${name}@example.com`, channels: { [OLD]: is } });
    stage.people.push({ id: name, email: `${name}@example.com`, ch_news: 'yes' });
  }
  const summary = await stage.sync({ mode: 'fast' });
  expect(summary.contacts).toMatchObject({ conflicts: 1, applied: { opt_in: 1 } });
  await stage.sync();
  expect(stage.writes()).toMatchObject([{ channelId: 'ch_news', subscription: 'opt_in' }]);
});

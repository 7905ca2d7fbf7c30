/** The truth table of consent, written down once more from the design. */
import { describe, expect, test } from 'vitest';
import {
  decideChannel,
  type Action,
  type ChannelFacts,
  type ConsentPolicy,
  type PersonStatus,
} from '../../src/records/contact/consent/rules.ts';
import type { Membership } from '../../src/records/contact/observe/contact-state.ts';
import { isNewer, seen } from '../../src/records/contact/observe/observed-contact.ts';

type D = 'gone' | '—' | 'out' | 'in';
type R = '—' | 'in' | 'out by us' | 'taken back' | 'out by platform';
type O = 'in' | 'out' | '—';
const anyR: R[] = ['—', 'in', 'out by us', 'taken back', 'out by platform'];
const anyO: O[] = ['in', 'out', '—'];

/** Who a row speaks of. */
const who = {
  any: () => true,
  'absent, or foreign': ({ present, owned }: PersonStatus) => !present || !owned,
  'present, owned, deletable': ({ present, owned, deletable }: PersonStatus) =>
    present && owned && deletable,
  'present, owned, due': ({ present, owned, due }: PersonStatus) => present && owned && due,
  'present, owned': ({ present, owned }: PersonStatus) => present && owned,
  present: ({ present }: PersonStatus) => present,
  absent: ({ present }: PersonStatus) => !present,
  'left, blocked or suppressed': ({ present, left }: PersonStatus) => present && left,
  'absent, was owned': ({ present, owned }: PersonStatus) => !present && owned,
};

interface Row {
  row: number;
  d: D;
  r: R[];
  o: O[];
  contact: keyof typeof who;
  does: Action | ((policy: ConsentPolicy) => Action);
}

const absent = (policy: ConsentPolicy): Action =>
  policy.absent === 'keep' ? 'nothing' : 'opt_out';
const missing = (policy: ConsentPolicy): Action =>
  policy.missing === 'recreate' ? 'create' : 'conflict';

// prettier-ignore
const table: Row[] = [
  { row: 1,  d: 'gone', r: anyR, o: anyO, contact: 'absent, or foreign', does: 'nothing' },
  { row: 2,  d: 'gone', r: anyR, o: anyO, contact: 'present, owned, deletable', does: 'delete' },
  { row: 3,  d: 'gone', r: anyR, o: ['in'], contact: 'present, owned, due', does: absent },
  { row: 3,  d: 'gone', r: anyR, o: ['in'], contact: 'present, owned', does: 'nothing' },
  { row: 4,  d: 'gone', r: anyR, o: ['out', '—'], contact: 'present, owned', does: 'nothing' },
  { row: 5,  d: '—',    r: anyR, o: anyO, contact: 'any', does: 'nothing' },
  { row: 6,  d: 'out',  r: anyR, o: ['in'], contact: 'present', does: 'opt_out' },
  { row: 7,  d: 'out',  r: anyR, o: ['out', '—'], contact: 'present', does: 'nothing' },
  { row: 8,  d: 'out',  r: anyR, o: ['—'], contact: 'absent', does: 'nothing' },
  { row: 9,  d: 'in',   r: anyR, o: anyO, contact: 'left, blocked or suppressed', does: 'conflict' },
  { row: 10, d: 'in',   r: anyR, o: ['in'], contact: 'present', does: 'nothing' },
  { row: 11, d: 'in',   r: anyR, o: ['—'], contact: 'absent, was owned', does: missing },
  { row: 12, d: 'in',   r: anyR, o: ['—'], contact: 'absent', does: 'create' },
  { row: 13, d: 'in',   r: ['—'], o: ['—'], contact: 'present', does: 'opt_in' },
  { row: 14, d: 'in',   r: ['in'], o: ['—'], contact: 'present', does: 'conflict' },
  { row: 15, d: 'in',   r: ['in'], o: ['out'], contact: 'present', does: 'conflict' },
  { row: 16, d: 'in',   r: ['taken back'], o: ['out', '—'], contact: 'present', does: 'opt_in' },
  { row: 16, d: 'in',   r: ['out by us'], o: ['out', '—'], contact: 'present', does: 'conflict' },
  { row: 17, d: 'in',   r: ['out by platform', '—'], o: ['out'], contact: 'present', does: 'conflict' },
  { row: 18, d: 'in',   r: ['out by platform'], o: ['—'], contact: 'present', does: 'conflict' },
];

interface Case {
  d: D;
  r: R;
  o: O;
  person: PersonStatus;
  policy: ConsentPolicy;
}

const either = [true, false];

function cases(): Case[] {
  return (['gone', '—', 'out', 'in'] as const).flatMap((d) =>
    anyR.flatMap((r) =>
      anyO.flatMap((o) =>
        people().flatMap((person) => policies.map((policy) => ({ d, r, o, person, policy }))),
      ),
    ),
  );
}

/** Nobody can be deleted before they are due. */
const absences = [
  { due: false, deletable: false },
  { due: true, deletable: false },
  { due: true, deletable: true },
];

function people(): PersonStatus[] {
  return either.flatMap((present) =>
    either.flatMap((owned) =>
      either.flatMap((left) => absences.map((absence) => ({ present, owned, left, ...absence }))),
    ),
  );
}

const policies: ConsentPolicy[] = (['keep', 'opt_out'] as const).flatMap((absent) =>
  (['respect', 'recreate'] as const).map((missing) => ({
    absent,
    missing,
    optIns: 'on',
    resubscribe: 'never',
  })),
);

const firstRow = ({ d, r, o, person }: Case): Row | undefined =>
  table.find(
    (row) => row.d === d && row.r.includes(r) && row.o.includes(o) && who[row.contact](person),
  );

const wished: Record<D, ChannelFacts['wanted']> = {
  gone: 'gone',
  '—': null,
  out: 'opt_out',
  in: 'opt_in',
};
/** Who made an opt_in does not matter: both are tried. */
const recorded: Record<R, (Membership | undefined)[]> = {
  '—': [undefined],
  in: [
    { is: 'opt_in', by: 'us' },
    { is: 'opt_in', by: 'platform' },
  ],
  'out by us': [{ is: 'opt_out', by: 'us' }],
  // Ours too, and the CRM takes it back by what it says now.
  'taken back': [{ is: 'opt_out', by: 'us' }],
  'out by platform': [{ is: 'opt_out', by: 'platform' }],
};
const observed: Record<O, ChannelFacts['observed']> = {
  in: 'opt_in',
  out: 'opt_out',
  '—': undefined,
};

interface Decided {
  row: number;
  does: Action;
}

interface More {
  newer?: boolean;
  unmanaged?: ChannelFacts['unmanaged'];
}

function decided({ d, r, o, person, policy }: Case, more: More = {}): Decided[] {
  return recorded[r].map((was) => {
    const { row, action } = decideChannel({
      ...person,
      wanted: wished[d],
      recorded: was,
      observed: observed[o],
      someIn: o === 'in',
      newer: more.newer ?? false,
      takenBack: r === 'taken back',
      settledIn: false,
      unmanaged: more.unmanaged,
      policy,
    });
    return { row, does: action };
  });
}

describe('the truth table', () => {
  test.each(table)('row $row: $d $r $o, $contact', (row) => {
    const mine = cases().filter((one) => firstRow(one) === row);
    expect(mine).not.toEqual([]);
    for (const one of mine) {
      const does = typeof row.does === 'string' ? row.does : row.does(one.policy);
      for (const verdict of decided(one)) {
        expect({ ...one, verdict }).toEqual({ ...one, verdict: { row: row.row, does } });
      }
    }
  });

  test('reports a combination without a row and does nothing: an absent person with a subscription', () => {
    const unlisted = cases().filter((one) => firstRow(one) === undefined);
    expect(unlisted).not.toEqual([]);
    for (const one of unlisted) {
      expect(one).toMatchObject({ person: { present: false } });
      expect(['in', 'out']).toContain(one.o);
      for (const verdict of decided(one)) expect(verdict).toEqual({ row: 0, does: 'conflict' });
    }
  });
});

describe('for any combination', () => {
  const did = (...ops: Action[]): Case[] =>
    cases().filter((one) => decided(one).some((verdict) => ops.includes(verdict.does)));

  test('nobody who unsubscribed is brought back', () => {
    const broughtBack = did('opt_in', 'create').filter(
      ({ person, r, o }) =>
        person.present &&
        (person.left || o === 'in' || r === 'out by platform' || r === 'out by us'),
    );
    expect(broughtBack).toEqual([]);
  });

  test('a newer consent in the CRM outweighs an opt-out in row 17, and nothing else', () => {
    const outweighed = (verdict: Decided): Decided =>
      verdict.row === 17 ? { row: 17, does: 'opt_in' } : verdict;
    for (const one of cases())
      expect(decided(one, { newer: true })).toEqual(decided(one).map(outweighed));
  });

  test.each(['deleted', 'outOfScope'] as const)(
    'a subscribed stranger whom the CRM has as %s is only reported, after all that is ours is done',
    (unmanaged) => {
      for (const one of cases()) {
        const isLast = one.d === 'gone' && one.o !== 'in' && !one.person.deletable;
        const told = { row: 1, does: 'conflict' };
        const without = decided(one);
        expect(decided(one, { unmanaged })).toEqual(isLast ? without.map(() => told) : without);
      }
    },
  );

  test('people are opted in only when present, and created only when absent, as the CRM wants', () => {
    expect(did('opt_in').filter(({ person, d }) => !person.present || d !== 'in')).toEqual([]);
    expect(did('create').filter(({ person, d }) => person.present || d !== 'in')).toEqual([]);
  });

  test('opt-outs go to subscribed people only, and never to absent ones', () => {
    const needless = did('opt_out').filter(({ person, o }) => !person.present || o !== 'in');
    expect(needless).toEqual([]);
  });

  test('only people present, ours and due are deleted', () => {
    const wrong = did('delete').filter(
      ({ person: { present, owned, due }, d }) => !present || !owned || !due || d !== 'gone',
    );
    expect(wrong).toEqual([]);
    expect(did('delete')).not.toEqual([]);
  });

  test('an opt-out stated by the CRM is never a conflict for a present person', () => {
    expect(did('conflict').filter(({ d, person }) => d === 'out' && person.present)).toEqual([]);
  });
});

describe('the recorded state changes from', () => {
  const inside = (by: Membership['by']): Membership => ({ is: 'opt_in', by });
  const outBy = (by: Membership['by']): Membership => ({ is: 'opt_out', by });
  const sight = { present: true, before: 5, by: 9, changed: false };
  const made = { after: null, by: 9 };
  const all = [undefined, inside('us'), inside('platform'), outBy('us'), outBy('platform')];

  test.each(all)('%o, shown in → in', (was) => {
    expect(seen(was, 'opt_in', sight)?.is).toBe('opt_in');
  });
  test('out by us, shown out → out by us', () => {
    expect(seen(outBy('us'), 'opt_out', { ...sight, changed: true })).toEqual(outBy('us'));
  });
  test('nothing, shown out → out by platform, at the latest now', () => {
    expect(seen(undefined, 'opt_out', sight)).toEqual({ ...outBy('platform'), made });
  });
  test.each(['us', 'platform'] as const)(
    'in (%s), shown out or as no member → out by platform, since the last observation',
    (by) => {
      const left = { ...outBy('platform'), made: { after: 5, by: 9 } };
      expect(seen(inside(by), 'opt_out', sight)).toEqual(left);
      expect(seen(inside(by), undefined, sight)).toEqual(left);
    },
  );
  test('out by platform, shown out → the same, possibly renewed when it changed', () => {
    const left = { ...outBy('platform'), made: { after: 1, by: 2 } };
    expect(seen(left, 'opt_out', sight)).toEqual(left);
    const again = { ...left, made: { after: 1, by: 9 } };
    expect(seen(left, 'opt_out', { ...sight, changed: true })).toEqual(again);
  });
  test.each([undefined, outBy('us'), outBy('platform')])(
    '%o, shown as no member → unchanged',
    (was) => {
      expect(seen(was, undefined, sight)).toEqual(was);
    },
  );
  test.each(all)('%o of a vanished contact → unchanged', (was) => {
    expect(seen(was, undefined, { ...sight, present: false })).toEqual(was);
  });
});

describe('a consent is newer', () => {
  const left: Membership = { is: 'opt_out', by: 'platform', made: { after: 10, by: 20 } };
  test.each([
    [21, left, true],
    [30, left, true],
    // In the bracket: the person may have left after it.
    [20, left, false],
    [15, left, false],
    // In the future: a slip of somebody's clock.
    [31, left, false],
    [null, left, false],
    [21, { is: 'opt_out', by: 'platform' }, false],
    [21, { is: 'opt_in', by: 'us' }, false],
    [21, undefined, false],
  ] as const)('stated at %o, %o → %o', (stated, was, newer) => {
    expect(isNewer(stated, was, 30)).toBe(newer);
  });
});

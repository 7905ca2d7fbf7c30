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

/** Who a row speaks of, and under which policy. */
const who = {
  any: () => true,
  'absent, or foreign': ({ present, owned }) => !present || !owned,
  'present, owned, deletable': ({ present, owned, deletable }) => present && owned && deletable,
  'present, owned, due to be opted out': ({ present, owned, due, absent }) =>
    present && owned && due && absent === 'opt_out',
  'present, owned': ({ present, owned }) => present && owned,
  present: ({ present }) => present,
  absent: ({ present }) => !present,
  'left, blocked or suppressed': ({ present, left }) => present && left,
  'absent, was owned, to be recreated': ({ present, owned, missing }) =>
    !present && owned && missing === 'recreate',
  'absent, was owned': ({ present, owned }) => !present && owned,
} satisfies Record<string, (about: PersonStatus & ConsentPolicy) => boolean>;

type Row = [D, R[], O[], keyof typeof who, string, Action];

/** Wanted, recorded and observed; the person; the rule that decides, and what it does. */
// prettier-ignore
const table: Row[] = [
  ['gone', anyR, anyO, 'absent, or foreign', 'gone-not-ours', 'nothing'],
  ['gone', anyR, anyO, 'present, owned, deletable', 'gone-deletable', 'delete'],
  ['gone', anyR, ['in'], 'present, owned, due to be opted out', 'gone-due', 'opt_out'],
  ['gone', anyR, ['in'], 'present, owned', 'gone-kept', 'nothing'],
  ['gone', anyR, ['out', '—'], 'present, owned', 'gone-unsubscribed', 'nothing'],
  ['—', anyR, anyO, 'any', 'no-opinion', 'nothing'],
  ['out', anyR, ['in'], 'present', 'stated-out', 'opt_out'],
  ['out', anyR, ['out', '—'], 'present', 'stated-out-already', 'nothing'],
  ['out', anyR, ['—'], 'absent', 'stated-out-absent', 'nothing'],
  ['in', anyR, anyO, 'left, blocked or suppressed', 'left-all-mail', 'conflict'],
  ['in', anyR, ['in'], 'present', 'already-in', 'nothing'],
  ['in', anyR, ['—'], 'absent, was owned, to be recreated', 'vanished-recreate', 'create'],
  ['in', anyR, ['—'], 'absent, was owned', 'vanished-respect', 'conflict'],
  ['in', anyR, ['—'], 'absent', 'not-on-platform', 'create'],
  ['in', ['—'], ['—'], 'present', 'never-refused', 'opt_in'],
  ['in', ['in'], ['—'], 'present', 'membership-removed', 'conflict'],
  ['in', ['in'], ['out'], 'present', 'left-channel', 'conflict'],
  ['in', ['taken back'], ['out', '—'], 'present', 'our-opt-out-taken-back', 'opt_in'],
  ['in', ['out by us'], ['out', '—'], 'present', 'our-opt-out-stands', 'conflict'],
  ['in', ['out by platform', '—'], ['out'], 'present', 'left-or-unknown', 'conflict'],
  ['in', ['out by platform'], ['—'], 'present', 'left-then-removed', 'conflict'],
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

const firstRow = ({ d, r, o, person, policy }: Case): Row | undefined =>
  table.find(
    ([wanted, was, shown, contact]) =>
      wanted === d &&
      was.includes(r) &&
      shown.includes(o) &&
      who[contact]({ ...person, ...policy }),
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
  by: string;
  does: Action;
}

interface More {
  newer?: boolean;
  unmanaged?: ChannelFacts['unmanaged'];
}

function decided({ d, r, o, person, policy }: Case, more: More = {}): Decided[] {
  return recorded[r].map((was) => {
    const { by, action } = decideChannel({
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
    return { by, does: action };
  });
}

describe('the truth table', () => {
  test.each(table)('%s %j %j, %s: %s', (_d, _r, _o, _who, by, does) => {
    const mine = cases().filter((one) => firstRow(one)?.[4] === by);
    expect(mine).not.toEqual([]);
    for (const one of mine) {
      for (const verdict of decided(one)) {
        expect({ ...one, verdict }).toEqual({ ...one, verdict: { by, does } });
      }
    }
  });

  test('reports a combination without a row and does nothing: an absent person with a subscription', () => {
    const unlisted = cases().filter((one) => firstRow(one) === undefined);
    expect(unlisted).not.toEqual([]);
    for (const one of unlisted) {
      expect(one).toMatchObject({ person: { present: false } });
      expect(['in', 'out']).toContain(one.o);
      for (const verdict of decided(one))
        expect(verdict).toEqual({ by: 'no-rule', does: 'conflict' });
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

  test('a newer consent in the CRM outweighs `left-or-unknown`, and nothing else', () => {
    const outweighed = (verdict: Decided): Decided =>
      verdict.by === 'left-or-unknown' ? { by: 'stated-later', does: 'opt_in' } : verdict;
    for (const one of cases())
      expect(decided(one, { newer: true })).toEqual(decided(one).map(outweighed));
  });

  test.each(['deleted', 'outOfScope'] as const)(
    'a subscribed stranger whom the CRM has as %s is only reported, after all that is ours is done',
    (unmanaged) => {
      for (const one of cases()) {
        const isLast = one.d === 'gone' && one.o !== 'in' && !one.person.deletable;
        const by = unmanaged === 'deleted' ? 'deleted-unmanaged' : 'out-of-scope-unmanaged';
        const told = { by, does: 'conflict' };
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

/** Opt-outs of ours: what is recorded of them, and when the CRM may take one back. */
import { describe, expect, test } from 'vitest';
import { enrolmentBody, type Membership } from '../../src/records/contact/observe/contact-state.ts';
import { canonicalJson, type DesiredRow } from '../../src/domain/record.ts';
import {
  ANN,
  conflicts,
  remembered,
  shown,
  steps,
  wish,
  carryOut,
  LATER,
  NEWS,
  NOON,
  open,
  states,
  type States,
  acked,
  isOut,
  newsOf,
  ours,
  withNews,
} from '../support/records/record-stage.ts';

const kind = open({ contacts: { absent: 'opt_out' } }).contacts;
const recreate = open({ contacts: { missing: 'recreate' } }).contacts;
const optIn = [`opt_in ${NEWS} → con_1`];

const says = (id: string, newsletter: string, more: object = {}) =>
  wish({ id, newsletter, ...more });
const statedBy = (...stated: string[]): Membership => ({
  ...ours,
  cause: 'stated',
  stated,
  bound: ['1', '2'],
});
const decide = (known: Partial<States>) => kind.decide(states({ observed: isOut, ...known }));

describe('the record of our opt-out', () => {
  const out = (known: Partial<States>) =>
    newsOf(carryOut(kind, states({ observed: [shown({ news: 'opt_in' })], ...known })));
  const recorded = remembered({ news: 'in' });
  const ageMs = 86_400_000;
  const absence = { readings: 2, firstAt: 0, lastAt: ageMs, ageMs, waitedMs: 0 };

  test('keeps the records that were bound before, when another one states it', () => {
    const recorded = withNews(statedBy('1'));
    const { note } = decide({ recorded, desired: [says('3', 'no')] });
    expect(newsOf(note)).toEqual({ ...statedBy('3'), bound: ['1', '2', '3'] });
  });

  test.each<[string, Partial<States>, Membership]>([
    ['one record states it', { desired: [says('1', 'no')] }, { ...statedBy('1'), bound: ['1'] }],
    [
      'of several records those that state it',
      { desired: [says('3', 'no'), says('1', 'yes'), says('2', 'no')] },
      { ...statedBy('2', '3'), bound: ['1', '2', '3'] },
    ],
    [
      'a record that is flagged as deleted states it',
      { recorded, desired: [says('1', 'no', { archived: 'yes' })] },
      { ...statedBy('1'), bound: ['1'] },
    ],
    [
      'a deletion flag',
      { recorded, desired: [says('1', 'yes', { archived: 'yes' })] },
      { ...ours, cause: 'flag' },
    ],
    ['absence', { recorded, absence }, { ...ours, cause: 'absence' }],
    [
      'an address that changed',
      {
        recorded,
        successors: [{ desired: [says('1', 'yes')], recorded, vanished: false }],
      },
      { ...ours, cause: 'address' },
    ],
  ])('%s', (_what, known, expected) => {
    expect(out(known)).toEqual({ ...expected, acked: LATER });
  });

  test('later records that state it replace the former ones', () => {
    const row = withNews({ ...ours, cause: 'absence' });
    const { note } = decide({ recorded: row, desired: [says('1', 'yes'), says('2', 'no')] });
    expect(newsOf(note)).toEqual(statedBy('2'));
    const next = decide({ recorded: note, desired: [says('1', 'yes')] });
    expect(conflicts(next)).toEqual([NEWS]);
  });

  test('is kept when the contact is also opted out for absence', () => {
    const row = withNews(statedBy('2'));
    const body = canonicalJson({ cause: 'address', moved: true });
    const change = { kind: 'contact', key: ANN, op: 'opt_out', part: NEWS, phase: 0 } as const;
    const after = kind.acknowledge(row, { ...change, target: 'con_2', body }, acked('con_2'));
    expect(newsOf(after)).toEqual(statedBy('2'));
  });
});

describe('our-opt-out-taken-back', () => {
  const optedOut: [string, Membership, DesiredRow[], boolean][] = [
    ['for absence', { ...ours, cause: 'absence' }, [says('9', 'yes')], true],
    ['for a deletion flag', { ...ours, cause: 'flag' }, [says('9', 'yes')], true],
    ['for a changed address', { ...ours, cause: 'address' }, [says('9', 'yes')], true],
    ['as a record stated that says in now', statedBy('1'), [says('1', 'yes')], true],
    ['as one of two stated that says in now', statedBy('1', '2'), [says('2', 'yes')], true],
    ['as a record stated that is gone', statedBy('2'), [says('1', 'yes')], false],
    [
      'as one stated that is flagged now',
      statedBy('2'),
      [says('1', 'yes'), says('2', 'yes', { archived: 'yes' })],
      false,
    ],
    ['as one stated without an opinion', statedBy('2'), [says('1', 'yes'), says('2', '')], false],
    ['as a record stated without an id', statedBy(), [says('1', 'yes')], false],
    ['and released', { ...statedBy('2'), released: true }, [says('1', 'yes')], true],
  ];

  test.each(optedOut)('opted out %s', (_what, membership, desired, isBack) => {
    for (const observed of [isOut, [shown()]]) {
      const decision = decide({ recorded: withNews(membership), desired, observed });
      expect(steps(decision)).toEqual(isBack ? optIn : []);
      expect(conflicts(decision)).toEqual(isBack ? [] : [NEWS]);
    }
  });

  test.each<[string, Membership, true | undefined]>([
    ['the CRM stated', statedBy('1'), true],
    ['for absence', { ...ours, cause: 'absence' }, undefined],
    ['an operator released', { ...statedBy('1'), released: true }, undefined],
  ])('an opt-in marks that it withdraws an opt-out that %s', (_what, membership, isMarked) => {
    const { changes } = decide({ recorded: withNews(membership), desired: [says('1', 'yes')] });
    expect(changes.map(({ body }) => enrolmentBody.parse(JSON.parse(body)).withdraws)).toEqual([
      isMarked,
    ]);
  });

  test.each<[string, Membership | undefined, true | undefined]>([
    ['was never made, because the platform did not have the person', undefined, true],
    ['an operator released', { ...statedBy('1'), released: true }, undefined],
  ])('an opt-in withdraws an opt-out that the CRM stated and that %s', (_, was, isMarked) => {
    const known = was ? { recorded: withNews(was) } : { observed: [] };
    const { changes } = decide({ ...known, desired: [says('1', 'yes')], statedOut: [NEWS] });
    expect(changes.map(({ body }) => enrolmentBody.parse(JSON.parse(body)).withdraws)).toEqual([
      isMarked,
    ]);
  });

  test('the conflict prints the command that releases it', () => {
    const { problems } = decide({ recorded: withNews(statedBy('2')), desired: [says('1', 'yes')] });
    expect(problems[0]?.fix).toContain('`crm-mirror resolve`, or `allow <email> --reason');
  });

  test.each([
    [NOON + 1, true],
    [LATER, true],
    // Not later than our opt-out.
    [NOON, false],
    // In the future.
    [LATER + 1, false],
    [null, false],
  ])('a consent of %o does not, whatever policy.resubscribe says', (consentAt, isBack) => {
    const { body, ...row } = says('1', 'yes');
    const stated = { ...row, body: canonicalJson({ ...Object(JSON.parse(body)), consentAt }) };
    const decision = decide({ recorded: withNews(statedBy('2')), desired: [stated] });
    expect(steps(decision)).toEqual(isBack ? optIn : []);
  });

  test('a release ends when a record states the opt-out again', () => {
    const row = withNews({ ...statedBy('2'), released: true });
    const { note } = decide({ recorded: row, desired: [says('1', 'yes'), says('2', 'no')] });
    expect(newsOf(note)).toEqual(statedBy('2'));
  });
});

describe('an opt-out of ours without a cause', () => {
  const old: Membership = { is: 'opt_out', by: 'us' };
  const upgraded = (known: Partial<States>) =>
    newsOf(decide({ recorded: withNews(old), ...known }).note);

  test('is attributed to the records that opt out', () => {
    const desired = [says('1', 'yes'), says('2', 'no')];
    expect(upgraded({ desired, origins: ['1', '2'] })).toEqual({ ...statedBy('2'), acked: LATER });
  });
  test('is attributed to all known records when none opts out', () => {
    const known = { desired: [says('3', 'yes')], origins: ['2', '1'] };
    expect(upgraded(known)).toEqual({ ...statedBy('1', '2'), acked: LATER });
    const decision = decide({ recorded: withNews(old), ...known });
    expect(conflicts(decision)).toEqual([NEWS]);
    expect(steps(decide({ recorded: withNews(old), desired: [says('1', 'yes')] }))).toEqual(optIn);
  });
  test('stays unattributed while the CRM names nobody', () => {
    expect(upgraded({ desired: [] })).toEqual(old);
  });
});

describe('our opt-out that the CRM does not take back', () => {
  const recorded = withNews(statedBy('2'));

  test('stays when the contact has vanished', () => {
    const vanished = { ...recorded, id: undefined };
    const decision = recreate.decide(states({ recorded: vanished, desired: [says('1', 'yes')] }));
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS]);
    const back = recreate.decide(states({ recorded: vanished, desired: [says('2', 'yes')] }));
    expect(steps(back)).toEqual([`create ${NEWS}`]);
  });
  test('is carried to a new address', () => {
    const former = [{ row: { ...recorded, key: 'old@example.com' }, seen: [] }];
    // Who came to the new address otherwise was not bound by it.
    const other = decide({ former, observed: [], desired: [says('3', 'yes')] });
    expect(steps(other)).toEqual([`create ${NEWS}`]);
    const decision = decide({ former, observed: [], desired: [says('1', 'yes')] });
    expect(conflicts(decision)).toEqual([NEWS]);
    expect(decision.problems[0]?.fix).toContain('allow <former email>');
    expect(steps(decide({ former, observed: [], desired: [says('2', 'yes')] }))).toEqual([
      `create ${NEWS}`,
    ]);
  });
  test('gives an old address no reason to wait', () => {
    const successor = { desired: [says('1', 'yes')], vanished: false };
    const known = { recorded: remembered({ news: 'in' }), observed: [shown({ news: 'opt_in' })] };
    const of = (membership: Membership) =>
      steps(decide({ ...known, successors: [{ ...successor, recorded: withNews(membership) }] }));
    expect(of(statedBy('2'))).toEqual([`opt_out ${NEWS} → con_1`]);
    expect(of(statedBy('1'))).toEqual([]);
  });
});

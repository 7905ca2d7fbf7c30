/** The inverse of a run's changes to one person, line by line of the table in undo-person.ts. */
import { describe, expect, test } from 'vitest';
import type { DoneChange } from '../../src/domain/change.ts';
import type { Entry } from '../../src/domain/do-not-contact.ts';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import { type Membership, recordedBody } from '../../src/records/contact/observe/contact-state.ts';
import type { States } from '../../src/records/record-type.ts';
import { ANN, conflicts, remembered, shown, steps, wish } from '../support/records/person-facts.ts';
import { LATER, NEWS, NOON, open, PRODUCT, states } from '../support/records/record-stage.ts';

const kind = open().contacts;
const run = 'r1';
const says = (newsletter: string, more: object = {}) => wish({ newsletter, ...more });
const isIn = [shown({ news: 'opt_in' })];
const isOut = [shown({ news: 'opt_out' })];
const ours = { is: 'opt_out', by: 'us', acked: NOON } as const;

function withNews(membership: Membership): RecordedRow {
  const row = remembered({ news: membership.is === 'opt_in' ? 'in' : 'us' });
  const body: unknown = JSON.parse(row.body);
  return { ...row, body: canonicalJson({ ...Object(body), channels: { [NEWS]: membership } }) };
}

const stated = withNews({ ...ours, cause: 'stated', stated: ['1'], bound: ['1'] });
const undone = withNews({
  ...ours,
  cause: 'undone',
  bound: ['1'],
  undone: { run, said: 'opt_in' },
});
const theirs = withNews({ is: 'opt_out', by: 'platform', made: { after: null, by: NOON } });
const done = (op: DoneChange['op'], more: Partial<DoneChange> = {}): DoneChange => ({
  op,
  part: op === 'delete' ? '' : NEWS,
  target: op === 'create' ? undefined : 'con_1',
  body: '{}',
  before: undefined,
  later: undefined,
  ...more,
});
const entry = (cause: Entry['cause']): Entry => ({
  seq: 1,
  part: NEWS,
  cause,
  contact: 'con_9',
  after: null,
  by: NOON,
  through: 'address',
  bears: true,
});

type Row = [journaled: DoneChange, now: string, known: Partial<States>, then: string];
const recorded = remembered({ news: 'in' });
const inNow = { recorded, observed: isIn, desired: [says('yes')] };
const outByUs = { recorded: stated, observed: isOut };
const toOut = `opt_out ${NEWS} → con_1`;
const toIn = `opt_in ${NEWS} → con_1`;

const table: Row[] = [
  [done('opt_in', { later: 'r2' }), 'a later run changed it', inNow, 'changed-later'],
  [done('opt_in', { part: 'ch_old' }), 'the channel is gone', inNow, 'channel-unknown'],
  [done('delete'), 'anything', { desired: [says('yes')] }, 'deleted'],
  [done('create'), 'subscribed', inNow, toOut],
  [done('opt_in'), 'subscribed', inNow, toOut],
  [done('opt_in'), 'subscribed, the CRM says no', { ...inNow, desired: [says('no')] }, toOut],
  [done('opt_in'), 'subscribed, gone from the CRM', { ...inNow, desired: [] }, toOut],
  [done('opt_in'), 'the contact is gone', { ...inNow, observed: [] }, 'contact-gone'],
  [
    done('opt_in'),
    'another contact',
    { ...inNow, observed: [shown({ id: 'con_2', news: 'opt_in' })] },
    'contact-gone',
  ],
  [done('opt_in'), 'left the channel', { ...inNow, observed: isOut }, 'not-subscribed'],
  [done('opt_out'), 'the CRM says in', { ...outByUs, desired: [says('yes')] }, toIn],
  [
    done('opt_out'),
    'the CRM says out',
    { ...outByUs, desired: [says('no')] },
    'stated-out-already',
  ],
  [done('opt_out'), 'no opinion', { ...outByUs, desired: [says('')] }, 'no-opinion'],
  [done('opt_out'), 'not in the CRM', { ...outByUs, desired: [] }, 'gone-unsubscribed'],
  [
    done('opt_out'),
    'only another record says in',
    { ...outByUs, desired: [wish({ id: '2', newsletter: 'yes' })] },
    'our-opt-out-stands',
  ],
  [
    done('opt_out'),
    'unsubscribed from all mail since',
    {
      ...outByUs,
      observed: [shown({ news: 'opt_out', status: 'unsubscribed' })],
      desired: [says('yes')],
    },
    'left-all-mail',
  ],
  [
    done('opt_out'),
    'blocked since',
    {
      ...outByUs,
      observed: [shown({ news: 'opt_out', status: 'blocked' })],
      desired: [says('yes')],
    },
    'left-all-mail',
  ],
  [
    done('opt_out'),
    'recorded as the person’s own by now',
    { recorded: theirs, observed: isOut, desired: [says('yes')] },
    'left-or-unknown',
  ],
  [
    done('opt_out'),
    'subscribed by now',
    { ...outByUs, observed: isIn, desired: [says('yes')] },
    'already-in',
  ],
  [
    done('opt_out'),
    'on the do-not-contact list',
    { ...outByUs, desired: [says('yes')], entries: [entry('opt_out')] },
    'left-before',
  ],
  [
    done('opt_out'),
    'erased',
    { ...outByUs, desired: [says('yes')], entries: [entry('erasure')] },
    'erased',
  ],
  [
    done('opt_out'),
    'an uncertified reading',
    { ...outByUs, desired: [says('yes')], certified: false },
    'uncertified',
  ],
  [
    done('opt_out'),
    'the contact is gone',
    { ...outByUs, observed: [], desired: [says('yes')] },
    'vanished-respect',
  ],
  [
    done('opt_out'),
    'undone, and the CRM is as it was',
    { recorded: undone, observed: isOut, desired: [says('yes')] },
    toIn,
  ],
  [
    done('opt_out'),
    'undone, and unsubscribed since',
    {
      recorded: undone,
      observed: [shown({ news: 'opt_out', status: 'unsubscribed' })],
      desired: [says('yes')],
    },
    'left-all-mail',
  ],
];

test.each(table)('%j, and now %s', (journaled, _now, known, then) => {
  const { decision, cannot } = kind.undo(states(known), { run, changes: [journaled] });
  expect([...steps(decision), ...cannot.map(({ rule }) => rule)]).toEqual([then]);
  for (const { reason } of cannot) expect(reason.length).toBeGreaterThan(5);
  expect(decision.problems).toEqual([]);
  // The next run decides again.
  expect(decision.note?.desired).toBeUndefined();
});

test('the last change in a channel is undone, and each channel by itself', () => {
  const known = {
    recorded: remembered({ news: 'in', product: 'in' }),
    observed: [shown({ news: 'opt_in', product: 'opt_in' })],
    desired: [wish({ newsletter: 'yes', product: 'yes' })],
  };
  const changes = [done('create'), done('opt_in', { part: PRODUCT })];
  const { decision } = kind.undo(states(known), { run, changes });
  expect(steps(decision)).toEqual([toOut, `opt_out ${PRODUCT} → con_1`]);
  expect(decision.changes.map(({ guard }) => guard)).toEqual(['delete', 'delete']);
});

describe('a contact that the run created', () => {
  const undo = (deletes: 'off' | 'created', known: Partial<States>) => {
    const type = open({ absence: { deletes } }).contacts;
    return steps(
      type.undo(states({ ...inNow, ...known }), { run, changes: [done('create')] }).decision,
    );
  };

  test.each<[string, 'off' | 'created', Partial<States>, boolean]>([
    ['and policy.deletes is off', 'off', {}, false],
    ['and policy.deletes is on', 'created', {}, true],
    ['but that is adopted', 'created', { recorded: { ...recorded, ownership: 'adopted' } }, false],
    [
      'but that is in another channel',
      'created',
      { observed: [shown({ news: 'opt_in', product: 'opt_in' })] },
      false,
    ],
    [
      'but that left another channel',
      'created',
      { observed: [shown({ news: 'opt_in', product: 'opt_out' })] },
      false,
    ],
    ['but that was not listed', 'created', { observed: [], sight: 'assumed' }, false],
    [
      'but shares its address',
      'created',
      { observed: [...isIn, shown({ id: 'con_2', news: 'opt_in' })] },
      false,
    ],
  ])('%s', (_what, deletes, known, isDeleted) => {
    const all = undo(deletes, known);
    expect(all).toEqual(isDeleted ? [toOut, 'delete  → con_1'] : [toOut]);
  });
});

describe('what was undone', () => {
  const decide = (known: Partial<States>) =>
    kind.decide(states({ recorded: undone, observed: isOut, ...known }));
  const newsOf = (row: RecordedRow | undefined) =>
    recordedBody.parse(JSON.parse(row?.body ?? '{}')).channels[NEWS];

  test.each<[string, Partial<States>, string[]]>([
    ['the same statement', { desired: [says('yes')] }, []],
    ['the same of another record', { desired: [wish({ id: '7', newsletter: 'yes' })] }, []],
    ['another statement', { desired: [says('no')] }, []],
    ['a reading that is not complete', { desired: [says('no')], certified: false }, []],
  ])('is not done again after %s', (_what, known, expected) => {
    expect(steps(decide(known))).toEqual(expected);
  });

  test('is a conflict while the CRM states the same', () => {
    const { problems } = decide({ desired: [says('yes')] });
    expect(problems).toMatchObject([{ key: ANN, part: NEWS, cause: 'undone' }]);
    expect(conflicts(decide({ desired: [says('')] }))).toEqual([]);
  });

  test.each(['', 'no'])('is done again after the CRM has stated "%s"', (word) => {
    const { note } = decide({ desired: [says(word)] });
    expect(newsOf(note)?.undone).toBeUndefined();
    const next = decide({ recorded: note, desired: [says('yes')] });
    expect(steps(next)).toEqual([toIn]);
  });

  test('stays remembered while the person is missing from the CRM', () => {
    const { note } = decide({ desired: [] });
    expect(newsOf(note)?.undone).toEqual({ run, said: 'opt_in' });
    expect(steps(decide({ recorded: note, desired: [says('yes')] }))).toEqual([]);
  });

  test('is compared with the first complete statement if there was none then', () => {
    const unknown = withNews({ ...ours, cause: 'undone', bound: ['1'], undone: { run } });
    const { note } = decide({ recorded: unknown, desired: [says('yes')] });
    expect(newsOf(note)?.undone).toEqual({ run, said: 'opt_in' });
  });
});

describe('an opt-in that overrode an opt-out', () => {
  const after = (body: object) => {
    const type = open({ absence: { deletes: 'created' } }).contacts;
    const journaled = done('create', { body: canonicalJson(body) });
    const { decision } = type.undo(states(inNow), { run, changes: [journaled] });
    expect(steps(decision)).toEqual([toOut]);
    const [change] = decision.changes;
    const ack = { is: 'acked' as const, id: 'con_1', observed: undefined, found: false };
    const row = change && type.acknowledge(recorded, change, { ...ack, at: LATER });
    return recordedBody.parse(JSON.parse(row?.body ?? '{}')).channels[NEWS];
  };
  const person = { is: 'opt_out', by: 'platform' } as const;

  test.each([{ newer: NOON }, { changed: 'then' }, { since: NOON }, { withdraws: true }])(
    'with a journal that did not keep it (%j) leaves an opt-out that nothing older ends',
    (body) => {
      const made = { after: null, by: LATER };
      expect(after(body)).toEqual({ ...person, doubtful: true, made });
    },
  );

  test('restores the opt-out of the person, made between its time and now', () => {
    const overrides = { by: 'platform', after: 5 };
    expect(after({ overrides, newer: NOON })).toEqual({ ...person, made: { after: 5, by: LATER } });
  });
});

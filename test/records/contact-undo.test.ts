/** The inverse of a run's changes to one person, line by line of the table in undo-person.ts. */
import { describe, expect, test } from 'vitest';
import type { DoneChange } from '../../src/domain/change.ts';
import {
  remembered,
  shown,
  steps,
  wish,
  NEWS,
  NOON,
  open,
  PRODUCT,
  states,
  done,
  isIn,
  isOut,
  run,
  says,
  stated,
  theirs,
  undone,
  type States,
  entry,
} from '../support/records/record-stage.ts';

const kind = open().contacts;
type Row = [journaled: DoneChange, now: string, known: Partial<States>, then: string];
const recorded = remembered({ news: 'in' });
const inNow = { recorded, observed: isIn, desired: [says('yes')] };
const outByUs = { recorded: stated, observed: isOut };
const backIn = { ...outByUs, desired: [says('yes')] };
const left = (status: string) => [shown({ news: 'opt_out', status })];
const optOut = done('opt_out');
const toOut = `opt_out ${NEWS} → con_1`;
const toIn = `opt_in ${NEWS} → con_1`;

const table: Row[] = [
  [done('opt_in', { later: 'r2' }), 'a later run changed it', inNow, 'changed-later'],
  [done('opt_in', { later: 'r2', isUndone: true }), 'a run undid it', inNow, 'already-undone'],
  [done('opt_in', { wasThere: true }), 'the platform showed it already', inNow, 'found'],
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
  [optOut, 'the CRM says in', backIn, toIn],
  [optOut, 'the CRM says out', { ...outByUs, desired: [says('no')] }, 'stated-out-already'],
  [optOut, 'no opinion', { ...outByUs, desired: [says('')] }, 'no-opinion'],
  [optOut, 'not in the CRM', { ...outByUs, desired: [] }, 'gone-unsubscribed'],
  [
    optOut,
    'only another record says in',
    { ...outByUs, desired: [wish({ id: '2', newsletter: 'yes' })] },
    'our-opt-out-stands',
  ],
  [optOut, 'unsubscribed since', { ...backIn, observed: left('unsubscribed') }, 'left-all-mail'],
  [optOut, 'blocked since', { ...backIn, observed: left('blocked') }, 'left-all-mail'],
  [optOut, 'recorded as the person’s by now', { ...backIn, recorded: theirs }, 'left-or-unknown'],
  [optOut, 'subscribed by now', { ...backIn, observed: isIn }, 'already-in'],
  [optOut, 'on the do-not-contact list', { ...backIn, entries: [entry('opt_out')] }, 'left-before'],
  [optOut, 'erased', { ...backIn, entries: [entry('erasure')] }, 'erased'],
  [optOut, 'an uncertified reading', { ...backIn, certified: false }, 'uncertified'],
  [optOut, 'the contact is gone', { ...backIn, observed: [] }, 'vanished-respect'],
  [
    optOut,
    'the CRM states an opt-out from another channel, which is not made yet',
    {
      recorded: stated,
      observed: [shown({ news: 'opt_out', product: 'opt_in' })],
      desired: [says('yes', { product: 'no' })],
    },
    'opt-out-held',
  ],
  [optOut, 'undone, and the CRM is as it was', { ...backIn, recorded: undone }, toIn],
  [
    optOut,
    'undone, and unsubscribed since',
    { ...backIn, recorded: undone, observed: left('unsubscribed') },
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

test.each([
  ['changed after our last change', NOON - 1, ['changed-since']],
  ['as our last change left it', NOON, [toIn]],
])('a contact %s', (_what, doneAt, then) => {
  const observed = [shown({ news: 'opt_out', updatedAt: new Date(NOON).toISOString() })];
  const known = { recorded: undone, observed, desired: [says('yes')] };
  const undoing = { run, changes: [done('opt_out')], doneAt };
  const { decision, cannot } = kind.undo(states(known), undoing);
  expect([...steps(decision), ...cannot.map(({ rule }) => rule)]).toEqual(then);
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
  const outAlready = { recorded: undone, observed: isOut };
  const undo = (deletes: 'off' | 'created', known: Partial<States>) => {
    const type = open({ absence: { deletes } }).contacts;
    return steps(
      type.undo(states({ ...inNow, ...known }), { run, changes: [done('create')] }).decision,
    );
  };

  test.each<[string, 'off' | 'created', Partial<States>, boolean]>([
    ['and policy.deletes is off', 'off', {}, false],
    ['and policy.deletes is on', 'created', {}, true],
    ['that is opted out already by an earlier part of the undo', 'created', outAlready, true],
    ['but that the person has left since', 'created', { ...outAlready, recorded: theirs }, false],
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
    [
      'but that has anything in a channel that is not configured',
      'created',
      { observed: [shown({ news: 'opt_in', other: 'opt_out' })] },
      false,
    ],
    ['but of which a backup was restored since', 'created', { restored: true }, false],
    ['but that was not listed', 'created', { observed: [], sight: 'assumed' }, false],
    [
      'but shares its address',
      'created',
      { observed: [...isIn, shown({ id: 'con_2', news: 'opt_in' })] },
      false,
    ],
  ])('%s', (_what, deletes, known, isDeleted) => {
    const all = undo(deletes, known);
    const outs = 'observed' in known && known.observed === isOut ? [] : [toOut];
    expect(all).toEqual(isDeleted ? [...outs, 'delete  → con_1'] : outs);
  });
});

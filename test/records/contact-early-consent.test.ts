/** A time of consent that was in the future when it was first read never becomes evidence. */
import { describe, expect, test } from 'vitest';
import type { DesiredRow, RecordedRow } from '../../src/domain/record.ts';
import type { Membership } from '../../src/records/contact/observe/contact-state.ts';
import { contactDesire } from '../../src/records/contact/observe/desired-contact.ts';
import {
  ANN,
  steps,
  carryOut,
  fields,
  NEWS,
  NOON,
  open,
  states,
  type States,
  entry,
  isOut,
  ours,
  withNews,
} from '../support/records/record-stage.ts';

const kind = open({ contacts: { resubscribe: 'newer' } }).contacts;
const HOUR = 3_600_000;
const STATED = NOON + 2 * HOUR;

/** A record of the CRM that opts Ann in, as it was read at a time. */
const read = (at: number, said: number, future = at): DesiredRow =>
  contactDesire(
    { ...fields, consentAt: 'said' },
    () => at,
    () => at,
    () => future,
  )(
    { id: '1', email: ANN, newsletter: 'yes', product: '', said: new Date(said).toISOString() },
    '',
  );

const binding: Membership = { ...ours, bound: ['1', '2'], cause: 'stated', stated: ['2'] };
const theirs: Membership = { by: 'platform', is: 'opt_out', made: { after: 1, by: NOON } };
const operators = entry('operator', NEWS, { contact: null });
const former = [{ row: { ...withNews(binding), key: 'old@example.com' }, seen: [] }];

/** Every opt-out that a later consent overrides, and what it then does. */
const ways: [string, Partial<States>, string][] = [
  [
    'an opt-out of ours',
    { recorded: withNews(binding), observed: isOut },
    `opt_in ${NEWS} → con_1`,
  ],
  ['their own opt-out', { recorded: withNews(theirs), observed: isOut }, `opt_in ${NEWS} → con_1`],
  ["an operator's opt-out", { entries: [operators] }, `create ${NEWS}`],
  ['an opt-out of ours under a former address', { former }, `create ${NEWS}`],
];

describe.each(ways)('against %s, a time of consent', (_way, known, overrides) => {
  const decide = (at: number, said: number, more: Partial<States> = {}) =>
    kind.decide(states({ ...known, desired: [read(at, said)], by: at, ...more }));
  const first = () => decide(NOON + HOUR, STATED);
  const recorded = () => first().note;

  test('counts if it has passed when it is first read', () => {
    expect(steps(decide(STATED, STATED))).toEqual([overrides]);
  });

  test('counts as soon as both clocks have passed it', () => {
    const desired = [read(NOON + HOUR, STATED, STATED)];
    const { note, ...between } = kind.decide(states({ ...known, desired, by: STATED }));
    expect(steps(between)).toEqual([]);
    expect(steps(decide(STATED, STATED, note && { recorded: note }))).toEqual([overrides]);
  });

  test('does not count if it is in the future, and never will', () => {
    expect(steps(first())).toEqual([]);
    for (const at of [STATED, STATED + HOUR, STATED + 9000 * HOUR]) {
      expect(steps(decide(at, STATED, { recorded: recorded() }))).toEqual([]);
    }
  });

  test('is remembered by every later decision, and whatever is acknowledged between', () => {
    let row = recorded();
    for (const at of [STATED, STATED + HOUR]) {
      row = decide(at, STATED, { recorded: row }).note ?? row;
    }
    const back = { ...states({ ...known, recorded: row, by: STATED }), desired: [] };
    row = carryOut(kind, { ...back, entries: [], former: [], certified: false }) ?? row;
    expect(steps(decide(STATED + HOUR, STATED, { recorded: row }))).toEqual([]);
  });

  test('counts again once the CRM states another one that has passed', () => {
    const later = STATED + HOUR;
    expect(steps(decide(later, later, { recorded: recorded() }))).toEqual([overrides]);
  });

  test('of a limited run that leaves the person alone is remembered, too', () => {
    const { note } = decide(NOON + HOUR, STATED, { unchosen: true });
    expect(steps(decide(STATED, STATED, { recorded: note }))).toEqual([]);
  });
});

test('an opt-out is reported to the CRM although such a time has passed', () => {
  const known = { recorded: withNews(theirs), observed: isOut };
  const at = NOON + HOUR;
  const { note } = kind.decide(states({ ...known, desired: [read(at, STATED)], by: at }));
  const { optOuts } = kind;
  const out = { channel: NEWS, cause: 'opt_out', after: 1, by: NOON } as const;
  const isNewer = (time: number, row?: RecordedRow) =>
    optOuts.isNewer(read(time, STATED), out, row);
  expect([isNewer(at), isNewer(STATED), isNewer(STATED, note)]).toEqual([false, true, false]);
});

test('such a time is remembered when the person is created', () => {
  const desired = [read(NOON + HOUR, STATED)];
  const row = carryOut(kind, states({ desired, by: NOON + HOUR }));
  expect(row).toMatchObject({ ownership: 'created', id: 'con_new' });
  expect(JSON.parse(row?.body ?? '')).toMatchObject({ early: [STATED] });
});

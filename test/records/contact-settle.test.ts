/** The truth table of `resolve`: what may be settled, row by row, and how long that holds. */
import { describe, expect, test } from 'vitest';
import { all, type Cause, type Entry } from '../../src/domain/do-not-contact.ts';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import type { Settled } from '../../src/records/contact/contacts.ts';
import type { Membership } from '../../src/records/contact/observe/contact-state.ts';
import {
  conflicts,
  remembered,
  shown,
  steps,
  wish,
  LATER,
  NEWS,
  NOON,
  open,
  PRODUCT,
  states,
  type People,
  type States,
  entry as entryOf,
} from '../support/records/record-stage.ts';

const yes = wish({ newsletter: 'yes' });
const out = shown({ news: 'opt_out', updatedAt: '2026-01-01T00:00:00Z' });
const never: Membership = {
  is: 'opt_out',
  by: 'platform',
  made: { after: null, by: NOON },
};
const left: Membership = { ...never, made: { after: NOON - 1, by: NOON } };
const ours: Membership = {
  is: 'opt_out',
  by: 'us',
  acked: NOON,
  cause: 'stated',
  stated: ['9'],
  bound: ['9'],
};
const withDefaults = { namesAll: true, defaults: { [NEWS]: 'opt_out' as const } };
const withoutDefaults = { namesAll: false, defaults: {} };
const insByDefault = { namesAll: true, defaults: { [NEWS]: 'opt_in' as const } };
const unknownDefaults = { defaults: {} };
const inByUs: Membership = { is: 'opt_in', by: 'us' };
const no = wish({ id: '2', newsletter: 'no' });
const listing = (cause: Cause, more: Partial<Entry> = {}) => ({ entries: [entry(cause, more)] });
const second = shown({ id: 'con_2', news: 'opt_out' });

function recorded(news: Membership, seen = out): RecordedRow {
  const row = remembered({ seen });
  const body = { contacts: [JSON.parse(seen.body)], defaults: [], channels: { [NEWS]: news } };
  return { ...row, body: canonicalJson(body) };
}

const entry = (cause: Cause, more: Partial<Entry> = {}) =>
  entryOf(cause, NEWS, { seq: 7, contact: 'con_1', ...more });

/** A person whom the CRM wants in, and who is out: in a conflict. */
function person(news: Membership, more: Partial<States> = {}): Partial<States> {
  return {
    desired: [yes],
    recorded: recorded(news),
    observed: [out],
    facts: withDefaults,
    ...more,
  };
}

const settlement = { at: LATER, by: 'eva on host', reason: 'by letter', evidence: 'ticket 7' };
const contacts = (): People => open().contacts;

function settle(known: Partial<States>, as: 'in' | 'out', channel = NEWS): Settled {
  const settled = contacts().settle?.(states(known), { channel, as, settlement });
  if (!settled) throw new Error('contacts can be settled');
  return settled;
}

/** What a run does after the settlement, with the changes that follow to what is known. */
function after(known: Partial<States>, settled: Settled, more: Partial<States> = {}) {
  if ('refused' in settled) throw new Error(settled.refused.reason);
  const ended = new Set(settled.ends.map(({ seq }) => seq));
  const entries = [
    ...(known.entries ?? []).filter(({ seq }) => !ended.has(seq)),
    ...settled.adds.map((add) => entry(add.cause, { ...add, seq: 99 })),
  ];
  const decision = contacts().decide(
    states({ ...known, entries, recorded: settled.row ?? known.recorded, ...more }),
  );
  return { steps: steps(decision), conflicts: conflicts(decision), news: decision.news };
}

const optsIn = { steps: [`opt_in ${NEWS} → con_1`], conflicts: [] };

describe('--in is accepted', () => {
  const accepted: [string, Partial<States>][] = [
    ['for our own opt-out', person(ours)],
    ['for an opt-out never observed in, on a platform with defaults', person(never)],
    ['together with its own doubtful entry', person(never, { entries: [entry('opt_out')] })],
    ['and ends the opt-out of an operator', person(ours, listing('operator', { contact: null }))],
  ];
  test.each(accepted)('%s, and the next run opts in', (_, known) => {
    expect(contacts().decide(states({ ...known, entries: [] })).problems).toHaveLength(1);
    const settled = settle(known, 'in');
    expect(settled).not.toHaveProperty('refused');
    expect(after(known, settled)).toMatchObject(optsIn);
  });
});

describe('--in is refused', () => {
  const status = (more: object) => [shown({ news: 'opt_out', ...more })];
  const blocked = (more: object) => person(never, { observed: status(more) });
  const refused: [string, Partial<States>, RegExp?][] = [
    ['where the person was in before', person(left), /may be the person's|out of this/],
    ['without known defaults', person(never, { facts: withoutDefaults })],
    ['where nobody knows whether there are defaults', person(never, { facts: unknownDefaults })],
    ['where the default is an opt-in', person(never, { facts: insByDefault })],
    ['for a doubtful opt-out', person({ ...left, doubtful: true }), /may be the person's/],
    ['where the person has just left: recorded in, shown out', person(inByUs)],
    ['where the subscription was removed', person(inByUs, { observed: [shown()] })],
    ['where the channel is not shown', person(never, { observed: [shown()] })],
    ['after an unsubscribe', blocked({ status: 'unsubscribed' }), /unsubscribed/],
    ['of a blocked person', blocked({ status: 'blocked' })],
    ['after a bounce', blocked({ suppressionReason: 'bounce' })],
    ['after a complaint', blocked({ suppressionReason: 'complaint' })],
    ['of a suppressed person', blocked({ suppressedAt: '2026-01-01T00:00:00Z' })],
    ['after an erasure', person(ours, listing('erasure', { part: all })), /erased/],
    ...(['unsubscribed', 'blocked', 'bounce', 'complaint', 'suppressed'] as const).map(
      (cause): [string, Partial<States>] => [
        `by an earlier ${cause} on the list`,
        person(ours, listing(cause, { part: all, contact: 'con_9' })),
      ],
    ),
    ['where the list knows that they left', person(never, listing('opt_out', { after: NOON - 1 }))],
    ['where the list knows another address', person(never, listing('opt_out', { through: 'id' }))],
    [
      'where the person left under a former address',
      person(ours, { former: [{ row: remembered({ news: 'platform' }), seen: [] }] }),
    ],
    ['of a contact gone', { desired: [yes], recorded: remembered({ id: undefined, news: 'in' }) }],
    ['where several contacts share the address', person(ours, { observed: [out, second] })],
    [
      'where the contact changed since it was recorded',
      person(never, { observed: [shown({ news: 'opt_out', updatedAt: '2026-02-02T00:00:00Z' })] }),
      /something else/,
    ],
    ['where the CRM says out', person(ours, { desired: [no] }), /no opt-in/],
    ['where the CRM has no opinion', person(ours, { desired: [wish()] }), /no opt-in/],
    ['of a person who is gone from the CRM', person(ours, { desired: [] }), /no opt-in/],
    ['where records contradict', person(ours, { desired: [yes, no] }), /no opt-in/],
    ['where there is no conflict', { desired: [yes] }, /no conflict/],
  ];
  test.each(refused)('%s', (_, known, why = /./) => {
    const settled = settle(known, 'in');
    expect(settled).toMatchObject({ refused: { reason: expect.stringMatching(why) } });
  });

  test('for a channel that the mirror does not have', () => {
    expect(settle(person(ours), 'in', 'ch_none')).toMatchObject({
      refused: { fix: expect.stringContaining(NEWS) },
    });
  });
});

describe('a settlement as an opt-in', () => {
  test('ends when the contact changes: the person is out again, and on the list', () => {
    const known = person(never);
    const settled = settle(known, 'in');
    const changed = shown({ news: 'opt_out', updatedAt: '2026-02-02T00:00:00Z' });
    const found = after(known, settled, { observed: [changed] });
    expect(found).toMatchObject({ steps: [], conflicts: [NEWS] });
    expect(found.news?.adds).toMatchObject([{ part: NEWS, cause: 'opt_out' }]);
  });

  test('of our own opt-out ends likewise', () => {
    const known = person(ours);
    const changed = shown({ news: 'opt_out', updatedAt: '2026-02-02T00:00:00Z' });
    expect(after(known, settle(known, 'in'), { observed: [changed] })).toMatchObject({
      steps: [],
      conflicts: [NEWS],
    });
  });

  test.each([
    ['unsubscribes', { status: 'unsubscribed' }],
    ['complains', { suppressionReason: 'complaint' }],
  ])('ends when the person %s', (_, more) => {
    const known = person(never);
    const observed = [shown({ news: 'opt_out', updatedAt: '2026-02-02T00:00:00Z', ...more })];
    expect(after(known, settle(known, 'in'), { observed })).toMatchObject({
      steps: [],
      conflicts: [NEWS],
    });
  });

  test.each([
    ['ours', ours],
    ['doubtful', never],
  ])('ends when the CRM states an opt-out in between (%s)', (_, membership) => {
    const known = person(membership);
    const settled = settle(known, 'in');
    if ('refused' in settled || !settled.row) throw new Error('refused');
    const saidOut = contacts().decide(
      states({ ...known, recorded: settled.row, desired: [wish({ newsletter: 'no' })] }),
    );
    const again = contacts().decide(states({ ...known, recorded: saidOut.note }));
    expect(steps(again).filter((step) => step.startsWith('opt_in'))).toEqual(
      // The record that states our opt-out is the one that says in now, as the rule asks.
      membership === ours ? [`opt_in ${NEWS} → con_1`] : [],
    );
  });

  test('of the snapshot counts no more once that is restored from a backup', () => {
    const known = person(never, { facts: { ...withDefaults, enrolmentMoves: undefined } });
    expect(after(known, settle(known, 'in'), { restored: true }).steps).toEqual([]);
  });

  test('allows nothing in another channel', () => {
    const both = wish({ newsletter: 'yes', product: 'yes' });
    const seen = shown({ news: 'opt_out', product: 'opt_out' });
    const channels = { [NEWS]: never, [PRODUCT]: left };
    const row = recorded(never, seen);
    const body = canonicalJson({ contacts: [JSON.parse(seen.body)], defaults: [], channels });
    const entries = [entry('doubtful'), entry('doubtful', { part: PRODUCT, seq: 8 })];
    const there = { desired: [both], observed: [seen], recorded: { ...row, body } };
    const known = person(never, { ...there, entries });
    const settled = settle(known, 'in');
    expect(settled).toMatchObject({ ends: [{ seq: 7 }] });
    expect(after(known, settled)).toMatchObject({ ...optsIn, conflicts: [PRODUCT] });
  });
});

describe('--out', () => {
  const operator = { cause: 'operator', part: NEWS, by: LATER };
  test.each<[string, Partial<States>]>([
    ['an opt-out by the person', person(left)],
    ['our own opt-out', person(ours)],
    ['a doubtful opt-out', person(never)],
    ['a removed subscription', person(inByUs, { observed: [shown()] })],
    ['several contacts', person(ours, { observed: [out, second] })],
    ['contradicting records', { desired: [yes, wish({ id: '2', newsletter: 'no' })] }],
    ['a vanished contact', { desired: [yes], recorded: remembered({ id: undefined, news: 'in' }) }],
  ])('settles %s: nothing is sent where nobody is in, and no conflict is left', (_, known) => {
    const settled = settle(known, 'out');
    expect(settled).toMatchObject({ adds: [operator], ends: [] });
    expect(after(known, settled)).toMatchObject({ steps: [], conflicts: [] });
  });

  test('as an opt-out is later than any time that the CRM states by then', () => {
    const body = canonicalJson({ ...Object(JSON.parse(yes.body)), consentAt: LATER + 9000 });
    const desired = [{ ...yes, body }];
    expect(settle(person(ours, { desired }), 'out')).toMatchObject({
      adds: [{ by: LATER + 9000 }],
    });
  });

  test.each<[string, Partial<States>]>([
    ['that there is no conflict', { desired: [yes] }],
    ['that the CRM says out', person(ours, { desired: [no] })],
    ['that it is settled so', person(ours, { entries: [entry('operator')] })],
    ['the erasure', { desired: [yes], entries: [entry('erasure', { part: all })] }],
  ])('is refused with %s', (_, known) => {
    expect(settle(known, 'out')).toHaveProperty('refused');
  });

  test('without a conflict, it names the CRM as the place of a new opt-out', () => {
    expect(settle({ desired: [yes] }, 'out')).toMatchObject({
      refused: { fix: expect.stringMatching(/^record the opt-out in the CRM.+sync --person/) },
    });
  });

  const standing = (more: Partial<States> = {}): Partial<States> => ({
    desired: [yes],
    entries: [entry('operator', { contact: null })],
    ...more,
  });
  const decided = (known: Partial<States>) => steps(contacts().decide(states(known)));

  test('opts out where the platform shows the person in, also without an opinion of the CRM', () => {
    const observed = [shown({ news: 'opt_in' })];
    expect(decided(standing({ observed }))).toEqual([`opt_out ${NEWS} → con_1`]);
    expect(decided(standing({ observed, desired: [wish()] }))).toEqual([`opt_out ${NEWS} → con_1`]);
  });

  test('creates nobody, and follows the person to another address by the CRM id', () => {
    expect(decided(standing())).toEqual([]);
    const through = { through: 'id' } as const;
    expect(decided(standing({ entries: [entry('operator', through)] }))).toEqual([]);
  });

  test('ends when the CRM states an opt-in later, and not in the future', () => {
    const says = (consentAt: number) => {
      const body = canonicalJson({ ...Object(JSON.parse(yes.body)), consentAt });
      return [{ ...yes, body }];
    };
    const entries = [entry('operator', { by: NOON - 10_000 })];
    expect(decided(standing({ entries, desired: says(NOON - 20_000) }))).toEqual([]);
    expect(decided(standing({ entries, desired: says(NOON - 10_000) }))).toEqual([]);
    expect(decided(standing({ entries, desired: says(NOON - 5_000) }))).toEqual([`create ${NEWS}`]);
    expect(decided(standing({ entries, desired: says(NOON + 864_000_000) }))).toEqual([]);
  });

  test('ended by the CRM, marks the opt-in of its own channel alone', () => {
    const yesTo = wish({ newsletter: 'yes', product: 'yes' });
    const body = canonicalJson({ ...Object(JSON.parse(yesTo.body)), consentAt: NOON - 5_000 });
    const entries = [entry('operator', { part: NEWS, by: NOON - 10_000 })];
    const { changes } = contacts().decide(
      states({ desired: [{ ...yesTo, body }], entries, observed: [shown()] }),
    );
    const since = changes.map(({ part, body: marks }) => [part, JSON.parse(marks).since]);
    expect(since).toEqual([
      [NEWS, NOON - 5_000],
      [PRODUCT, undefined],
    ]);
  });

  test('touches no contact of a person who is gone from the CRM', () => {
    expect(decided(standing({ desired: [], observed: [shown({ news: 'opt_in' })] }))).toEqual([]);
  });
});

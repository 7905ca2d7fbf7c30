/** The table of moved.ts where policy deletes: when an old address is deleted. */
import { describe, expect, test } from 'vitest';
import { explainPerson } from '../../src/records/contact/explain-person.ts';
import { rulesOf } from '../../src/records/contact/consent/facts.ts';
import { enrolmentBody } from '../../src/records/contact/observe/contact-state.ts';
import type { States } from '../../src/records/record-type.ts';
import type { DesiredRow, RecordedRow } from '../../src/domain/record.ts';
import { remembered, shown, steps, wish } from '../support/records/person-facts.ts';
import { fields, LATER, open, states } from '../support/records/record-stage.ts';

const rulesWhere = (deletes: 'off' | 'created' | 'owned') => ({
  contacts: { absent: 'opt_out' as const },
  absence: { deletes },
});
const kinds = {
  off: open(rulesWhere('off')).contacts,
  created: open(rulesWhere('created')).contacts,
  owned: open(rulesWhere('owned')).contacts,
};
const optOut = ['opt_out ch_news → con_1'];
const remove = ['delete  → con_1'];
const inNews = () => wish({ newsletter: 'yes' });
const there = { in: remembered({ news: 'in' }), us: remembered({ news: 'us' }) };
const longMs = 20 * 3_600_000;
const absence = {
  readings: 2,
  firstAt: LATER - longMs,
  lastAt: LATER,
  ageMs: longMs,
  waitedMs: 0,
};

const next = (desired: DesiredRow[], recorded?: RecordedRow) => ({
  desired,
  recorded,
  vanished: false,
});
const stands = next([inNews()], there.in);
const waits = next([inNews()]);

/** Ann's old contact is in the newsletter; the CRM has the new address. */
const asked = (successors: States['successors'], known: Partial<States> = {}): States =>
  states({
    recorded: remembered({ news: 'in' }),
    observed: [shown({ news: 'opt_in' })],
    successors,
    ...known,
  });
const decide = (
  successors: States['successors'],
  known: Partial<States> = {},
  kind = kinds.created,
) => kind.decide(asked(successors, known));

describe('the state of the new address decides', () => {
  test.each<[string, DesiredRow[], RecordedRow | undefined, string[]]>([
    ['in, in', [inNews()], there.in, remove],
    ['in, left there', [inNews()], remembered({ news: 'platform' }), remove],
    ['in, out by us', [inNews()], there.us, []],
    ['in, in nothing yet', [inNews()], remembered(), []],
    ['in, not recorded', [inNews()], undefined, []],
    ['in, vanished', [inNews()], remembered({ id: undefined, news: 'in' }), []],
    ['no opinion, there', [wish()], remembered(), remove],
    ['no opinion, not there', [wish()], undefined, []],
    ['out, there', [wish({ newsletter: 'no' })], remembered(), [...optOut, ...remove]],
    ['out, not there', [wish({ newsletter: 'no' })], undefined, optOut],
    ['broken, there', [wish({ newsletter: 'maybe' })], remembered(), []],
    ['gone, there', [wish({ archived: 'yes' })], there.in, []],
    ['gone and out', [wish({ archived: 'yes', newsletter: 'no' })], there.in, optOut],
  ])('%s', (_what, desired, recorded, expected) => {
    expect(steps(decide([next(desired, recorded)]))).toEqual(expected);
  });

  test('every channel has to be done: until then each is opted out by itself', () => {
    const both = [wish({ newsletter: 'yes', product: 'yes' })];
    expect(steps(decide([next(both, there.in)]))).toEqual(optOut);
    const whole = remembered({ news: 'in', product: 'in' });
    expect(steps(decide([next(both, whole)]))).toEqual(remove);
  });

  test('all of several new addresses have to be done', () => {
    expect(steps(decide([stands, waits]))).toEqual([]);
    expect(steps(decide([stands, stands]))).toEqual(remove);
    expect(steps(decide([stands, next([wish({ newsletter: 'no' })])]))).toEqual(optOut);
  });
});

describe('the delete applies', () => {
  const adopted = { recorded: { ...remembered({ news: 'in' }), ownership: 'adopted' as const } };
  const foreign = { recorded: undefined };

  test.each<[string, Partial<States>, keyof typeof kinds, string[]]>([
    ['off: nobody', {}, 'off', optOut],
    ['created: a contact that we created', {}, 'created', remove],
    ['created: not an adopted contact', adopted, 'created', optOut],
    ['owned: an adopted contact too', adopted, 'owned', remove],
    ['nobody who is not ours', foreign, 'owned', []],
    ['nobody in a run that may not delete', { mayDelete: false }, 'owned', optOut],
    ['nobody upon an uncertified reading', { certified: false }, 'owned', []],
    ['who is subscribed to nothing as well', { observed: [shown()] }, 'created', remove],
    ['nobody while a CRM record of that address is missing', { strays: true }, 'created', []],
  ])('%s', (_what, known, policy, expected) => {
    expect(steps(decide([stands], known, kinds[policy]))).toEqual(expected);
  });

  test('to nobody whose new address has vanished by now', () => {
    expect(steps(decide([{ ...stands, vanished: true }]))).toEqual([]);
  });

  test('to our contact of several; the others are opted out', () => {
    const observed = [shown({ news: 'opt_in' }), shown({ id: 'con_2', news: 'opt_in' })];
    expect(steps(decide([stands], { observed }))).toEqual(['opt_out ch_news → con_2', ...remove]);
  });

  test('after an opt-out while the platform refuses deletes', () => {
    expect(steps(decide([stands], { parked: [''] }))).toEqual([...optOut, ...remove]);
    expect(steps(decide([stands], { parked: ['ch_news'] }))).toEqual(remove);
  });
});

describe('together with absence', () => {
  test('a missing address is not deleted while the new one waits', () => {
    expect(steps(decide([waits], { absence }))).toEqual(optOut);
    expect(steps(decide([{ ...stands, vanished: true }], { absence }))).toEqual(optOut);
    const gone = next([wish({ archived: 'yes' })]);
    expect(steps(decide([gone], { absence }))).toEqual([...optOut, ...remove]);
  });
  test('a missing address is opted out first, an old one is not', () => {
    expect(steps(decide([stands], { absence }))).toEqual(remove);
    expect(steps(decide([stands], { absence, strays: true }))).toEqual([...optOut, ...remove]);
  });
});

test('the deletes are marked and counted by the guard, like the opt-outs', () => {
  const { changes } = decide([stands]);
  expect(changes.map(({ guard, phase }) => ({ guard, phase }))).toEqual([
    { guard: 'delete', phase: 2 },
  ]);
  const marks = changes.map(({ body }) => enrolmentBody.parse(JSON.parse(body)).moved);
  expect(marks).toEqual([true]);
});

test('names the gate that decided, in an explanation', () => {
  const { policy, absence: rules } = {
    policy: { absent: 'opt_out', missing: 'respect', resubscribe: 'never', optIns: 'on' } as const,
    absence: { deletes: 'created', deleteAfterMs: 0, absentReadings: 2, absentForMs: 1 } as const,
  };
  const told = (successors: States['successors'], known: Partial<States> = {}) =>
    explainPerson(asked(successors, known), rulesOf(fields, policy, rules)).channels[0]?.verdict;
  expect(told([stands])).toMatchObject({ by: 'address-replaced', action: 'delete' });
  expect(told([stands], { mayDelete: false })).toMatchObject({
    by: 'address-changed',
    action: 'opt_out',
  });
  expect(told([waits])).toMatchObject({ by: 'gone-kept', row: 3, action: 'nothing' });
});

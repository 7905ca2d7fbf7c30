/** What contacts.protect and policy.optIns: off keep from being done, row by row. */
import { describe, expect, test } from 'vitest';
import { recordedBody } from '../../src/records/contact/observe/contact-state.ts';
import { contactDesire } from '../../src/records/contact/observe/desired-contact.ts';
import {
  ANN,
  remembered,
  shown,
  steps,
  wish,
  fields,
  LATER,
  NOON,
  open,
  states,
  type States,
  acked,
} from '../support/records/record-stage.ts';

const isVip = {
  text: 'record.vip == "yes"',
  fields: ['vip'],
  judge: (record: Record<string, unknown>) => ({ gives: record['vip'] === 'yes' }),
};
const protect = [{ when: isVip }];
const policy = { contacts: { absent: 'opt_out' }, absence: { deletes: 'owned' } } as const;
const byAddress = open({ ...policy, protect: [' ANN@example.com'] }).contacts;
const byRecord = open({ ...policy, protect }).contacts;
const long = { readings: 9, firstAt: 0, lastAt: LATER, ageMs: LATER, waitedMs: LATER };
const here = {
  recorded: remembered({ news: 'in' }),
  observed: [shown({ news: 'opt_in' })],
} satisfies Partial<States>;
const vip = (record: Record<string, unknown> = {}) =>
  contactDesire({ ...fields, protect }, () => NOON)(
    { id: '1', email: ANN, newsletter: '', product: '', vip: 'yes', ...record },
    '',
  );

describe('a protected address', () => {
  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['is not created',                        { desired: [wish({ newsletter: 'yes' })] }, []],
    ['is not opted in',                       { ...here, desired: [wish({ newsletter: 'yes', product: 'yes' })] }, []],
    ['is not opted out for absence',          { ...here, recorded: remembered({ news: 'in' }), absence: long }, []],
    ['is neither deleted nor opted out',      { ...here, absence: long }, []],
    ['is not deleted for a flag',             { ...here, desired: [wish({ archived: 'yes' })] }, []],
    ['is opted out where the CRM says so',    { ...here, desired: [wish({ newsletter: 'no' })] }, ['opt_out ch_news → con_1']],
  ])('%s', (_, known, sent) => {
    expect(steps(byAddress.decide(states(known)))).toEqual(sent);
  });

  test('names the setting that stops a change, where it does', () => {
    const stops = (known: Partial<States>) => byAddress.decide(states(known)).stoppedBy;
    expect(stops({ ...here, absence: long })).toEqual(['protect']);
    expect(stops({ desired: [wish({ newsletter: 'yes' })] })).toEqual(['protect']);
    expect(stops({ ...here, desired: [wish({ newsletter: 'yes' })] })).toEqual([]);
    expect(stops({ ...here, desired: [wish({ newsletter: 'no' })] })).toEqual([]);
  });

  test('does not protect anybody else', () => {
    const bob = { ...here, key: 'bob@example.com', absence: long };
    expect(steps(byAddress.decide(states(bob)))).toContain('delete  → con_1');
  });
});

describe('a condition that protects', () => {
  const noted = (known: Partial<States>) => {
    const { note } = byRecord.decide(states(known));
    if (!note) throw new Error('nothing is recorded');
    return note;
  };
  const isProtected = (row: { body: string }) =>
    recordedBody.parse(JSON.parse(row.body)).protected === true;

  test('stays in force when the record has left the CRM', () => {
    const recorded = noted({ ...here, desired: [vip({ newsletter: 'yes' })] });
    expect(isProtected(recorded)).toBe(true);
    expect(steps(byRecord.decide(states({ ...here, recorded, absence: long })))).toEqual([]);
    expect(isProtected(noted({ ...here, recorded, absence: long }))).toBe(true);
  });

  test('ends when a record says otherwise', () => {
    const recorded = noted({ ...here, desired: [vip({ newsletter: 'yes' })] });
    const after = noted({ ...here, recorded, desired: [vip({ vip: 'no', newsletter: 'yes' })] });
    expect(isProtected(after)).toBe(false);
    const gone = byRecord.decide(states({ ...here, recorded: after, absence: long }));
    expect(steps(gone)).toContain('delete  → con_1');
  });

  test('stays as it was while the record is invalid', () => {
    const recorded = noted({ ...here, desired: [vip({ newsletter: 'yes' })] });
    const broken = vip({ vip: 'no', newsletter: 'perhaps' });
    expect(isProtected(noted({ ...here, recorded, desired: [broken] }))).toBe(true);
  });

  test('stays in force after an acknowledged opt-out that the CRM states', () => {
    const recorded = noted({ ...here, desired: [vip({ newsletter: 'no' })] });
    const [change] = byRecord.decide(
      states({ ...here, recorded, desired: [vip({ newsletter: 'no' })] }),
    ).changes;
    if (!change) throw new Error('nothing is sent');
    const after = byRecord.acknowledge(recorded, change, acked());
    expect(after && isProtected(after)).toBe(true);
  });
});

describe('policy.optIns: off', () => {
  const off = open({ ...policy, contacts: { absent: 'opt_out', optIns: 'off' } }).contacts;

  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['creates nobody',                     { desired: [wish({ newsletter: 'yes' })] }, []],
    ['opts nobody in',                     { ...here, desired: [wish({ newsletter: 'yes', product: 'yes' })] }, []],
    ['opts out where the CRM says so',     { ...here, desired: [wish({ newsletter: 'no' })] }, ['opt_out ch_news → con_1']],
  ])('%s', (_, known, sent) => {
    expect(steps(off.decide(states(known)))).toEqual(sent);
  });

  test('deletes as before', () => {
    expect(steps(off.decide(states({ ...here, absence: long })))).toContain('delete  → con_1');
  });

  test('leaves the person unsettled, so that turning it on opts them in', () => {
    const known = { ...here, desired: [wish({ newsletter: 'yes', product: 'yes' })] };
    const decision = off.decide(states(known));
    expect(decision.stoppedBy).toEqual(['optIns']);
    expect(decision.problems).toEqual([]);
    expect(decision.note?.desired).toBeUndefined();
  });
});

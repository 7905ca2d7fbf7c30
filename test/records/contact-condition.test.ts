/** What conditions make of a CRM record. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile } from '../../src/config/schema/cel-condition.ts';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../src/records/contact/observe/contact-state.ts';
import { contradict, strictest, statedAt } from '../../src/records/contact/observe/consent-time.ts';
import type { Condition, ConditionResult } from '../../src/domain/condition.ts';
import { NEWS, NOON, PRODUCT } from '../support/records/record-stage.ts';

/** A condition that comes to this, whatever the record. */
const comes = (verdict: ConditionResult): Condition => ({
  text: '',
  fields: ['age'],
  judge: () => verdict,
});
const gives = (value: unknown) => comes({ gives: value });
const fails = comes({ failsOn: ['age', 'age'] });

interface Stated {
  include?: Condition;
  when?: Condition;
  record?: Record<string, unknown>;
}

/** Ann wants the newsletter where the condition says so, and the product news by a column. */
function desire({ include, when = gives(true), record }: Stated) {
  const fields: ContactFields = {
    id: 'id',
    email: 'email',
    unsubscribed: 'leaves',
    consentAt: 'since',
    include,
    channels: [
      { id: NEWS, subscription: { when } },
      { id: PRODUCT, subscription: 'product' },
    ],
  };
  const ann = { id: '1', email: 'ann@example.com', product: 'yes', age: '42', leaves: '' };
  const desired = contactDesire(fields, () => NOON)({ ...ann, ...record }, 'line 2');
  const row = decodeContact.desired(desired);
  const { presence, channels } = row.value;
  return { row, presence, news: channels[NEWS], product: channels[PRODUCT] };
}

const odd = [undefined, 'true', 'yes', '', 1, 1n, 0, {}, [true], Promise.resolve(true)];

describe('subscription.when', () => {
  test.each([
    [true, 'opt_in'],
    [false, 'opt_out'],
    [null, null],
  ])('%j is %j', (value, expected) => {
    const { row, news, product } = desire({ when: gives(value) });
    expect(news).toBe(expected);
    expect(product).toBe('opt_in');
    expect(row.invalid).toBeUndefined();
  });

  test.each(odd)(
    'makes the record invalid when it gives %s: no opinion, and no opt-in elsewhere',
    (value) => {
      const { row, news, product } = desire({ when: gives(value) });
      expect([news, product, row.wants]).toEqual([null, null, false]);
      expect(row.invalid).toMatchObject({
        reason: `subscription.when of "${NEWS}" gives neither true, false nor null`,
        fix: 'correct the condition',
      });
    },
  );

  test('makes the record invalid when it cannot be evaluated; opt-outs apply', () => {
    const { row, presence, news, product } = desire({ when: fails, record: { product: 'no' } });
    expect([presence, news, product, row.wants]).toEqual(['present', null, 'opt_out', false]);
    expect(row.invalid).toMatchObject({
      reason: `subscription.when of "${NEWS}" cannot be evaluated with this value of "age"`,
      fix: 'correct it in the CRM, or have the condition allow for it',
    });
  });

  test.each([gives(true), gives(null), gives('x'), fails])(
    'does not protect somebody who wants no mail at all (%#)',
    (when) => {
      const { news, product } = desire({ when, record: { leaves: 'yes' } });
      expect([news, product]).toEqual(['opt_out', 'opt_out']);
    },
  );
});

describe('contacts.include', () => {
  test('true changes nothing', () => {
    expect(desire({ include: gives(true) })).toEqual(desire({}));
  });

  test('false takes the record out of scope: nothing wanted, its opt-outs kept', () => {
    const { row, presence, news, product } = desire({
      include: gives(false),
      record: { product: 'no' },
    });
    expect(row).toMatchObject({ invalid: undefined, wants: false, key: 'ann@example.com' });
    expect([presence, news, product]).toEqual(['outside', null, 'opt_out']);
    const wishes = strictest([row], [NEWS, PRODUCT]);
    expect([...wishes.values()]).toEqual(['gone', 'opt_out']);
  });

  test('false requires no id, no address and no time', () => {
    const records = [{ id: '' }, { id: {} }, { email: '' }, { email: 'ann' }, { since: 'once' }];
    for (const record of records)
      expect(desire({ include: gives(false), record }).row.invalid).toBeUndefined();
  });

  test.each([{ when: fails }, { when: gives('x') }, { record: { product: 'nein danke' } }])(
    'false does not excuse an unreadable consent (%#)',
    (stated) => {
      expect(desire({ include: gives(false), ...stated }).row.invalid).toBeDefined();
    },
  );

  test.each([...odd, null])('%s is invalid, and nobody counts as removed', (value) => {
    const { row, presence, news, product } = desire({ include: gives(value) });
    expect([presence, news, product, row.wants]).toEqual(['present', null, null, false]);
    expect(row.invalid?.reason).toBe('contacts.include gives neither true nor false');
  });

  test('makes the record invalid when it cannot be evaluated: not removed, opt-outs apply', () => {
    const { row, presence, news, product } = desire({ include: fails, when: gives(false) });
    expect([presence, news, product, row.wants]).toEqual(['present', 'opt_out', null, false]);
    expect(row.invalid?.reason).toBe(
      'contacts.include cannot be evaluated with this value of "age"',
    );
  });

  test('makes the record invalid for a text that is too long, and prints the limit', () => {
    const { row } = desire({ include: comes({ failsOn: ['note'], longest: 16_384 }) });
    expect(row.invalid).toMatchObject({
      reason: 'contacts.include cannot be evaluated: "note" has more than 16,384 characters',
      fix: 'shorten it in the CRM, or leave the field out of the condition',
    });
  });

  test.each([
    ['2026-03-01T12:00:00', 'is a time without a zone'],
    ['2026-03-01 12:00', 'is a time without a zone'],
    ['01.03.2026', 'is no time that can be read'],
  ])('a consent of %s is invalid, with a reason', (since, why) => {
    expect(desire({ record: { since } }).row.invalid?.reason).toBe(`"since" ${why}`);
  });

  test('a record out of scope beside one in scope: its opt-out applies, or else the other’s', () => {
    const within = desire({}).row;
    const out = desire({ include: gives(false), when: gives(null), record: { product: 'no' } });
    const wishes = strictest([within, out.row], [NEWS, PRODUCT]);
    expect([...wishes.values()]).toEqual(['opt_in', 'opt_out']);
  });

  test('a record out of scope contradicts no opt-out in scope, and dates no consent', () => {
    const out = desire({ include: gives(false), record: { since: '2020-01-01' } }).row;
    const within = desire({ when: gives(false), record: { since: '2026-01-01' } }).row;
    expect(contradict([out, within], NEWS)).toBe(false);
    const newer = desire({ record: { since: '2026-01-01' } }).row;
    expect(statedAt([out, newer], NEWS)).toBe(statedAt([newer], NEWS));
  });
});

test('the fields of a condition are requested from the source', () => {
  const subscription = { when: { ...gives(true), fields: ['born', 'age'] } };
  const channels = [{ id: NEWS, subscription }];
  const fields = { id: 'id', email: 'email', include: gives(true), channels };
  expect(fieldNames(fields)).toEqual(['id', 'email', 'age', 'born']);
});

describe('for any result of a condition', () => {
  const verdict = fc.oneof(
    fc.constantFrom(true, false, null).map((value): ConditionResult => ({ gives: value })),
    fc.anything().map((value): ConditionResult => ({ gives: value })),
    fc.array(fc.string()).map((failsOn): ConditionResult => ({ failsOn })),
  );
  const isTrue = (found: ConditionResult) => 'gives' in found && found.gives === true;
  const isFalse = (found: ConditionResult) => 'gives' in found && found.gives === false;

  test('only true opts in, and only false takes out of scope', () => {
    fc.assert(
      fc.property(verdict, verdict, (scope, wish) => {
        const { row, presence } = desire({ include: comes(scope), when: comes(wish) });
        const wishes = strictest([row], [NEWS, PRODUCT]);
        if (wishes.get(NEWS) === 'opt_in') expect(isTrue(scope) && isTrue(wish)).toBe(true);
        if (wishes.get(PRODUCT) === 'opt_in') expect(isTrue(scope)).toBe(true);
        expect(presence === 'outside').toBe(isFalse(scope));
        expect(wishes.get(NEWS) === 'opt_out').toBe(isFalse(wish));
      }),
      { numRuns: 2000 },
    );
  });

  test('the reason prints no value of the record', () => {
    const found = compile('bool(record.age)', { nullable: true });
    if (!('judge' in found)) throw new Error(found.reason);
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        const record = { age: `secret ${text}` };
        const { row, news } = desire({ include: found, when: found, record });
        expect(news).toBeNull();
        expect(JSON.stringify(row.invalid)).not.toContain('secret');
      }),
    );
  });
});

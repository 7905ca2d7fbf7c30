/** What is learnt of a platform, and which opt-outs are no departure by what is known of it. */
import { describe, expect, test } from 'vitest';
import { outsOf } from '../../src/records/contact/consent/platform-opt-outs.ts';
import {
  evidenceOf,
  mayBeDefault,
  withEvidence,
  type Evidence,
  type PlatformFacts,
} from '../../src/records/platform-facts.ts';
import {
  ANN,
  remembered,
  shown,
  wish,
  LATER,
  NEWS,
  NOON,
  open,
  PRODUCT,
  states,
  newsOf,
  bodyOf,
} from '../support/records/record-stage.ts';

const unknown: PlatformFacts = { defaults: {} };
const none: PlatformFacts = { namesAll: false, defaults: {} };
const outs: PlatformFacts = { namesAll: true, defaults: { [PRODUCT]: 'opt_out' } };
const ins: PlatformFacts = { namesAll: true, defaults: { [PRODUCT]: 'opt_in' } };
const creation = (others: Extract<Evidence, { of: 'creation' }>['others']): Evidence => ({
  of: 'creation',
  others,
});
const listing = (names: 'differ' | 'agree'): Evidence => ({ of: 'listing', names });

test.each<[string, PlatformFacts, Evidence, PlatformFacts]>([
  ['a creation that shows its own channel only', unknown, creation({}), none],
  ['the same, against what was known', outs, creation({}), none],
  ['a creation that shows an opt-out', unknown, creation({ [PRODUCT]: 'opt_out' }), outs],
  ['the same, against what was known', none, creation({ [PRODUCT]: 'opt_out' }), outs],
  ['a creation that shows an opt-in', unknown, creation({ [PRODUCT]: 'opt_in' }), ins],
  ['the same, after an opt-out', outs, creation({ [PRODUCT]: 'opt_in' }), outs],
  ['contacts that name different channels', outs, listing('differ'), none],
  ['contacts that name the same ones', none, listing('agree'), unknown],
  ['the same, where defaults are known', outs, listing('agree'), outs],
])('%s', (_, before, evidence, after) => {
  expect(withEvidence(before, evidence)).toEqual(after);
});

test.each([
  ['differ on one page', [{ names: [NEWS], differ: true }], 2, listing('differ')],
  ['are the same on all pages', [both(), both()], 4, listing('agree')],
  ['are one contact', [both()], 1, undefined],
  ['lack a channel of the mirror', [{ names: [NEWS, 'x'], differ: false }], 2, undefined],
  ['differ between pages', [both(), { names: [NEWS], differ: false }], 2, undefined],
  ['are none', [], 0, undefined],
])('the evidence of a listing whose contacts %s', (_, pages, count, evidence) => {
  expect(evidenceOf({ pages, count, parts: [NEWS, PRODUCT] })).toEqual(evidence);
});

function both() {
  return { names: [PRODUCT, NEWS], differ: false };
}

test('an opt-out may be a default unless the platform is known to have none there', () => {
  const all = [unknown, none, outs, ins].map((facts) => mayBeDefault(facts, PRODUCT));
  expect(all).toEqual([true, false, true, false]);
});

describe('the cause that is reported to the CRM', () => {
  const told = outsOf([NEWS], { resubscribe: 'never' });
  const body = (more: object) =>
    JSON.stringify({
      channels: { [NEWS]: { by: 'platform', is: 'opt_out', ...more } },
      contacts: [],
      defaults: [],
    });
  const seenIn = { made: { after: 1, by: 2 } };
  const neverIn = { made: { after: null, by: 2 } };

  test.each([
    ['seen in before', seenIn, outs, 'opt_out'],
    ['never seen in, where defaults may be shown', neverIn, unknown, 'doubtful'],
    ['not dated, where defaults are shown', {}, outs, 'doubtful'],
    ['never seen in, where no defaults are shown', neverIn, none, 'opt_out'],
    ['left by a request without an answer', { ...seenIn, doubtful: true }, none, 'doubtful'],
  ])('%s', (_, more, facts, cause) => {
    expect(told.recorded({ key: 'ann@x.org', body: body(more), seenAt: 2 }, facts)).toMatchObject([
      { cause },
    ]);
  });

  test('is doubtful in the do-not-contact list in the same cases', () => {
    const entry = {
      part: NEWS,
      contact: null,
      by: 2,
      seq: 1,
      through: 'address',
      bears: true,
    } as const;
    const left = { ...entry, cause: 'opt_out', after: null } as const;
    expect(told.remembered(left, outs)).toMatchObject({ cause: 'doubtful' });
    expect(told.remembered(left, none)).toMatchObject({ cause: 'opt_out' });
    expect(told.remembered({ ...left, after: 1 }, outs)).toMatchObject({ cause: 'opt_out' });
    expect(told.remembered({ ...left, cause: 'doubtful' }, none)).toMatchObject({
      cause: 'doubtful',
    });
  });
});

describe('our opt-out of a contact renamed since is not the person’s under its new address', () => {
  const email = 'anna@example.com';
  const other = { id: 'con_2' };

  test.each([
    ['nobody has the former address', []],
    ['another contact has it', [shown(other)]],
    ['another contact has it, and is subscribed', [shown({ ...other, news: 'opt_in' })]],
    ['another contact has it, and is not subscribed', [shown({ ...other, news: 'opt_out' })]],
  ])('%s', (_, seen) => {
    const { note } = open().contacts.decide(
      states({
        key: email,
        desired: [wish({ email, newsletter: 'yes' })],
        observed: [shown({ email, news: 'opt_out' })],
        former: [{ row: remembered({ news: 'us' }), seen }],
        facts: none,
      }),
    );
    expect(ANN).not.toBe(email);
    expect(newsOf(note)).toMatchObject({
      by: 'platform',
      doubtful: true,
      is: 'opt_out',
    });
  });
});

test('who left all mail has left since it was seen first, however often it is seen', () => {
  const { decide } = open().contacts;
  const observed = [shown({ status: 'unsubscribed' })];
  const leftIn = (note: ReturnType<typeof decide>['note']) => bodyOf(note).left;
  const first = decide(states({ observed, recorded: remembered() })).note;
  const again = decide(states({ observed, recorded: first, latest: LATER + 9 })).note ?? first;
  expect(leftIn(first)).toEqual({ after: NOON, by: LATER });
  expect(leftIn(again)).toEqual(leftIn(first));
});

test.each<[string, Record<string, string>, string, boolean]>([
  ['a channel', { newsletter: 'no' }, NEWS, true],
  ['another channel', { product: 'no' }, NEWS, false],
  ['one channel of all', { newsletter: 'no' }, '*', false],
  ['all channels', { newsletter: 'no', product: 'no' }, '*', true],
])(
  'an opt-out from %s is stated by the record, and needs no report: %j, %s',
  (_, says, channel, is) => {
    const outs = outsOf([NEWS, PRODUCT], { resubscribe: 'never' });
    expect(outs.saysSo(wish(says), { channel })).toBe(is);
  },
);

/** Of which records events tell, and of which they say that they were erased. */
import { expect, test } from 'vitest';
import { toldIn } from '../../../src/worker/server/webhooks.ts';

const hubspot = { format: 'hubspot', id: 'objectId' } as const;
const standard = { format: 'standard', id: 'data.id' } as const;
const of = (subscriptionType: string, objectId: unknown, more: object = {}) => ({
  subscriptionType,
  objectId,
  ...more,
});

test.each<[string, unknown, string[], string[]]>([
  ['erased for privacy', of('contact.privacyDeletion', 1), ['1'], ['1']],
  [
    'in the words of newer events',
    of('object.privacyDeletion', 1, { objectTypeId: '0-1' }),
    ['1'],
    ['1'],
  ],
  ['without its type', of('object.privacyDeletion', 1), ['1'], []],
  ['a company', of('object.privacyDeletion', 1, { objectTypeId: '0-2' }), [], []],
  ['something like it', of('contact.privacyDeletions', 1), ['1'], []],
  [
    'no text',
    of('contact.deletion', 1, { subscriptionType: ['contact.privacyDeletion'] }),
    ['1'],
    [],
  ],
  ['deleted', of('contact.deletion', 1), ['1'], []],
  [
    'deleted and erased, in any order, and again',
    [
      of('contact.deletion', 1),
      of('contact.privacyDeletion', '1'),
      of('contact.privacyDeletion', 1),
      of('contact.creation', 2),
    ],
    ['1', '2'],
    ['1'],
  ],
  ['of a known type', of('object.creation', 20, { objectTypeId: '0-1' }), ['20'], []],
  [
    'merged',
    of('contact.merge', 16, { primaryObjectId: 16, mergedObjectIds: [17, 18], newObjectId: 19 }),
    ['16', '19', '17', '18'],
    [],
  ],
  ['another type', of('object.merge', 31, { newObjectId: 32, objectTypeId: '0-3' }), [], []],
  ['a company', of('company.propertyChange', 33), [], []],
  ['a link to it', of('contact.associationChange', 34, { fromObjectId: 34 }), [], []],
  ['a conversation', of('conversation.creation', 36), [], []],
  ['half a character', of('contact.creation', 'a\ud800'), [], []],
  ['no id', of('contact.privacyDeletion', true), [], []],
  ['no others', of('contact.privacyDeletion', 1, { mergedObjectIds: [2] }), ['1', '2'], ['1']],
])('HubSpot: %s', (_, body, ids, erased) => {
  expect(toldIn(body, hubspot)).toMatchObject({ ids, erased });
});

test('the standard format has no word for it', () => {
  const event = { type: 'contact.privacyDeletion', subscriptionType: 'contact.privacyDeletion' };
  const told = toldIn({ ...event, data: { id: 1 } }, standard);
  expect(told).toEqual({ ids: ['1'], erased: [], others: false });
});

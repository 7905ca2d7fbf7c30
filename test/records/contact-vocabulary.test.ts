/** What the values of the CRM mean: every word, every kind of field, and nothing guessed. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  vocabulary,
  type OwnWords,
  type Use,
} from '../../src/records/contact/values/value-vocabulary.ts';
import { NOON } from '../support/records/record-stage.ts';

const uses = ['subscription', 'unsubscribed', 'deleted'] as const;
const read = (use: Use, value: unknown, own: OwnWords = {}) =>
  vocabulary(use, own, () => NOON)(value);
/** In one word: yes, no, none, or why it is unknown. */
const said = (use: Use, value: unknown, own: OwnWords = {}): string => {
  const found = read(use, value, own);
  return typeof found === 'string' ? found : found.unknown;
};
const inAll = (value: unknown) => uses.map((use) => said(use, value));

describe('the known words', () => {
  test.each(['true', 'yes', 'y', 't', '1', 'on', true, 1])('take %j for yes', (value) => {
    expect(inAll(value)).toEqual(['yes', 'yes', 'yes']);
  });
  test.each(['false', 'no', 'n', 'f', '0', 'off', false, 0])('take %j for no', (value) => {
    expect(inAll(value)).toEqual(['no', 'no', 'no']);
  });
  test.each(['', ' ', '\t', '\u00a0', null, undefined])('take %j for nothing', (value) => {
    expect(inAll(value)).toEqual(['none', 'none', 'none']);
  });
  test.each(['opt_in', 'subscribed'])('take %j for in: a no of unsubscribed', (value) => {
    expect(inAll(value)).toEqual(['yes', 'no', 'word']);
  });
  test.each(['opt_out', 'unsubscribed'])('take %j for out: a yes of unsubscribed', (value) => {
    expect(inAll(value)).toEqual(['no', 'yes', 'word']);
  });
  test.each([' YES ', 'True', 'ON\n'])('match %j trimmed and in any case', (value) => {
    expect(inAll(value)).toEqual(['yes', 'yes', 'yes']);
  });
  const unknown = ['Nein', 'non', 'none', '-', 'n/a', 'null', 'x', 'ja', '2', 2, -1, 'opt-in', NaN];
  test.each(unknown)('do not match %j', (value) => {
    expect(inAll(value)).toEqual(['word', 'word', 'word']);
  });
  test.each([{}, [], ['yes'], { yes: true }])(
    'do not match %j, which is no single value',
    (value) => {
      expect(inAll(value)).toEqual(Array(3).fill('no single value'));
    },
  );
});

describe('a list', () => {
  const own = { yes: ['Do Not Email', 'suppressed'], no: ['later'] };
  test.each([
    [['vip', 'do not email '], 'yes'],
    [['Unsubscribed', 'suppressed'], 'yes'],
    [['vip', 'customer', 2, null, ''], 'none'],
    [['later'], 'none'],
    [[], 'none'],
    [['vip', 'No newsletter'], 'word'],
    [['vip', { name: 'suppressed' }], 'no single value'],
    [['vip', ['suppressed']], 'no single value'],
  ])('with words of its own is read by its elements: %j', (value, expected) => {
    const consent = { yes: own.yes, no: own.no };
    expect([said('unsubscribed', value, own), said('deleted', value, own)]).toEqual([
      expected,
      expected,
    ]);
    expect(said('subscription', value, consent)).toBe('no single value');
  });
  test.each([
    [['vip'], 'yes'],
    [['no'], 'none'],
    [[], 'none'],
  ])('is a yes by any element that is no no: %j', (value, expected) => {
    expect(said('unsubscribed', value, { yes: 'any' })).toBe(expected);
  });
});

describe('a date', () => {
  test.each([
    '2026-03-01',
    '2026-3-1',
    '2026/03/01',
    '01.03.2026',
    '1.3.2026 14:05',
    '3/1/2026',
    '13/3/2026',
    '01-03-2026',
    '13-3-2026 14:05',
    '12-03-2024',
    '1.3.24',
    '12.03.25 14:05',
    '2026-03-01T12:00:00Z',
    '2026-03-01 12:00:00',
    '2026-03-01 12:00:00.123456+02',
    '2026-03-01T12:00:00+0200',
    '2024-02-29',
    // As a spreadsheet of the United States writes it.
    '03/01/2026 9:05 AM',
    '3/1/26 9:05:10 PM',
    '13/1/2026, 12:05\u202fp.m.',
    '11/20/2026 12:00 AM',
    '3/1/2026 9:05',
    // Of today, whatever the zone of the CRM; and by a clock that is a little fast.
    '2026-11-20',
    '2026-11-20T12:09:00Z',
  ])('in %s is a yes for unsubscribed or deleted', (value) => {
    expect(inAll(value)).toEqual(['word', 'yes', 'yes']);
  });
  test.each([
    '2026-11-21T12:00:00Z',
    '2026-11-22',
    '2999-01-01',
    '31.12.2026',
    '12/11/2026',
    '12-11-2026',
    '31-12-2999',
    '31.12.99',
    '1.1.27',
    '12/1/2026 9:05 AM',
    '11/21/2026 4:05 PM',
    '1/1/27 9:05 AM',
  ])('in %s lies in the future, or may', (value) => {
    expect(inAll(value)).toEqual(['word', 'future', 'future']);
  });
  test.each(['0000-00-00', '0000-00-00 00:00:00', '0000-00-00T00:00:00.000Z', '0000-00-00 00:00'])(
    'in %s is none at all',
    (value) => {
      expect(inAll(value)).toEqual(['word', 'none', 'none']);
    },
  );
  test.each([
    '2026-02-30',
    '2026-13-01',
    '31.02.2026',
    '13/13/2026',
    '2026-03-01 25:00',
    '03/01/2026 13:05 PM',
    '03/01/2026 0:05 AM',
    '2026-03',
  ])('in %s is in no calendar', (value) => {
    expect(inAll(value)).toEqual(['word', 'word', 'word']);
  });
  test.each(['0001-01-01T00:00:00', '1899-12-30', '20260301', '1772323200', '12:30'])(
    'in %s is not taken for one',
    (value) => {
      expect(inAll(value)).toEqual(['word', 'word', 'word']);
    },
  );
});

describe('a serial number of Excel', () => {
  const of = (use: Use, value: unknown, own: OwnWords = {}) => read(use, value, own);
  // 46346 is 20 November 2026, today.
  test.each(['45900', '45900.5', '45900,3784722222', ' 45900 ', 45900, '32874', '46346'])(
    'is unknown, and may be a date: %j',
    (value) => {
      const text = String(value).trim();
      const found = { unknown: 'word', text, isSerial: true };
      expect(of('unsubscribed', value)).toEqual(found);
      expect(of('deleted', value)).toEqual(found);
      expect(of('subscription', value)).toEqual({ unknown: 'word', text });
    },
  );
  test.each(['32873', '46348', '4590', '459000', '-45900', '45900.', '45900 1', '2026'])(
    'is not %j',
    (value) => {
      expect(of('unsubscribed', value)).toEqual({ unknown: 'word', text: value });
    },
  );
  test('is a word of one’s own if that is named', () => {
    expect(said('unsubscribed', '45900', { no: ['45900'] })).toBe('no');
    expect(said('unsubscribed', '45900', { yes: 'any' })).toBe('yes');
  });
});

describe('words of one’s own', () => {
  test('are added to the known ones, and come before them', () => {
    const own = { yes: ['Ja', 'off'], no: [' NEIN '], none: ['unbekannt', '-'] };
    expect(
      ['ja', 'yes', 'off', 'nein', 'no', 'Unbekannt', '-'].map((word) =>
        said('subscription', word, own),
      ),
    ).toEqual(['yes', 'yes', 'yes', 'no', 'no', 'none', 'none']);
    expect(said('subscription', 'vielleicht', own)).toBe('word');
  });
  test('can be a date, and can use other characters of Unicode', () => {
    expect(said('deleted', '2999-12-31', { no: ['2999-12-31'] })).toBe('no');
    expect(said('deleted', 'gelo\u0308scht', { yes: ['gel\u00f6scht'] })).toBe('yes');
  });
  test('with any: every value that is neither empty nor a no', () => {
    const any = { yes: 'any', no: ['-'] } as const;
    for (const use of ['unsubscribed', 'deleted'] as const) {
      const found = ['x', '2999-01-01', 'yes', '', '0000-00-00', 'no', '0', '-'];
      expect(found.map((value) => said(use, value, any))).toEqual([
        'yes',
        'yes',
        'yes',
        'none',
        'none',
        'no',
        'no',
        'no',
      ]);
      expect(said(use, {}, any)).toBe('no single value');
    }
    expect(said('unsubscribed', 'subscribed', any)).toBe('no');
    expect(said('deleted', 'subscribed', any)).toBe('yes');
  });
});

test('for any value, only a word or a date says yes', () => {
  const known = new Set([
    'true',
    'yes',
    'y',
    't',
    '1',
    'on',
    'opt_in',
    'subscribed',
    'opt_out',
    'unsubscribed',
  ]);
  fc.assert(
    fc.property(fc.anything(), fc.constantFrom(...uses), (value, use) => {
      if (said(use, value) !== 'yes') return;
      const text = String(value).trim().toLowerCase();
      expect(known.has(text) || /^\d+[-./]\d+[-./]\d+/.test(text)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

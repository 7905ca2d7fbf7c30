/** What is taken for an address, and what is not. */
import { describe, expect, test } from 'vitest';
import { contactKey } from '../../src/domain/values/contact-key.ts';
import { isAddress } from '../../src/records/contact/values/email-address.ts';
import { wish } from '../support/records/record-stage.ts';

describe('an address', () => {
  test.each([
    'ann@example.com',
    'ann+news@example.com',
    "o'hara@example.ie",
    'a&b=c@example.com',
    'first.last@sub.example.co.uk',
    'jürgen@example.de',
    'ann@müller.de',
    'ann@straße.de',
    'ann@xn--mller-kva.de',
    'почта@пример.рф',
    'x@xn--e1afmkfd.xn--p1ai',
    '用户@例子.广告',
    'ann@123.com',
    'ann@ｅｘａｍｐｌｅ．com',
    'jose\u0301@example.com',
    'иван.ivanov@example.com',
    'กำ@example.com',
    `${'a'.repeat(64)}@example.com`,
  ])('%s is valid', (text) => {
    expect(isAddress(contactKey(text))).toBe(true);
  });

  test.each([
    '',
    'ann',
    'a@b.de,',
    'a@b.de.',
    'a@b.de;',
    'a@b.de>',
    '<a@b.de>',
    'a@b.de,c@d.de',
    'a@b.de/',
    'a@b..de',
    'a..b@c.de',
    '.a@c.de',
    'a.@c.de',
    'a@-c.de',
    'a@c-.de',
    'a@c_d.de',
    'a@b',
    'a@localhost',
    'a@1.2.3.4',
    'a@b.123',
    'a b@c.de',
    'a@@c.de',
    '"a"@b.de',
    'mailto:a@b.de',
    'a@müller.de,',
    'a@müller.de.',
    'a@mü%6cler.de',
    'a@mül/ler.de',
    'a\u200b@b.de',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b.'.repeat(130)}de`,
  ])('%s is invalid', (text) => {
    expect(isAddress(contactKey(text))).toBe(false);
  });

  test.each([
    ['o\u2019hara@example.ie', 'U+2019'],
    ['o\u02bchara@example.ie', 'U+02BC'],
    ['anna\u2010lena@example.com', 'U+2010'],
    ['\uff41nn@example.com', 'U+FF41'],
    ['o\ufb03ce@example.com', 'U+FB03'],
    ['ann\u00b2@example.com', 'U+00B2'],
    ['p\u0430ul@example.com', 'U+0430'],
    ['\u03bfscar.w@example.com', 'U+03BF'],
  ])('%s is invalid because %s only looks like another character', (email, point) => {
    const { key, invalid, wants } = wish({ email, newsletter: 'yes' });
    // An opt-out of the record still reaches the contact with this very address.
    expect([key, wants]).toEqual([contactKey(email), false]);
    expect(invalid?.reason).toBe(
      `"email" holds ${point} in front of the @, which only looks like another character`,
    );
  });

  test.each([
    ['a\u200bnn@example.com', 'U+200B'],
    ['ann@example.com\u200b', 'U+200B'],
    ['ann@exam\u00adple.com', 'U+00AD'],
    ['ann\u00a0b@example.com', 'U+00A0'],
    ['ann\tb@example.com', 'U+0009'],
    ['\u202eann@example.com', 'U+202E'],
    ['ann\ufe0f@example.com', 'U+FE0F'],
    ['ann\u3164@example.com', 'U+3164'],
    ['ann\u2800\u2019s@example.com', 'U+2800'],
  ])('%j is invalid because %s is invisible', (email, point) => {
    const { key, invalid } = wish({ email, newsletter: 'yes' });
    expect([key, invalid?.reason]).toEqual([
      undefined,
      `"email" holds ${point}, which is invisible`,
    ]);
  });

  test.each([
    ['a@b.de c@d.de', 'holds 2 email addresses'],
    ['a@b.de; c@d.de, e@f.de', 'holds 3 email addresses'],
    ['<a@b.de> <c@b.de>', 'holds 2 email addresses'],
    ['a @b.de', 'holds U+0020, a space in front of the @'],
    ['ann b.de@', 'holds U+0020, a space in front of the @'],
  ])('%j is invalid because it %s', (email, what) => {
    expect(wish({ email, newsletter: 'yes' }).invalid?.reason).toBe(`"email" ${what}`);
  });

  test('makes its record invalid when it cannot be read', () => {
    const row = wish({ email: 'a@b.de,', newsletter: 'yes' });
    expect(row).toMatchObject({ key: undefined, wants: false, alias: 'a@b.de,' });
    expect(row.invalid).toMatchObject({
      reason: '"email" holds no email address, for it ends with ","',
    });
  });

  test.each<[unknown]>([[['a@b.de']], [{ v: 'a@b.de' }]])('is not taken from %j', (email) => {
    expect(wish({ email, newsletter: 'yes' }).invalid).toEqual({
      cause: 'address-invalid',
      reason: '"email" is a list or an object',
      fix: 'name in contacts.email the field within it that holds one address as text',
      noAddress: false,
    });
  });

  test.each([
    ['mailto:A@B.de', 'a@b.de'],
    ['Ann <a@b.de>', 'a@b.de'],
    ['"Ann, a@b.de" <a@b.de>;', 'a@b.de'],
    ['a@b.de\u200b', 'a@b.de'],
    ["'a@b.de'.", 'a@b.de'],
    ['a@espa\u00f1a.de;', 'a@xn--espaa-rta.de'],
    ['a@b.de, c@b.de', undefined],
    ['<a@b.de> <c@b.de>', undefined],
    ['a @b.de', undefined],
    ['a’b@b.de,', undefined],
    ['"a"@b.de', undefined],
    ['a(at)b.de', undefined],
  ])('an opt-out of %j is one of %j', (email, key) => {
    const row = wish({ email, newsletter: 'no' });
    expect([row.key, row.alias === key, row.body.includes('spelling')]).toEqual([
      key,
      key !== undefined,
      false,
    ]);
    expect(row.invalid).toMatchObject({ cause: 'address-invalid', noAddress: false });
    expect(row.invalid?.mayOptOut).toBe(key === undefined || undefined);
  });

  test.each(['a@b', 'a@b,', 'ann example.com.', ',', '@.'])(
    '%s is reported as invalid',
    (email) => {
      expect(wish({ email }).invalid?.reason).toBe('"email" holds no email address');
    },
  );
});

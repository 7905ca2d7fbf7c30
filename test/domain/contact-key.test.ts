/** Which spellings of an address are one person's. */
import { describe, expect, test } from 'vitest';
import { commonPart, contactKey, spellingsOf } from '../../src/domain/values/contact-key.ts';

const idn = 'ana@xn--espaa-rta.example';

describe('the key of an address', () => {
  test.each([
    ['  Ann@Example.COM ', 'ann@example.com'],
    ['ana@españa.example', idn],
    ['ANA@ESPAÑA.EXAMPLE', idn],
    ['ana@espan\u0303a.example', idn],
    ['ana@XN--ESPAA-RTA.example', idn],
    ['ana@ｅｓｐａñａ．example', idn],
    ['ana@españa。example', idn],
    ['ann@ｅｘａｍｐｌｅ.com', 'ann@example.com'],
    ['ann@straße.de', 'ann@xn--strae-oqa.de'],
    ['jose\u0301@example.com', 'jos\u00e9@example.com'],
    ['JOSÉ@example.com', 'jos\u00e9@example.com'],
    ['почта@пример.рф', 'почта@xn--e1afmkfd.xn--p1ai'],
  ])('of %j is %j, and its own key', (address, key) => {
    expect(contactKey(address)).toBe(key);
    expect(contactKey(key)).toBe(key);
  });

  test.each([
    ['ann@strasse.de', 'ann@straße.de'],
    ['jose@example.com', 'josé@example.com'],
    ['ann@exam\u00adple.com', 'ann@example.com'],
    ['ann@example.com/x', 'ann@example.com'],
    ['ann@ex%61mple.com', 'ann@example.com'],
  ])('of %j is not that of %j', (one, other) => {
    expect(contactKey(one)).not.toBe(contactKey(other));
  });

  test('is searched for once if all its letters are ASCII, else in each spelling', () => {
    expect(spellingsOf('ann@example.com')).toEqual(['ann@example.com']);
    expect(spellingsOf(idn)).toEqual([idn, 'ana@españa.example', 'ana@espan\u0303a.example']);
    expect(spellingsOf('jos\u00e9@example.com')).toEqual([
      'jos\u00e9@example.com',
      'jose\u0301@example.com',
    ]);
    expect(spellingsOf('\u00f6@xn--bcher-kva.example')).toEqual([
      '\u00f6@xn--bcher-kva.example',
      '\u00f6@b\u00fccher.example',
      '\u00f6@bu\u0308cher.example',
      'o\u0308@xn--bcher-kva.example',
      'o\u0308@b\u00fccher.example',
      'o\u0308@bu\u0308cher.example',
    ]);
  });

  test.each([
    ['ann+1@example.com', 'ann+1@'],
    ['"a@b"@example.com', '@'],
    ['j\u00f6rg\u00e9n@example.com', 'n@'],
    ['jos\u00e9@example.com', '@'],
    ['x;y@example.com', 'y@'],
    ['nobody', ''],
  ])('%j contains %j in every spelling', (key, part) => {
    expect(commonPart(key)).toBe(part);
  });
});

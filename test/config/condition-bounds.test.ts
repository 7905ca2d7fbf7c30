/** Conditions stay short to evaluate, whatever a record holds. */
import { describe, expect, it, test } from 'vitest';
import { compile } from '../../src/config/schema/cel-condition.ts';

function judge(text: string, record: Record<string, unknown>) {
  const found = compile(text, { nullable: false });
  if (!('judge' in found)) throw new Error(found.reason);
  return found.judge(record);
}
const flaw = (text: string) => {
  const found = compile(text, { nullable: false });
  return 'judge' in found ? undefined : found;
};

describe('matches', () => {
  test('takes time linear in the text, also for patterns that backtrack elsewhere', () => {
    const note = `${'a'.repeat(16_000)}!`;
    expect(judge('record.note.matches("^([a-z]+ ?)+$")', { note })).toEqual({ gives: false });
  });

  it.each([
    ['^A', 'Ann', true],
    ['n$', 'Ann', true],
    ['x', 'Ann', false],
    ['(?i)ANN', 'ann', true],
    ['^\\\\d{4}-\\\\d{2}$', '2026-11', true],
  ])('%s on %s finds what it found before the bounds', (pattern, text, found) => {
    expect(judge(`record.a.matches("${pattern}")`, { a: text })).toEqual({ gives: found });
  });

  it.each([
    ['record.a.matches(record.b)', 'takes a pattern that is not written here'],
    ['record.a.matches("a" + record.b)', 'takes a pattern that is not written here'],
    ['record.a.matches("(?=a)")', 'is no regular expression that can be used'],
    ['record.a.matches("(a)\\\\1")', 'is no regular expression that can be used'],
    [`record.a.matches("${'a'.repeat(1_001)}")`, 'is a pattern of more than 1000 characters'],
    ['record.a.re2like("a")', 'calls re2like, which is not known'],
    ['record.a // .matches\n  .matches("a")', 'has a comment within a call'],
  ])('%s is refused', (text, message) => {
    expect(flaw(text)?.reason).toContain(message);
  });

  test('reads a bounded number of characters in one evaluation', () => {
    const record = { tags: 'x,'.repeat(400), note: 'y'.repeat(16_000) };
    const text = 'record.tags.split(",").exists(t, record.note.matches("z"))';
    expect(judge(text, record)).toEqual({ failsOn: [] });
    expect(judge(text, { ...record, note: 'y' })).toEqual({ gives: false });
  });
});

describe('lists', () => {
  const has = 'record.tags.split(";").exists(t, t == "vip")';

  test('are judged up to 500 elements, and not above', () => {
    expect(judge(has, { tags: `${'x;'.repeat(499)}vip` })).toEqual({ gives: true });
    expect(judge(has, { tags: `${'x;'.repeat(500)}vip` })).toEqual({ failsOn: [] });
  });

  test('are split into a limited number of parts', () => {
    const parts = (most: number) =>
      judge(`record.a.split(",", ${most}) == ["a", "b,c"]`, { a: 'a,b,c' });
    expect([0, 1, 2, 3, -1].map(parts)).toEqual(
      [false, false, true, false, false].map((gives) => ({ gives })),
    );
    expect(judge('record.a.split(",", 1) == ["a,b,c"]', { a: 'a,b,c' })).toEqual({ gives: true });
    expect(judge('record.a.split(",", 9) == ["a","b","c"]', { a: 'a,b,c' })).toEqual({
      gives: true,
    });
    expect(judge('record.a.split("", 2) == ["a", "bc"]', { a: 'abc' })).toEqual({ gives: true });
  });

  test('are joined to a text of limited length', () => {
    const text = 'record.a.split(",").map(x, record.b).join("-") == "b-b"';
    expect(judge(text, { a: '1,2', b: 'b' })).toEqual({ gives: true });
    expect(judge(text, { a: '1,'.repeat(300), b: 'b'.repeat(16_000) })).toEqual({ failsOn: [] });
  });

  const within = (n: number): string =>
    n === 0 ? 'true' : `record.a.split(",").exists(x${n}, ${within(n - 1)})`;

  test('can be nested twice', () => {
    expect(flaw(within(2))).toBeUndefined();
    expect(flaw(within(3))?.reason).toContain('nests more than 2 of exists, all, filter, map');
    expect(flaw('record.a.split(",").filter(x, x != "").map(x, x).exists(x, x == "a")')).toBe(
      undefined,
    );
  });
});

test('a field of more than 16,384 characters cannot be judged, and is named', () => {
  expect(judge('record.a == ""', { a: 'x'.repeat(16_384) })).toEqual({ gives: false });
  expect(judge('record.a == ""', { a: 'x'.repeat(16_385) })).toEqual({
    failsOn: ['a'],
    longest: 16_384,
  });
});

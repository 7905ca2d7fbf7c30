/** Flags that hold a list: each is read, and one that is proposed is read as it was meant. */
import { expect, test } from 'vitest';
import { columnFlag, columnsIn, wordFlag, wordsOf } from '../../../src/app/init/flags.ts';

test.each([
  [['C:yes=A,no=B'], { yes: ['A'], no: ['B'] }],
  [['C:yes=A, B,no=C,D'], { yes: ['A', 'B'], no: ['C', 'D'] }],
  [['C:in=Ja,Yes,out=Nein,none=n/a'], { in: ['Ja', 'Yes'], out: ['Nein'], none: ['n/a'] }],
  [['C:yes=A', 'C:no=B', 'C:yes=C'], { yes: ['A', 'C'], no: ['B'] }],
  [['C:yes=any,no=B'], { yes: 'any', no: ['B'] }],
  [['C:no=B,yes=any'], { yes: 'any', no: ['B'] }],
  [['C:yes=A,no=any'], { yes: ['A'], no: 'any' }],
  [[String.raw`C:yes=A\,no=B`], { yes: ['A,no=B'] }],
  [[String.raw`C:yes=A,no\=B`], { yes: ['A', 'no=B'] }],
  [['C:yes=no=B'], { yes: ['no=B'] }],
  [['C:yes=x=y,no=a:b'], { yes: ['x=y'], no: ['a:b'] }],
])('%j are the words %j', (flags, words) => {
  expect(wordsOf(flags)).toEqual(new Map([['C', words]]));
});

test.each(['C', 'C:yes', 'C:yes=', 'C:maybe=A', ':yes=A', 'C:yes=,no=B', 'C:yes=A,no='])(
  'words that are not understood are refused: %s',
  (flag) => {
    expect(() => wordsOf([flag])).toThrow('is not understood');
  },
);

test('not every value is a yes and a no', () => {
  expect(() => wordsOf(['C:yes=any', 'C:no=any'])).toThrow('every value would be a yes and a no');
});

test.each([
  { yes: ['A,B', 'no=1'], no: ['x', 'in=,out='] },
  { in: ['yes=any'], out: ['a=b'] },
  { yes: 'any', no: ['Nein'] },
] as const)('the flag of %j is read as it was meant', (words) => {
  expect(wordsOf([wordFlag('A:B, C', words)])).toEqual(new Map([['A:B, C', words]]));
});

test.each([
  ['A', ['A']],
  ['A,B', ['A', 'B']],
  ['A, B', ['A', 'B']],
  ['No mail, ever', ['No mail, ever']],
  [String.raw`A,No mail\, ever`, ['A', 'No mail, ever']],
  ['A, D', ['A', ' D']],
])('%s names the columns %j', (list, names) => {
  const columns = ['A', 'B', 'C', ' D', 'No mail, ever'].map((name) => ({ name }));
  expect(columnsIn(list, columns)).toEqual(names);
  expect(columnsIn(columnFlag(names), columns)).toEqual(names);
});

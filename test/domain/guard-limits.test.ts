/** The table of the guards, row by row, and what a person reads of each. */
import { describe, expect, test } from 'vitest';
import { guardOf, ops } from '../../src/domain/change.ts';
import { guardClasses, guardNames, type Limit } from '../../src/domain/guard-classes.ts';
import {
  hasShape,
  isFew,
  judge,
  judgeShape,
  type HoldReason,
  type ChangeVolume,
} from '../../src/domain/guards/guard-limits.ts';
import { judgeSwap, judgeWithdrawn } from '../../src/engine/judge/guard-counts.ts';
import { explainHeld, sayHeld } from '../../src/engine/report/guard-text.ts';

const limit: Limit = { percent: 10, floor: 10 };

interface Asked extends Partial<ChangeVolume> {
  domainShare?: number;
  rows?: number[];
}

/** Of a thousand people; new ones are all there are, unless it is said otherwise. */
function rush(asked: Asked): ChangeVolume {
  const { fresh = 0 } = asked;
  return { guard: 'delete', fresh, all: fresh, unapproved: fresh, week: 0, of: 1000, ...asked };
}

/** As a run asks: the shape only where it may matter. */
function heldOf({ domainShare, rows = [], ...asked }: Asked): HoldReason | undefined {
  const asks = rush(asked);
  const shape = () => judgeShape({ domainShare, rows });
  return judge(asks, limit) ?? (hasShape(asks, limit) ? shape() : undefined);
}

// prettier-ignore
const table: [what: string, asked: Asked, by: HoldReason['by'] | undefined][] = [
  ['nobody new, whatever was approved',          { fresh: 0, all: 500, week: 900 },                undefined],
  ['the limit in one run',                       { fresh: 100 },                                   undefined],
  ['one more',                                   { fresh: 101 },                                   'run'],
  ['the floor, where the percentage is less',    { fresh: 10, of: 20 },                            undefined],
  ['one more than the floor',                    { fresh: 11, of: 20 },                            'run'],
  ['approved and new together over it',          { fresh: 1, all: 101, unapproved: 1 },            'run'],
  ['approved and new together within it',        { fresh: 1, all: 100, unapproved: 1 },            undefined],
  ['twice the limit in seven days',              { fresh: 50, week: 150 },                         undefined],
  ['one more in seven days',                     { fresh: 51, week: 150 },                         'week'],
  ['… approved ones do not count there',         { fresh: 1, all: 90, unapproved: 1, week: 199 },  undefined],
  ['… those let through before do',     { fresh: 9, all: 90, unapproved: 60, week: 150 }, 'week'],
  ['all of one domain',                          { fresh: 11, domainShare: 0.5 },                  'domain'],
  ['… not above the floor',                      { fresh: 10, domainShare: 0.5 },                  undefined],
  ['… where nearly everybody is',                { fresh: 11, domainShare: 0.9 },                  undefined],
  ['… people who come in', { fresh: 11, domainShare: 0.5, guard: 'opt_in' }, undefined],
  ['as many in a row as a page has',             { fresh: 100, rows: [100] },                      'block'],
  ['… beside others',                            { fresh: 210, of: 5000, rows: [3, 7, 200] },      'block'],
  ['one less', { fresh: 99, rows: [99] }, undefined],
  ['as many, and not in a row',                  { fresh: 100, rows: [60, 40] },                   undefined],
  ['a row, and people who come in',              { fresh: 100, rows: [100], guard: 'opt_in' },     undefined],
];

test.each(table)('%s', (_, asked, by) => {
  expect(heldOf(asked)?.by).toBe(by);
});

interface Asks {
  fresh?: number;
  guard?: 'opt_out';
}

// prettier-ignore
const withdrawn: [what: string, all: number, of: number, more: Asks, held: boolean][] = [
  ['all of four',                               4,   4,   {},                  true],
  ['three of three',                            3,   3,   {},                  false],
  ['more than half',                            312, 330, {},                  true],
  ['four of seven',                             4,   7,   {},                  true],
  ['half',                                      4,   8,   {},                  false],
  ['all of them approved',                      6,   6,   { fresh: 0 },   false],
  ['one more than was approved',                6,   6,   { fresh: 1 },   true],
  ['a class that opts nobody in',               6,   6,   { guard: 'opt_out' }, false],
];

test.each(withdrawn)(
  'stated opt-outs that are withdrawn: %s, %i of %i',
  (_, all, of, more, held) => {
    const { fresh = all, guard = 'opt_in' } = more;
    expect(judgeWithdrawn(guard, { fresh, all, of })?.by).toBe(held ? 'withdrawn' : undefined);
  },
);

// prettier-ignore
const swaps: [toYes: number, toNo: number, of: number, held: boolean][] = [
  [40, 40, 300, true],
  // Ten people, and more than a tenth.
  [9, 9, 20, false],
  [10, 10, 99, true],
  [10, 10, 100, false],
  // About as many.
  [40, 20, 300, true],
  [40, 19, 300, false],
  [20, 40, 150, true],
  [20, 41, 150, false],
];

test.each(swaps)('%i turn to yes and %i to no, of %i: held %s', (toYes, toNo, of, held) => {
  expect(judgeSwap({ toYes, toNo, of })?.by).toBe(held ? 'swap' : undefined);
});

test.each([
  [0.57, 10_000, 57],
  [1.1, 1000, 11],
  [0.7, 3000, 21],
  [4.35, 100, 4],
])('%d %% of %d are %d, whatever rounding a computer does', (percent, of, most) => {
  const held = (fresh: number) => judge(rush({ fresh, of }), { percent, floor: 0 })?.by;
  expect([held(most), held(most + 1)]).toEqual([undefined, 'run']);
});

test('a limit of 0 holds everybody', () => {
  expect(judge(rush({ fresh: 1 }), { percent: 0, floor: 0 })?.by).toBe('run');
});

describe('the text of a guard', () => {
  const told = (asked: Asked) => {
    const held = heldOf(asked);
    return held && explainHeld(held, rush(asked), { limit, plan: 'cafe' });
  };
  test.each([
    [
      { fresh: 101 },
      /101 people missing .* more than 100 in one run \(the greater of 10 and 10 % of 1000/,
    ],
    [
      { fresh: 1, all: 101, unapproved: 1 },
      /1 person missing .* with 100 others of this run more than 100/,
    ],
    [{ fresh: 51, week: 150 }, /with 150 of the last seven days more than twice 100/],
    [{ fresh: 11, domainShare: 0.5 }, /one mail domain/],
    [{ fresh: 100, rows: [100] }, /100 of them stand in a row/],
    [{ fresh: 101, guard: 'opt_in' as const }, /101 people would be created or opted in/],
  ])('%j', (asked, reason) => {
    const fault = told(asked);
    expect(fault?.reason).toMatch(reason);
    expect(fault?.fix).toMatch(/^often .*; see `crm-mirror plan`.*`crm-mirror approve cafe`$/);
    expect(`${fault?.reason} ${fault?.fix}`).not.toContain('\n');
  });

  test('names the likely cause of opt-outs that are withdrawn', () => {
    const volume = rush({ fresh: 312, guard: 'opt_in' });
    const held = { by: 'withdrawn', people: 1312, of: 1330 } as const;
    const fault = explainHeld(held, volume, { limit, plan: 'cafe' });
    expect(fault.reason).toContain(
      '1,312 of the 1,330 people whose opt-out the CRM stated would be opted in: is a column empty in this export?',
    );
    expect(fault.fix).toMatch(/^often a column of opt-outs that came empty; see /);
  });
});

test('names the likely cause of answers that are swapped', () => {
  const held = { by: 'swap', toYes: 1040, toNo: 39 } as const;
  const fault = explainHeld(held, rush({ fresh: 39, guard: 'opt_out' }), { limit, plan: 'cafe' });
  expect(fault.reason).toContain(
    'in this export 1,040 people turn to yes, and 39 others turn away from it: was a column shifted by a row, or sorted alone?',
  );
  expect(fault.fix).toMatch(/^often a column that was shifted by a row, or sorted alone; see /);
});

test('nobody is counted below the floor', () => {
  const few = { guard: 'opt_in', fresh: 1, all: 1, unapproved: 1, week: 19 } as const;
  expect(isFew(few, limit)).toBe(true);
  expect(isFew({ ...few, week: 20 }, limit)).toBe(false);
  expect(isFew({ ...few, all: 11, week: 0 }, limit)).toBe(false);
  expect(judge({ ...few, of: 0 }, limit)).toBeUndefined();
});

describe('the classes', () => {
  test('a class leaves out only what a class before it holds', () => {
    for (const [place, { withoutHeldOf }] of guardClasses.entries()) {
      if (withoutHeldOf !== undefined)
        expect(guardNames.indexOf(withoutHeldOf)).toBeLessThan(place);
    }
  });

  test('each change is counted by the class that its operation belongs to', () => {
    const kinds = ['contact', 'template'] as const;
    const counted = kinds.flatMap((kind) =>
      [true, false].flatMap((isStated) =>
        ops.map((op) => [kind, op, isStated, guardOf({ kind, op }, isStated)]),
      ),
    );
    expect(counted.filter(([, , , guard]) => guard !== undefined)).toEqual([
      ['contact', 'create', true, 'opt_in'],
      ['contact', 'opt_in', true, 'opt_in'],
      ['contact', 'opt_out', true, 'opt_out'],
      ['contact', 'create', false, 'opt_in'],
      ['contact', 'opt_in', false, 'opt_in'],
      ['contact', 'opt_out', false, 'delete'],
      ['contact', 'delete', false, 'delete'],
      ['template', 'update', true, 'template'],
      ['template', 'archive', true, 'template'],
      ['template', 'update', false, 'template'],
      ['template', 'archive', false, 'template'],
    ]);
  });
});

test.each([
  { ops: ['opt_out', 'opt_out'], says: /would be opted out, and/ },
  { ops: ['delete'], says: /would be deleted, and/ },
  { ops: ['delete', 'opt_out'], says: /would be deleted or opted out, and/ },
  { ops: [], says: /would be deleted or opted out, and/ },
])('of absent people, it says what would be done: $ops', ({ ops, says }) => {
  expect(sayHeld('delete', 52, 'more than 10', { ops })).toMatch(says);
});

/** The states of a canary, its occasions, and how long it has waited. */
import { describe, expect, it } from 'vitest';
import {
  advance,
  bookOf,
  type Canary,
  type CanaryBook,
  type CanaryEvent,
  sliceSize,
  mended,
  waitedMs,
} from '../../src/domain/guards/canary.ts';

const slice = {
  because: 'mapping' as const,
  run: 'r1',
  seed: 's1',
  begunAt: 1,
  through: '#8',
  size: 25,
  of: 900,
};
const time = { at: 100, platformAt: 90 };
const counts = { unsubscribed: 3, refused: 0, drift: 0, of: 40 };
const states: Record<Canary['state'], Canary> = {
  applying: { ...slice, state: 'applying' },
  waiting: { ...slice, state: 'waiting', since: time },
  passed: { ...slice, state: 'passed' },
  failed: { ...slice, state: 'failed', says: '3 of 40', counts, approvalsGiven: 2 },
};
const events: Record<string, CanaryEvent> = {
  applied: { is: 'applied', time },
  'not applied': { is: 'not applied' },
  within: { is: 'read', says: undefined, counts, approvalsGiven: 2 },
  outside: { is: 'read', says: '3 of 40', counts, approvalsGiven: 2 },
  approved: { is: 'approved' },
  'nothing planned': { is: 'nothing planned' },
  'all made': { is: 'all made' },
};

type Next = Canary['state'] | 'none';
// prettier-ignore
const table: [from: Canary['state'], by: Record<string, Next>][] = [
  ['applying', { applied: 'waiting', 'not applied': 'none', within: 'applying', outside: 'applying', approved: 'applying', 'nothing planned': 'applying', 'all made': 'applying' }],
  ['waiting', { applied: 'waiting', 'not applied': 'waiting', within: 'passed', outside: 'failed', approved: 'waiting', 'nothing planned': 'waiting', 'all made': 'waiting' }],
  ['failed', { applied: 'failed', 'not applied': 'failed', within: 'failed', outside: 'failed', approved: 'passed', 'nothing planned': 'none', 'all made': 'failed' }],
  ['passed', { applied: 'passed', 'not applied': 'passed', within: 'passed', outside: 'passed', approved: 'passed', 'nothing planned': 'passed', 'all made': 'passed' }],
];

describe.each(table)('a canary that is %s', (from, by) => {
  it.each(Object.entries(by))('by "%s" is %s', (event, next) => {
    const found = events[event];
    if (!found) throw new Error(event);
    const after = advance(states[from], found);
    expect(after?.state ?? 'none').toBe(next);
    if (after) expect(after).toMatchObject(slice);
  });

  it('covers all events', () => {
    expect(Object.keys(by).toSorted()).toEqual(Object.keys(events).toSorted());
  });
});

it('of templates ends once all of them have been changed', () => {
  expect(advance({ ...states.passed, because: 'templates' }, { is: 'all made' })).toBeUndefined();
  expect(advance({ ...states.passed, because: 'templates' }, { is: 'approved' })).toBeDefined();
});

describe('an occasion', () => {
  const day = 86_400_000;
  const facts = { mapping: 'b', last: 'b', isFirstLoad: false, at: 10 * day };
  const since = 10 * day;
  const book: CanaryBook = { mapping: 'b', occasion: 'mapping', since, begun: 3, classes: {} };

  it.each([
    ['no change', {}, undefined, null],
    ['a mapping other than that of the last run', { last: 'a' }, undefined, 'mapping'],
    ['no run before', { last: undefined }, undefined, null],
    ['a first load', { isFirstLoad: true, last: undefined }, undefined, 'first load'],
    ['a first load by another mapping', { isFirstLoad: true, last: 'a' }, undefined, 'first load'],
    ['a mapping other than the stored one', { mapping: 'c' }, book, 'mapping'],
    ['the same mapping within a week', { at: 16 * day }, book, 'mapping'],
    ['the same mapping after a week', { at: 18 * day }, book, null],
    ['the end of the first load', {}, { ...book, occasion: 'first load' as const }, null],
  ])('%s', (_, also, before, occasion) => {
    expect(bookOf(before, { ...facts, ...also }).occasion).toBe(occasion);
  });

  it('lasts while one of its canaries is open, and ends with those that have passed', () => {
    const late = { ...facts, at: 30 * day };
    const of = (one: Canary) => bookOf({ ...book, classes: { opt_in: one } }, late);
    for (const state of ['applying', 'waiting', 'failed'] as const)
      expect(of(states[state]).classes.opt_in).toEqual(states[state]);
    expect(of(states.passed)).toMatchObject({ occasion: null, classes: {} });
  });

  it('that is another mapping ends the canaries of people, and not that of templates', () => {
    const classes = { opt_in: states.failed, delete: states.waiting, template: states.applying };
    const next = bookOf({ ...book, classes }, { ...facts, mapping: 'c' });
    expect(next.classes).toEqual({ template: states.applying });
    expect(next.begun).toBe(3);
  });
});

it.each([
  ['opt_in', 2, 25, 26, 25],
  ['opt_in', 2, 25, 10_000, 200],
  ['opt_in', 2, 25, 10_001, 201],
  ['template', 2, 25, 40, 1],
  ['template', 10, 25, 41, 5],
  ['template', 0, 25, 41, 1],
] as const)('%s: %i % or %i of %i are %i', (guard, percent, floor, planned, size) => {
  expect(sliceSize(guard, { percent, floor }, planned)).toBe(size);
});

it.each([
  ['both clocks', { at: 160, platformAt: 150 }, 60],
  ['ours jumped ahead', { at: 9_000, platformAt: 100 }, 10],
  ['the platform jumped ahead', { at: 110, platformAt: 9_000 }, 10],
  ['the platform states no time', { at: 160, platformAt: null }, 60],
  ['ours is set back', { at: 50, platformAt: 150 }, 0],
])('the wait, if %s', (_, now, waited) => {
  expect(waitedMs(time, now)).toBe(waited);
});

it('a time in the future becomes now, and an unknown one is filled in', () => {
  expect(mended(time, { at: 50, platformAt: 80 })).toEqual({ at: 50, platformAt: 80 });
  expect(mended(time, { at: 150, platformAt: null })).toEqual(time);
  expect(mended({ at: 100, platformAt: null }, { at: 150, platformAt: 95 })).toEqual({
    at: 100,
    platformAt: 95,
  });
});

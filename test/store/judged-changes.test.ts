/** What stands before the guards, span by span: as if it were all looked at in one go. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { GuardClass } from '../../src/domain/guard-classes.ts';
import type { Change } from '../../src/domain/change.ts';
import { type Guarded, whole } from '../../src/store/database/key-range.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

const people = 6_000;
const made = { at: 1, platformAt: null, undoes: '', isListed: true };
const at = (nth: number): string => `${String(nth).padStart(5, '0')}@example.com`;

let snapshot: Snapshot;

beforeEach(() => {
  snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close } = snapshot;
  onTestFinished(() => close());
});

function stage(nth: number, stated: Partial<Change>): void {
  const change = { kind: 'contact', key: at(nth), op: 'delete', part: '', body: '{}' } as const;
  const rest = { phase: 2, target: undefined, guard: 'delete' } as const;
  snapshot.staging.addPlanned({ ...change, ...rest, ...stated });
}

/** Two of every class for each; and something that no guard is for. */
function stageAll(): void {
  snapshot.stage(() => {
    for (let nth = 0; nth < people; nth += 1) {
      stage(nth, { op: 'opt_out', part: 'ch_news', phase: 0 });
      stage(nth, {});
      stage(nth, { op: 'opt_in', part: 'ch_news', phase: 1, guard: 'opt_in' });
      stage(nth, { op: 'opt_out', part: 'ch_product', phase: 0, guard: undefined });
    }
  });
}

function each(guard: 'delete' | 'opt_in', work: (guarded: Guarded) => void): number {
  let n = 0;
  for (const span of snapshot.guarded.ranges({ guard })) {
    snapshot.stage(() => work({ ...span, guard }));
    n += 1;
  }
  return n;
}

/** How many are new, as they are added up. */
function fresh(guard: 'delete' | 'opt_in'): number {
  let all = 0;
  each(guard, (guarded) => (all += snapshot.guarded.fresh(guarded)));
  return all;
}

function withheld(guard: 'delete' | 'opt_in') {
  const { guarded: guarding } = snapshot;
  return [...guarding.heldRanges({ guard })].flatMap((span) => guarding.held({ ...span, guard }));
}

function counts(guard: 'delete' | 'opt_in') {
  const sum = { all: 0, unapproved: 0 };
  for (const span of snapshot.guarded.askedRanges({ guard })) {
    const { all, unapproved } = snapshot.guarded.counts({ ...span, guard });
    sum.all += all;
    sum.unapproved += unapproved;
  }
  return sum;
}

test('each person is in one range of a class, with all their changes', () => {
  stageAll();
  expect(each('delete', () => undefined)).toBeGreaterThan(2);
  expect(fresh('delete')).toBe(people);
  expect(fresh('opt_in')).toBe(people);
});

test('withholding all ranges withholds the whole class, and no other', () => {
  stageAll();
  const { guarded: guarding, staging, journal } = snapshot;
  each('delete', guarding.holdNew);
  expect(guarding.countHeld('delete')).toBe(people);
  expect(guarding.countHeld('opt_in')).toBe(0);
  expect(withheld('delete')).toHaveLength(2 * people);
  expect(withheld('opt_in')).toEqual([]);
  expect(fresh('delete')).toBe(0);
  journal.adopt({ ...whole, run: 'run', at: 1 });
  const left = [...staging.planned()].filter(({ held }) => !held).map(({ guard }) => guard);
  expect(left).toHaveLength(2 * people);
  expect(left.filter((guard) => guard === 'delete')).toEqual([]);
  const tally = [...journal.tally('run')].flat();
  expect(tally.reduce((sum, { n }) => sum + n, 0)).toBe(2 * people);
});

test('passed and exempt people are not new in any range', () => {
  stageAll();
  const { guarded: guarding } = snapshot;
  each('delete', guarding.pass);
  each('opt_in', guarding.exempt);
  expect([fresh('delete'), fresh('opt_in')]).toEqual([0, 0]);
  expect(counts('delete')).toEqual({ all: people, unapproved: people });
  expect(counts('opt_in')).toEqual({ all: people, unapproved: 0 });
});

test('people held since an earlier run are withheld in any range', () => {
  stageAll();
  const { guarded: guarding, holds } = snapshot;
  stage(people, {});
  each('delete', (guarded) => {
    if (guarded.after !== '') guarding.holdNew(guarded);
  });
  const stood = guarding.countHeld('delete');
  for (const span of guarding.heldRanges({ guard: 'delete' })) {
    holds.hold({ ...span, guard: 'delete' }, made);
  }
  snapshot.staging.clear();
  stageAll();
  const found: boolean[] = [];
  each('delete', (guarded) => found.push(guarding.holdStanding(guarded) > 0));
  expect(found).toEqual([false, true, true]);
  expect(guarding.countHeld('delete')).toBe(stood - 1);
  expect(fresh('delete')).toBe(people - stood + 1);
});

test('a held opt-out does not pass with another one of the same person in a later round', () => {
  const { guarded, holds, staging } = snapshot;
  const all: Guarded = { guard: 'opt_out', after: '', upTo: '\u{10FFFF}' };
  const out = { op: 'opt_out', phase: 0, guard: 'opt_out' } as const;
  snapshot.stage(() => stage(1, { ...out, part: 'ch_product' }));
  snapshot.stage(() => guarded.holdNew(all));
  snapshot.transaction(() => holds.hold(all, made));
  for (const round of [1, 2]) {
    staging.clearDecisions();
    guarded.forget('contact', at(1));
    snapshot.stage(() => {
      stage(1, { ...out, part: 'ch_news' });
      stage(1, { ...out, part: 'ch_product' });
      guarded.holdStanding(all);
      guarded.pass(all);
    });
    const held = guarded.held(all).map(({ part }) => part);
    expect(held, `round ${round}`).toEqual(['ch_product']);
  }
});

test('a run that lists nothing does not end the hold of a person who is not recorded', () => {
  const { guarded, holds, staging } = snapshot;
  const all: Guarded = { guard: 'opt_out', after: '', upTo: '\u{10FFFF}' };
  snapshot.stage(() => stage(1, { op: 'opt_out', phase: 0, guard: 'opt_out', part: 'ch_news' }));
  snapshot.stage(() => void guarded.holdNew(all));
  snapshot.transaction(() => holds.hold(all, made));
  staging.clear();
  const ended = [false, true].map((isListed) => {
    snapshot.transaction(
      () => void holds.endUnwanted({ ...all, at: 2, but: [], isListed, approvals: [] }),
    );
    return holds.oldest('opt_out') === undefined;
  });
  expect(ended).toEqual([false, true]);
});

describe('what is held again', () => {
  const all = (guard: GuardClass): Guarded => ({ guard, after: '', upTo: '\u{10FFFF}' });
  const first = { op: 'opt_in', part: 'ch_news', target: 'c1', guard: 'opt_in' } as const;

  /** Holds one change of a run, and then, later, this one of the next. Returns the open holds. */
  function heldAfter(next: Partial<Change>, undoes = '') {
    for (const [at, one] of [[1, first] as const, [5, { ...first, ...next }] as const]) {
      const { staging, guarded, holds, stage: stageIn, transaction } = snapshot;
      const guard = one.guard ?? 'opt_in';
      stageIn(() => {
        staging.clear();
        stage(1, one);
        guarded.holdNew(all(guard));
      });
      const now = { ...made, at, undoes: at === 5 ? undoes : '' };
      transaction(() => holds.hold(all(guard), now));
    }
    return snapshot.holds.of({ kind: 'contact', key: next.key ?? at(1), approvals: [] });
  }

  test.each<[string, Partial<Change>, string, number[]]>([
    ['the same change is the same hold', {}, '', [1]],
    // It stands for the first one, and waits as long.
    ['of another channel is another, as old', { part: 'ch_product' }, '', [1, 1]],
    ['for another contact is another, as old', { target: 'c2' }, '', [1, 1]],
    ['as a creation is another, as old', { op: 'create', target: undefined }, '', [1, 1]],
    ['of another class is another, and new', { op: 'delete', guard: 'delete' }, '', [1, 5]],
    ['of another person is another, and new', { key: at(2) }, '', [5]],
  ])('%s', (_, next, undoes, since) => {
    const found = heldAfter(next, undoes).map((one) => one.since);
    expect(found.toSorted((a, b) => a - b)).toEqual(since);
  });

  test('an undo holds a change of its own, which is no other run’s', () => {
    expect(heldAfter({}, 'run').map((one) => one.since)).toEqual([1]);
    expect(snapshot.guarded.countHeld('opt_in')).toBe(1);
    expect(snapshot.holds.oldest('opt_in')).toBe(1);
  });
});

/** What is planned, as it is taken up: record by record, in pages, and nothing twice. */
import { whole } from '../../src/store/database/key-range.ts';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Change } from '../../src/domain/change.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

let snapshot: Snapshot;

beforeEach(() => {
  snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close } = snapshot;
  onTestFinished(() => close());
});

const part = { run: 'this', kind: 'contact', phase: 1 } as const;
const nowhere = { target: undefined, guard: undefined, body: '{}' };

function change(key: string, channel: string, stated: Partial<Change> = {}): Change {
  return { ...nowhere, kind: 'contact', key, op: 'opt_in', part: channel, phase: 1, ...stated };
}

function plan(run: string, ...changes: Change[]): void {
  const { staging, journal, transaction } = snapshot;
  for (const one of changes) staging.addPlanned(one);
  transaction(() => journal.adopt({ ...whole, run, at: 1 }));
  staging.clearDecisions();
}

function pages(count: number): string[][] {
  const all: string[][] = [];
  let after = '';
  for (;;) {
    const page = snapshot.journal.plannedNext({ ...part, after, count });
    if (page.size === 0) return all;
    all.push([...page].map(([key, changes]) => [key, ...changes.map((one) => one.part)].join(' ')));
    after = [...page.keys()].at(-1) ?? after;
  }
}

function tallied(run: string): Record<string, number> {
  const states: Record<string, number> = {};
  for (const { state, n } of [...snapshot.journal.tally(run)].flat()) {
    states[state] = (states[state] ?? 0) + n;
  }
  return states;
}

test('a page holds a number of records, each with all changes in order', () => {
  plan('this', change('c', '1'), change('a', '2'), change('b', '1'), change('a', '1'));
  expect(pages(2)).toEqual([['a 2 1', 'b 1'], ['c 1']]);
  expect(pages(1)).toEqual([['a 2 1'], ['b 1'], ['c 1']]);
  expect(pages(9)).toEqual([['a 2 1', 'b 1', 'c 1']]);
});

test('a page holds planned changes of this run, record type and phase only', () => {
  plan('this', change('a', '1'), change('b', '1', { phase: 0 }), change('a', '2'));
  plan('this', change('d', '1', { kind: 'template' }));
  plan('other', change('a', '3'));
  const [first] = snapshot.journal.plannedNext({ ...part, after: '', count: 1 }).get('a') ?? [];
  snapshot.journal.move(first?.seq ?? 0, 'sent', { at: 1 });
  expect(pages(2)).toEqual([['a 2']]);
});

describe('with very many changes', () => {
  const many = Array.from({ length: 12_000 }, (_, nth) => change(`${nth}`, '1'));

  /** Every time it is asked whether there is more. */
  function times(work: () => boolean): number {
    let n = 1;
    while (work()) n += 1;
    return n;
  }

  test('leftovers of other runs are abandoned in chunks, except of active runs', () => {
    plan('other', ...many);
    plan('this', change('a', '1'));
    const { journal } = snapshot;
    expect(journal.hasLeft('contact', ['this'])).toBe(true);
    expect(times(() => journal.abandon('contact', 2, ['this']))).toBe(3);
    expect(journal.hasLeft('contact', ['this'])).toBe(false);
    expect(pages(9)).toEqual([['a 1']]);
    expect(tallied('other')).toEqual({ stale: 12_000 });
  });

  test('unsent changes are withdrawn in chunks', () => {
    plan('this', ...many);
    const [first] = snapshot.journal.planned({ ...part, key: '7' });
    snapshot.journal.move(first?.seq ?? 0, 'acked', { at: 2 });
    expect(times(() => snapshot.slicing.withdraw('this', 'contact'))).toBe(3);
    expect(tallied('this')).toEqual({ acked: 1 });
  });

  test('old changes are dropped in chunks, except open ones', () => {
    plan('this', ...many);
    const [first] = snapshot.journal.planned({ ...part, key: '7' });
    snapshot.journal.move(first?.seq ?? 0, 'sent', { at: 2 });
    expect(snapshot.journal.prune(1)).toBe(false);
    expect(tallied('this')).toEqual({ planned: 11_999, sent: 1 });
    expect(times(() => snapshot.journal.prune(2))).toBe(3);
    expect(tallied('this')).toEqual({ sent: 1 });
  });
});

test('leftovers of a run are found whatever became of the rest', () => {
  plan('this', change('a', '1'));
  plan('other', change('a', '1'));
  const left = () => snapshot.slicing.hasPlanned('this', 'contact');
  expect(left()).toBe(true);
  const [first] = snapshot.journal.planned({ ...part, key: 'a' });
  snapshot.journal.move(first?.seq ?? 0, 'acked', { at: 1 });
  expect(left()).toBe(false);
  expect(snapshot.slicing.hasPlanned('other', 'contact')).toBe(true);
});

test('a purged key disappears from the former keys of other changes', () => {
  const [old, other] = [
    { key: 'old', channels: {} },
    { key: 'other', channels: {} },
  ];
  plan(
    'this',
    change('next', 'a', { body: JSON.stringify({ former: [old, other], forbids: true }) }),
  );
  snapshot.purge.rows('contact', 'old', []);
  const [found] = snapshot.journal.plannedNext({ ...part, after: '', count: 1 }).get('next') ?? [];
  expect(JSON.parse(found?.body ?? '')).toEqual({ former: [other], forbids: true });
});

describe('what a run did to a record', () => {
  /** A run has changed a channel of Ann, and may have undone another run so. */
  function changed(run: string, at: number, undoes: string | null = null): void {
    const asked = JSON.stringify({ by: 'command', name: null, undoes });
    snapshot.transaction(() => snapshot.runs.start({ id: run, mode: 'undo', at, asked }));
    plan(run, change('ann', '1'));
    const page = snapshot.journal.plannedNext({ ...part, run, after: '', count: 1 });
    snapshot.journal.move(page.get('ann')?.[0]?.seq ?? 0, 'acked', { at });
  }
  const laterThan = (run: string) => {
    const [done] = snapshot.runChanges.of({ run, by: 'me', kind: 'contact', key: 'ann' });
    return [done?.later, done?.isUndone];
  };

  test('is changed or undone by a later run, and a run and its undo cancel each other', () => {
    changed('one', 1);
    changed('two', 2);
    expect([laterThan('one'), laterThan('two')]).toEqual([
      ['two', false],
      [undefined, false],
    ]);
    changed('undo of two', 3, 'two');
    expect([laterThan('one'), laterThan('two')]).toEqual([
      [undefined, false],
      ['undo of two', true],
    ]);
    changed('undo of it', 4, 'undo of two');
    expect([laterThan('one'), laterThan('two')]).toEqual([
      ['two', false],
      ['undo of it', false],
    ]);
    expect(snapshot.runChanges.lastAt('contact', 'ann')).toBe(4);
  });
});

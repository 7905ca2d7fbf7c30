/** Schedules: `H` is a time that differs between mirrors and stays the same for each. */
import { afterAll, describe, expect, it } from 'vitest';
import { dueAfter, spread } from '../../src/config/schema/cron-pattern.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const midnightMs = Date.UTC(2026, 10, 23);
const names = Array.from({ length: 300 }, (_, at) => `mirror-${at}`);

/** The seconds after midnight at which a pattern is due first, for each mirror. */
function dueOf(pattern: string): number[] {
  return names.map((mirror) => {
    const fixed = spread(pattern, { mirror, entry: 'fast' });
    expect(fixed).not.toMatch(/h/i);
    return (dueAfter(fixed, 'UTC', midnightMs - 1) - midnightMs) / 1000;
  });
}

describe('H', () => {
  it('spreads the mirrors over the whole interval', () => {
    const due = dueOf('H H/5 * * * *');
    expect(due.every((seconds) => seconds >= 0 && seconds < 300)).toBe(true);
    const minutes = [0, 1, 2, 3, 4].map((minute) => {
      return due.filter((seconds) => Math.floor(seconds / 60) === minute).length;
    });
    // About sixty each.
    for (const n of minutes) expect(n).toBeGreaterThan(30);
    expect(new Set(due).size).toBeGreaterThan(150);
  });

  it('stays within its bounds, and on whole minutes without seconds', () => {
    const due = dueOf('H H(2-4) * * *');
    expect(due.every((seconds) => seconds >= 7200 && seconds < 5 * 3600)).toBe(true);
    expect(due.every((seconds) => seconds % 60 === 0)).toBe(true);
  });

  it.each(['*/5 * * * *', '0 3 * * MON-THU', '30 0 3 * * *'])('is not in %s', (pattern) => {
    expect(spread(pattern, { mirror: 'acme', entry: 'full' })).toBe(pattern);
  });

  it('is the same each time, and another one for each entry', () => {
    const of = (entry: string) => spread('H H H * * *', { mirror: 'acme', entry });
    expect(of('full')).toBe(of('full'));
    expect(of('full')).not.toBe(of('fast'));
  });

  it('is replaced in a configuration', () => {
    const { schedule } = load(minimal('schedule: { full: H 3 * * *, fast: "*/5 * * * *" }'));
    expect(schedule?.patterns.full).toMatch(/^\d+ 3 \* \* \*$/);
    expect(schedule?.patterns.fast).toBe('*/5 * * * *');
  });

  it('is refused beyond the bounds of its field', () => {
    const found = mistakes(minimal('schedule: { full: H H(5-70) * * *, fast: nonsense }'));
    expect(JSON.stringify(found)).toContain('is no cron pattern');
  });
});

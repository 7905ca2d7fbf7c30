/** Schedules: `H` is a time that differs between mirrors and stays the same for each. */
import { afterAll, describe, expect, it } from 'vitest';
import { dueAfter, dueBefore, intervalOf, spread } from '../../src/config/schema/cron-pattern.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';
import { playsDraw, sampled } from '../support/extent.ts';

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

const fromMs = Date.UTC(2024, 0, 1);
const untilMs = Date.UTC(2030, 0, 1);
const dayMs = 86_400_000;
const minuteMs = 60_000;
/** An eighth of the zones; `npm run test:ci` plays all. */
const few = <T>(zones: readonly T[]): readonly T[] => (playsDraw ? zones : sampled(zones, 8));
const named = ['Africa/Cairo', 'Asia/Beirut', 'America/Santiago', 'America/Havana'];
const others = ['Australia/Lord_Howe', 'Atlantic/Azores', 'Europe/Berlin', 'America/Nuuk'];

function clockOf(timeZone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  return (at) => format.format(at);
}

/** The midnights of UTC within a day after which the clock of a zone changes. */
function changesOf(timeZone: string): number[] {
  const clock = clockOf(timeZone);
  const hasChange = (days: number) => (day: number) =>
    clock(day).slice(11) !== clock(day + days * dayMs).slice(11);
  const starts = (count: number, first: number, step: number) =>
    Array.from({ length: count }, (_, at) => first + at * step * dayMs);
  return starts((untilMs - fromMs) / dayMs / 7, fromMs, 7)
    .filter(hasChange(7))
    .flatMap((week) => starts(7, week, 1).filter(hasChange(1)));
}

/** The zones, of those whose clocks always change at the same moments in the same way one each. */
const changing = Object.values(
  Object.groupBy(
    Intl.supportedValuesOf('timeZone')
      .map((zone) => ({ zone, changes: changesOf(zone) }))
      .filter(({ changes }) => changes.length > 0),
    ({ zone, changes }) => {
      const clock = clockOf(zone);
      return changes.map((day) => `${clock(day)} ${clock(day + dayMs)}`).join();
    },
  ),
).flatMap((same = []) => ({ ...same[0]!, zones: same.map(({ zone }) => zone) }));

describe('a daily pattern, where the clock changes', () => {
  it('is tested in the zones that are known for it', () => {
    const zones = changing.flatMap((one) => one.zones);
    expect(zones.length).toBeGreaterThan(100);
    expect(zones).toEqual(expect.arrayContaining([...named, ...others.slice(0, 3)]));
  });

  it.each(few(changing))('is due once on each day in $zone', ({ zone, changes }) => {
    const clock = clockOf(zone);
    for (const time of ['00:00', '00:30', '01:30', '02:15', '03:00', '23:30']) {
      const [hour, minute] = time.split(':').map(Number);
      const pattern = `${minute} ${hour} * * *`;
      for (const change of changes) {
        const from = change - dayMs;
        const due = [dueAfter(pattern, zone, from)];
        while (due.length < 4) due.push(dueAfter(pattern, zone, due.at(-1) ?? from));
        const days = due.map((at) => {
          // The time of day lies between the moment before and this one: it is now, or was skipped.
          const of = [at - 1, at].map((moment) => clock(moment).slice(0, 10));
          const day = of.find(
            (one) => clock(at - 1) < `${one} ${time}:00` && `${one} ${time}:00` <= clock(at),
          );
          expect(day).toBeDefined();
          return Date.parse(day ?? '');
        });
        expect(days.map((day) => day - days[0]!)).toEqual([0, dayMs, 2 * dayMs, 3 * dayMs]);
        expect(dueBefore(pattern, zone, due[3]! + 1)).toBe(due[2]);
      }
    }
  });

  it.each([
    ['Africa/Cairo', '0 0 * * *', '2027-04-29T22:00:00Z', '2027-04-30 01:00:00'],
    ['Asia/Beirut', '30 0 * * *', '2027-03-27T22:00:00Z', '2027-03-28 01:00:00'],
    ['America/Santiago', '0 0 * * *', '2027-09-05T04:00:00Z', '2027-09-05 01:00:00'],
    ['America/Havana', '15 0 * * *', '2027-03-14T05:00:00Z', '2027-03-14 01:00:00'],
    ['Australia/Lord_Howe', '15 2 * * *', '2027-10-02T15:30:00Z', '2027-10-03 02:30:00'],
    ['Europe/Berlin', '30 2 * * *', '2027-03-28T01:00:00Z', '2027-03-28 03:00:00'],
  ])('in %s a skipped %s is due at the first moment after it', (zone, pattern, at, local) => {
    const due = Date.parse(at);
    expect(clockOf(zone)(due)).toBe(local);
    expect(dueAfter(pattern, zone, due - 1)).toBe(due);
    expect(dueAfter(pattern, zone, due)).toBeGreaterThan(due + 20 * 60 * minuteMs);
  });
});

describe('a pattern of every hour, where the clock changes', () => {
  it.each(few([...named, ...others]))('has no gap in %s', (zone) => {
    for (const change of changesOf(zone)) {
      let at = change - dayMs;
      while (at < change + 2 * dayMs) {
        const next = dueAfter('*/10 * * * *', zone, at);
        expect(next - at).toBeLessThanOrEqual(10 * minuteMs);
        at = next;
      }
    }
    expect(intervalOf('*/10 * * * *', { timezone: zone, now: fromMs })).toBe(10 * minuteMs);
  });
});

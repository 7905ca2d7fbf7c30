/**
 * The hours of a week in which classes of changes are made (docs/guards-and-approvals.md#windows).
 * They are hours of the local clock: an hour that a change to summer time skips never comes, and
 * one that is repeated comes twice.
 */
import type { GuardClass } from '../guard-classes.ts';
import { type AskedClass, askedClasses } from './plan-rule.ts';
import type { Fault } from '../record.ts';
import { fault } from '../schema-fields.ts';
import { localTime, type LocalTime, type Weekday, weekdays } from '../values/local-time.ts';

/** Hours of some days. Those that end before they begin end on the following day. */
export interface WeeklyHours {
  days: readonly Weekday[];
  /** Minutes since midnight: 0 to 1439. */
  from: number;
  /** Likewise, exclusive: 1 to 1440. */
  to: number;
}

export interface ChangeWindow {
  readonly allow: readonly WeeklyHours[];
  /** The classes that are made only in these hours; undefined for all. */
  readonly for?: readonly AskedClass[] | undefined;
  /** An IANA name; undefined for the time zone of the schedule. */
  readonly timezone?: string | undefined;
}

const form = /^(?:([A-Za-z, -]+?)\s+)?(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/;
const usage = "write 'Mon-Fri 08:00-18:00', or several with ; between them";

/** Returns the hours that a text states, or why it is wrong and where: an index in the text. */
export function hoursOf(text: string): WeeklyHours[] | (Fault & { at: number }) {
  const found: WeeklyHours[] = [];
  let at = 0;
  for (const part of text.split(';')) {
    const hours = hoursIn(part.trim());
    const start = at + part.length - part.trimStart().length;
    if ('reason' in hours) return { ...hours, at: start };
    found.push(hours);
    at += part.length + 1;
  }
  return found;
}

function hoursIn(text: string): WeeklyHours | Fault {
  const [, dayText, ...times] = form.exec(text) ?? [];
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = times.map(Number);
  if (times.length === 0) return fault('is no window', usage);
  const from = fromHour * 60 + fromMinute;
  const to = toHour * 60 + toMinute;
  if (fromMinute > 59 || toMinute > 59 || from > 1439 || to > 1440)
    return fault('holds a time that does not exist', 'write 00:00 to 24:00');
  if (from === to) return fault('ends when it begins', 'write 00:00-24:00 for the whole day');
  const days = dayText === undefined ? weekdays : daysIn(dayText);
  return 'reason' in days ? days : { days, from, to };
}

function daysIn(text: string): Weekday[] | Fault {
  const days: Weekday[] = [];
  for (const part of text.split(',')) {
    const words = part.split('-').map((word) => word.trim().toLowerCase());
    const ends = words.map((word) => weekdays.find((day) => day.toLowerCase() === word));
    const [first, last = first] = ends;
    if (ends.length > 2 || first === undefined || last === undefined || ends.includes(undefined))
      return fault('names a day that does not exist', `use ${weekdays.join(', ')}`);
    const count = ((weekdays.indexOf(last) - weekdays.indexOf(first) + 7) % 7) + 1;
    for (let step = 0; step < count; step += 1) days.push(dayAfter(first, step));
  }
  return [...new Set(days)];
}

function dayAfter(day: Weekday, steps: number): Weekday {
  return weekdays[(weekdays.indexOf(day) + steps + 7) % 7] ?? day;
}

/** A time, and the time zone of windows that state none. */
export interface AskedTime {
  /** In milliseconds since the epoch. */
  at: number;
  timezone: string;
}

/** Returns whether no window allows a class at a time, although a window is about it. */
export function isClosed(
  windows: readonly ChangeWindow[],
  guard: GuardClass,
  time: AskedTime,
): boolean {
  const about = windowsOf(windows, guard);
  return about.length > 0 && !about.some((window) => isOpen(window, localOf(window, time)));
}

/** Returns when a closed class is allowed again, by its window; undefined after two weeks. */
export function opening(
  windows: readonly ChangeWindow[],
  guard: GuardClass,
  { at, timezone }: AskedTime,
): { at: number; words: string } | undefined {
  const last = at + 15 * 86_400_000;
  for (let quarter = Math.floor(at / quarterMs) * quarterMs; quarter < last; quarter += quarterMs) {
    const found = windowsOf(windows, guard)
      .map((window) => openingIn(window, { at: quarter, timezone }, at))
      .filter((one) => one !== undefined);
    const [first] = found.toSorted((a, b) => a.at - b.at);
    if (first) return first;
  }
  return undefined;
}

/** Returns when a window opens within a quarter of an hour, from `after` on. */
function openingIn(window: ChangeWindow, quarter: AskedTime, after: number) {
  // All offsets from UTC are multiples of a quarter of an hour, so it contains no jump.
  const local = localOf(window, quarter);
  for (let minute = 0; minute < 15; minute += 1) {
    const minuteOfDay = local.minuteOfDay + minute;
    const at = quarter.at + minute * 60_000;
    if (at >= after && isOpen(window, { ...local, minuteOfDay })) {
      const two = (n: number) => String(n).padStart(2, '0');
      const clock = `${two(Math.floor(minuteOfDay / 60))}:${two(minuteOfDay % 60)}`;
      return { at, words: `${local.weekday} ${clock} ${window.timezone ?? quarter.timezone}` };
    }
  }
  return undefined;
}

const quarterMs = 15 * 60_000;

function windowsOf(windows: readonly ChangeWindow[], guard: GuardClass): ChangeWindow[] {
  return windows.filter(({ for: classes = askedClasses }) => classes.some((one) => one === guard));
}

function localOf({ timezone: own }: ChangeWindow, { at, timezone }: AskedTime): LocalTime {
  return localTime(at, own ?? timezone);
}

function isOpen({ allow }: ChangeWindow, { weekday, minuteOfDay }: LocalTime): boolean {
  return allow.some(({ days, from, to }) => {
    if (from < to) return days.includes(weekday) && minuteOfDay >= from && minuteOfDay < to;
    const isBegun = days.includes(weekday) && minuteOfDay >= from;
    return isBegun || (days.includes(dayAfter(weekday, -1)) && minuteOfDay < to);
  });
}

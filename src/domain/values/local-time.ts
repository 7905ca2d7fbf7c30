/** Converts times into the local time of a time zone. */

/** The days of a week, in the form in which the configuration names them. */
export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
export type Weekday = (typeof weekdays)[number];

export interface LocalTime {
  weekday: Weekday;
  /** 0 to 23. */
  hour: number;
  /** The minutes since midnight, as the clock shows them: 0 to 1439. */
  minuteOfDay: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns the local time at `at` (epoch milliseconds). Throws RangeError for an unknown zone. */
export function localTime(at: number, timezone: string): LocalTime {
  // Creating a format is slow, so each is kept.
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
  formats.set(timezone, format);
  const parts = format.formatToParts(at);
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    parts.find((one) => one.type === type)?.value ?? '';
  const hour = Number(part('hour'));
  const weekday = weekdays.find((day) => day === part('weekday')) ?? 'Mon';
  return { weekday, hour, minuteOfDay: hour * 60 + Number(part('minute')) };
}

const offsets = new Map<string, Intl.DateTimeFormat>();

/** Returns how far the clock of a zone is ahead of UTC at `at`, both in milliseconds. */
export function offsetAt(at: number, timezone: string): number {
  const format =
    offsets.get(timezone) ??
    new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' });
  offsets.set(timezone, format);
  const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign, hours, minutes, seconds = 0] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(name) ?? [];
  if (sign === undefined) return 0;
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
  return sign === '-' ? -ms : ms;
}

/** Reads numbers and times that options state. */
import { milliseconds } from '../../domain/values/config-value.ts';
import { Invalid } from '../../domain/errors.ts';

/** Returns the number that an option states. Throws Invalid for any other text. */
export function countOf(text: string | undefined, option = '--last'): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Invalid(`${option} ${text}: write a number from 1 on`);
}

/** In milliseconds since the epoch; null if it is not given. Throws Invalid. */
export function sinceOf(text: string | undefined, now: number, option = '--since'): number | null {
  if (text === undefined) return null;
  if (/^\d{1,6}[smhd]$/.test(text)) return now - milliseconds(text);
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)) {
    const [day = ''] = text.split('T');
    const begin = Date.parse(day);
    // Date turns the 30th of February into the 2nd of March.
    const isDay = !Number.isNaN(begin) && new Date(begin).toISOString().startsWith(day);
    const at = isDay ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(at)) return at;
  }
  throw new Invalid(
    `${option} ${text}: write a time with its zone (2026-03-01T12:00:00Z), a day, or how long ago (7d)`,
  );
}

/** Parses a whole number from 0 to `most`. Throws Invalid, naming the option. */
export function parseWhole(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Invalid(`${flag} "${text}": give a whole number from 0 to ${most}`);
}

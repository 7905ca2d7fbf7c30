/**
 * Reads when a person last made a consent statement. Consent must never look newer than it is, so
 * of several possible instants the earliest counts, and a text that cannot be read counts as none.
 * A time that was in the future when it was first read is wrong, for instance because day and month
 * are exchanged. It stays no evidence when its time comes.
 */
import { z } from 'zod';
import { earliestInstant, parseDateFormat } from '../../../domain/values/date-format.ts';
import type {
  ContactStates,
  DesiredContactRow,
  RecordedContact,
  RecordedContactRow,
} from './contact-state.ts';

/** The field with the time in ISO 8601, or with a time in a format and zone of its own. */
export type ConsentTime =
  | string
  | {
      readonly field: string;
      /** The format, as domain/values/date-format.ts reads it. */
      readonly format: string;
      /** The IANA name of the zone. Without one, a day begins in the earliest zone (UTC+14). */
      readonly timezone?: string | undefined;
    };

export interface ConsentReader {
  field: string;
  /** Returns a time in milliseconds since the epoch; null if empty, undefined if unreadable. */
  read(text: string): number | null | undefined;
  faultOf(text: string): { reason: string; fix: string };
}

/** Creates the reader of a setting. A value in ISO 8601 is read whatever the format. */
export function consentReader(stated: ConsentTime): ConsentReader {
  if (typeof stated === 'string') {
    return {
      field: stated,
      read: readIso,
      faultOf: (text) => ({
        reason: zoneless.test(text) ? 'is a time without a zone' : 'is no time that can be read',
        fix: 'write it with its zone (2026-03-01T12:00:00Z), or as a day (2026-03-01), or leave it empty',
      }),
    };
  }
  const { field, format, timezone } = stated;
  const parsed = parseDateFormat(format);
  // The configuration was checked, so that this holds.
  if ('reason' in parsed) throw new TypeError(`the format ${format} ${parsed.reason}`);
  return {
    field,
    read(text) {
      // A day such as 2026-03-04 may fit the format and be a date of a spreadsheet, too.
      const walls = [parsed.read(text), wallOfIso(text)].filter((wall) => wall !== undefined);
      if (walls.length === 0) return readIso(text);
      const wall = Math.min(...walls);
      return timezone === undefined ? wall - earliestZoneMs : earliestInstant(wall, timezone);
    },
    faultOf: () => ({
      reason: `has not the form ${format}`,
      fix: 'correct contacts.consentAt.format, or the time in the CRM',
    }),
  };
}

const earliestZoneMs = 14 * 3_600_000;

const instant = z.iso.datetime({ offset: true });
const day = z.iso.date();
const zoneless = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?$/;

const isDay = (text: string): boolean => day.safeParse(text).success;

/** Reads an instant with its zone, or a day, which starts in the earliest zone (UTC+14). */
function readIso(text: string): number | null | undefined {
  if (text === '') return null;
  if (instant.safeParse(text).success) return Date.parse(text);
  return isDay(text) ? Date.parse(`${text}T00:00:00+14:00`) : undefined;
}

/** Reads a day, or a time without a zone, as the cells of a workbook are. */
function wallOfIso(text: string): number | undefined {
  if (isDay(text)) return Date.parse(`${text}T00:00:00Z`);
  if (!zoneless.test(text)) return undefined;
  const [date = '', time = ''] = text.split(/[T ]/);
  const at = isDay(date) ? Date.parse(`${date}T${time.replace(',', '.')}Z`) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** Marks the records whose time of consent was in the future when it was first read. */
export function withEarlyMarked({ desired, successors, ...states }: ContactStates): ContactStates {
  const former = states.former.map(({ row }) => row);
  return {
    ...states,
    desired: marked(desired, [states.recorded, ...former]),
    successors: successors.map((next) => ({
      ...next,
      desired: marked(next.desired, [next.recorded, states.recorded]),
    })),
  };
}

function marked(
  rows: readonly DesiredContactRow[],
  known: readonly (RecordedContactRow | undefined)[],
): readonly DesiredContactRow[] {
  const early = new Set(known.flatMap((row) => row?.value.early ?? []));
  if (early.size === 0) return rows;
  return rows.map((row) => {
    const isEarly = row.value.consentAt !== null && early.has(row.value.consentAt);
    return isEarly ? { ...row, value: { ...row.value, early: true } } : row;
  });
}

/** Returns the times to remember, including those that the records no longer state. */
export function earlyTimes(
  desired: readonly DesiredContactRow[],
  recorded: RecordedContact | undefined,
): number[] | undefined {
  const now = desired.flatMap(({ value }) => (value.early && value.consentAt) || []);
  const all = [...new Set([...(recorded?.early ?? []), ...now])].toSorted((a, b) => a - b);
  return all.length > 0 ? all : undefined;
}

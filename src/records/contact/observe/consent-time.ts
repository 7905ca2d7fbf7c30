/**
 * Reads when a person last made a consent statement. Consent must never look newer than it is, so
 * of several possible instants the earliest counts, and a text that cannot be read counts as none.
 * A time in the future when first read is wrong, and stays no evidence when its time comes.
 * Combines the records or contacts that share an address: the strictest wins.
 */
import { z } from 'zod';
import { earliestInstant, parseDateFormat } from '../../../domain/values/local-time.ts';
import type {
  ContactStates,
  DesiredContactRow,
  RecordedContact,
  RecordedContactRow,
  ObservedContact,
} from './contact-state.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';

/** The field with the time in ISO 8601, or with a time in a format and zone of its own. */
export type ConsentTime =
  | string
  | {
      readonly field: string;
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

/** The desired subscription in one channel; null if the CRM has no opinion. */
export type DesiredSubscription = Subscription | 'gone' | null;

/**
 * Returns the strictest statement of the records with one address, by channel. Any opt-out wins,
 * even of a deleted or invalid one. With an invalid one nobody is opted in. Gone: all of them are.
 */
export function strictest(
  rows: readonly DesiredContactRow[],
  channels: readonly string[],
): Map<string, DesiredSubscription> {
  const living = rows.filter(({ invalid, value }) => invalid || value.presence === 'present');
  const broken = rows.some((row) => row.invalid);
  const wishOf = (channel: string): DesiredSubscription => {
    if (rows.some(({ value }) => value.channels[channel] === 'opt_out')) return 'opt_out';
    if (living.length === 0) return 'gone';
    const wanted = living.some(({ value }) => value.channels[channel] === 'opt_in');
    return wanted && !broken ? 'opt_in' : null;
  };
  return new Map(channels.map((channel) => [channel, wishOf(channel)]));
}

/** Returns whether some records opt in and others out, which is reported although resolved. */
export function contradict(rows: readonly DesiredContactRow[], channel: string): boolean {
  if (rows.length < 2) return false;
  const wishes = rows.map(({ value }) => value.channels[channel]);
  return wishes.includes('opt_in') && wishes.includes('opt_out');
}

/**
 * Returns the strictest subscription of the contacts with one address: an opt-out from any wins, so
 * none is opted in. If only some are subscribed, they count, so that an opt-out reaches these.
 */
export function strictestOf(
  contacts: ObservedContact[],
  channel: string,
): Subscription | undefined {
  const shown = new Set(contacts.map((contact) => contact.channels[channel]));
  if (shown.has('opt_out')) return 'opt_out';
  return shown.has('opt_in') ? 'opt_in' : undefined;
}

/** Returns when the oldest opinion was stated; null if there is none, or one has no time. */
export function statedAt(rows: readonly DesiredContactRow[], channel: string): number | null {
  const opinions = rows.filter(({ value }) => value.channels[channel]);
  const times = opinions.map(
    ({ value }) => (value.early ? null : value.consentAt) ?? Number.NEGATIVE_INFINITY,
  );
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : null;
}

/** Returns the ids of the CRM records that state an opt-in. */
export function statingIn(desired: readonly DesiredContactRow[], channel: string): string[] {
  const stating = desired.filter(
    ({ value }) => value.presence === 'present' && value.channels[channel] === 'opt_in',
  );
  return [...new Set(stating.map(({ id }) => id))].toSorted();
}

/** Returns the words of the records about a channel; undefined: one is invalid, or all are gone. */
export function statementIn(
  rows: readonly DesiredContactRow[],
  channel: string,
): string | undefined {
  const present = rows.filter(({ value }) => value.presence === 'present');
  if (present.length === 0 || rows.some(({ invalid }) => invalid)) return undefined;
  const words = present.flatMap(({ value }) => value.channels[channel] ?? []);
  return [...new Set(words)].toSorted().join(', ');
}

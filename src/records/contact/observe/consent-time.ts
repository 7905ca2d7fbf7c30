import { z } from 'zod';

const instant = z.iso.datetime({ offset: true });
const day = z.iso.date();
const zoneless = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?$/;

/**
 * When a will was stated, in milliseconds since the epoch; null when nothing is said, undefined
 * when it cannot be told. ISO 8601: an instant with its zone, or a day, which counts from its
 * beginning anywhere on earth.
 */
export function readConsentAt(text: string): number | null | undefined {
  if (text === '') return null;
  if (instant.safeParse(text).success) return Date.parse(text);
  return day.safeParse(text).success ? Date.parse(`${text}T00:00:00+14:00`) : undefined;
}

/** Of a time that cannot be told, whether it is that the zone is missing. */
export function isZoneless(text: string): boolean {
  return zoneless.test(text);
}

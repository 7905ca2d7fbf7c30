/** Puts values into web addresses. No other code does (a rule of style holds it). */
import { Invalid } from './errors.ts';

/**
 * Returns whether a value in a path would be a step up or nothing at all, written as it is or
 * encoded, so that the address would be that of something else.
 */
export function isDotSegment(value: string): boolean {
  return /^(\.|%2e){0,2}$/i.test(value);
}

/** Encodes a value for a path. Throws Invalid if it would change the path. */
export function pathSegment(value: string): string {
  if (isDotSegment(value)) {
    throw new Invalid('an id that is empty or consists of dots names nothing');
  }
  return encodeURIComponent(value);
}

/** Encodes a value for a query. */
export function queryValue(value: string): string {
  return encodeURIComponent(value);
}

/** Puts values into web addresses. No other code does (a rule of style holds it). */
import { Invalid } from './errors.ts';

/** Returns whether a value, plain or encoded, would be a step up in a path, or nothing. */
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

export function queryValue(value: string): string {
  return encodeURIComponent(value);
}

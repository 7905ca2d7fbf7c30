/** Reads an option that is a whole number. */
import { Invalid } from '../../domain/errors.ts';

/** Parses a whole number from 0 to `most`. Throws Invalid, naming the option. */
export function parseWhole(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Invalid(`${flag} "${text}": give a whole number from 0 to ${most}`);
}

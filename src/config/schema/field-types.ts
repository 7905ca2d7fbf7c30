/** Defines basic types of configuration fields. */
import { z } from 'zod';
import { says } from '../../domain/schema-fault.ts';
import { numeric } from '../../domain/values/config-value.ts';

/**
 * Returns whether a text can be sent in an HTTP header and contains no space or other character
 * that never occurs in a key.
 */
export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

export const text = (what: string) => z.string().min(1).describe(what);
export const number = (of: z.ZodNumber, what: string) => z.preprocess(numeric, of).describe(what);
export const whole = (min: number, max: number) => z.number().int().min(min).max(max);
export const secret = (what: string) =>
  z
    .string()
    .refine(
      isHeaderText,
      says('is empty or holds what a header cannot carry', 'write the key alone'),
    )
    .describe(what);

/**
 * Makes a check across fields run even if one of them is invalid, so that all mistakes are reported
 * together.
 */
export const onMapping = {
  when: ({ value }: { value: unknown }) =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

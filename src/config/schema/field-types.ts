/** What the fields of the configuration are made of. */
import { z } from 'zod';
import { numeric } from '../../domain/values/config-value.ts';

/** Whether an HTTP header can carry it, and nothing in it looks like a slip of the pen. */
export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

export const text = (what: string) => z.string().min(1).describe(what);
export const number = (of: z.ZodNumber, what: string) => z.preprocess(numeric, of).describe(what);
export const whole = (min: number, max: number) => z.number().int().min(min).max(max);
export const secret = (what: string) =>
  z
    .string()
    .refine(isHeaderText, 'is empty or holds what a header cannot carry → write the key alone')
    .describe(what);

/** A check across fields runs even when one of them is wrong, so that all mistakes come at once. */
export const onMapping = {
  when: ({ value }: { value: unknown }) =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

/** A field of the configuration that may name its own words (README, values). */
import { z } from 'zod';
import { wordOf } from '../../domain/values/record-field.ts';
import { onMapping, text } from './field-types.ts';

const word = (what: string) =>
  z
    .union([z.string(), z.number(), z.boolean()])
    .transform(String)
    .refine((value) => wordOf(value) !== '', 'is empty → remove it: an empty value says nothing')
    .describe(what);
const words = (what: string) =>
  z.array(word('A word, compared trimmed and without case')).describe(what);

const field = text('Column or dotted path of the CRM record');

/** For `deleted` and `unsubscribed`. */
export const flagWords = z
  .strictObject({
    field,
    yes: z
      .union([
        words('More words that mean yes'),
        z.literal('any').describe('Every value that is neither empty nor a word for no'),
      ])
      .describe(
        'More words that mean yes; any: every value that is neither empty nor a word for no',
      )
      .optional(),
    no: words('More words that mean no').optional(),
  })
  .superRefine(refuseTwice(['yes', 'no']), onMapping);

export const subscriptionWords = z
  .strictObject({
    field,
    in: words('More words that opt in').optional(),
    out: words('More words that opt out').optional(),
    none: words('Words that do neither').optional(),
  })
  .superRefine(refuseTwice(['in', 'out', 'none']), onMapping);

/** A word must not mean two things. What is checked may not be valid yet. */
function refuseTwice(lists: readonly string[]) {
  return (value: object, context: z.core.$RefinementCtx) => {
    const known = new Map<string, string>();
    for (const name of lists) {
      const list: unknown = Reflect.get(value, name);
      for (const [at, given] of (Array.isArray(list) ? list : []).entries()) {
        const plain = wordOf(String(given));
        const other = known.get(plain) ?? name;
        known.set(plain, other);
        if (other === name) continue;
        const message = `stands in ${other} too → keep it in one of the two`;
        context.addIssue({ code: 'custom', path: [name, at], message });
      }
    }
  };
}

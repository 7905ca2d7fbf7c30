/** Who is protected: addresses, and conditions on the CRM record. */
import { z } from 'zod';
import { condition } from './cel-condition.ts';

export const protect = z
  .array(
    z.union([
      z
        .string()
        .trim()
        .regex(/^[^\s@]+@[^\s@]+$/, 'is not an email address → write one, or { when: <condition> }')
        .describe('An email address'),
      z.strictObject({ when: condition(false, 'true protects this person') }),
    ]),
  )
  .min(1)
  .describe(
    'People who are never created, opted in, opted out for absence or a deletion flag, or deleted;' +
      ' opt-outs that the CRM states still apply',
  );

/** Defines the schema of `windows`: the hours in which classes of changes are made. */
import { z } from 'zod';
import { hoursOf } from '../../domain/guards/change-window.ts';
import { askedClasses } from '../../domain/guards/plan-rule.ts';
import { text } from './field-types.ts';
import { timeZone } from './worker-schema.ts';

const hours = text(
  "Days and hours: 'Mon-Fri 08:00-18:00', 'Sat,Sun 10:00-12:00' or '22:00-06:00', several with ;",
).transform((value, context) => {
  const found = hoursOf(value);
  if (!('reason' in found)) return found;
  const { reason, fix, at } = found;
  context.addIssue({ code: 'custom', message: reason, params: { fix, at } });
  return z.NEVER;
});

/** The schema of `windows`. */
export const windows = z
  .array(
    z
      .strictObject({
        allow: hours,
        for: z
          .array(z.enum(askedClasses))
          .min(1)
          .describe('The classes of changes that are made only then; by default all three')
          .optional(),
        timezone: timeZone(
          'Time zone of the hours: an IANA name; by default that of the schedule',
        ).optional(),
      })
      .describe('Hours in which classes of changes are made'),
  )
  .describe('Hours outside of which classes of changes wait for a later run');

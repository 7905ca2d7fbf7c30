/** Defines the schemas of `policy.canary` and `templates.canary`: what is tried before the rest. */
import { z } from 'zod';
import { says } from '../../domain/schema-fault.ts';
import { duration } from './durations.ts';
import { number, whole } from './field-types.ts';

const share = (what: string) => number(z.number().min(0).max(100), what);
const bound = (what: string) => share(`Percentage of the canary ${what}`).prefault(5);

/** The schema of `policy.canary`. */
export const canary = z
  .strictObject({
    percent: share(
      'Percentage of the people or templates of a class that are changed first',
    ).prefault(2),
    floor: number(
      whole(1, 1_000_000),
      'The least number of people in a canary; no more than that need none',
    ).prefault(25),
    wait: duration('Time after which the canary is read back').default('30m'),
    bounds: z
      .strictObject({
        unsubscribed: bound('that may unsubscribe, or receive no mail, in the meantime'),
        refused: bound('whose change the platform may refuse'),
        drift: bound('for whom the platform may not show what was written'),
      })
      .prefault({})
      .describe('Above one of these, the rest awaits approval'),
  })
  .describe(
    'After a change of the mapping, in a first load and when many templates change: some are changed first, and the rest waits for them',
  );

const mailbox = /^[^\s<>@,;"]+@[^\s<>@,;"]+$/;
const noAddress = says('is no email address', 'write name@example.com');

/** The schema of `templates.canary`. */
export const templateCanary = z
  .strictObject({
    to: z
      .array(z.string().regex(mailbox, noAddress))
      .min(1)
      .max(20)
      .describe('Addresses that get a test of each changed template, before it is published'),
  })
  .describe('Tests of changed templates');

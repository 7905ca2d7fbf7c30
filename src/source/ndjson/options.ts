import { z } from 'zod';
import { placedFaults, placedShape } from '../placed.ts';

/** The YAML of this source; a relative path has been resolved by the time it is read. */
export const ndjsonOptions = z
  .strictObject({
    type: z.literal('ndjson').describe('A file with one JSON object a line, in UTF-8'),
    ...placedShape,
  })
  .superRefine((value, context) => {
    for (const [path, message] of placedFaults(value)) {
      context.addIssue({ code: 'custom', path: [path], message });
    }
  });
export type NdjsonOptions = z.infer<typeof ndjsonOptions>;

import { z } from 'zod';
import { placedFaults, placedShape } from '../shared/files/file-options.ts';

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

/** The YAML of the way back. */
export const ndjsonReturnsOptions = z.strictObject({
  type: z.literal('ndjson').describe('A line of a file, one JSON object, for each who left'),
  path: z.string().min(1).describe('Path of the file, relative to the configuration'),
});
export type NdjsonReturnsOptions = z.infer<typeof ndjsonReturnsOptions>;

import { z } from 'zod';
import { placedFaults, placedShape } from '../shared/files/file-options.ts';

/** The YAML of this source; a relative path has been resolved by the time it is read. */
export const csvOptions = z
  .strictObject({
    type: z.literal('csv').describe('A CSV file with a header row, in UTF-8'),
    ...placedShape,
  })
  .superRefine((value, context) => {
    for (const [path, message] of placedFaults(value)) {
      context.addIssue({ code: 'custom', path: [path], message });
    }
  });
export type CsvOptions = z.infer<typeof csvOptions>;

/** The YAML of the way back. */
export const csvReturnsOptions = z.strictObject({
  type: z.literal('csv').describe('A line of a CSV file for each person who left'),
  path: z.string().min(1).describe('Path of the file, relative to the configuration'),
});
export type CsvReturnsOptions = z.infer<typeof csvReturnsOptions>;

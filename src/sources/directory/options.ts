import { z } from 'zod';

/** The options of this source. The path is made absolute before the options are used. */
export const directoryOptions = z.strictObject({
  type: z.literal('directory').describe('A directory with one file or folder for each template'),
  path: z.string().min(1).describe('Path of the directory, relative to the configuration file'),
});
export type DirectoryOptions = z.infer<typeof directoryOptions>;

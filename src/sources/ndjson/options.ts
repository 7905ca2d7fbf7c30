import type { z } from 'zod';
import { fileOptions, fileReturnsOptions } from '../shared/files/file-options.ts';

/** The options of this source. */
export const ndjsonOptions = fileOptions('ndjson', 'A file with one JSON object a line, in UTF-8');
export type NdjsonOptions = z.infer<typeof ndjsonOptions>;

/** The options of reporting opt-outs. */
export const ndjsonReturnsOptions = fileReturnsOptions(
  'ndjson',
  'A line of a file, one JSON object, for each who left',
);
export type NdjsonReturnsOptions = z.infer<typeof ndjsonReturnsOptions>;

import type { z } from 'zod';
import { fileOptions, fileReturnsOptions } from '../shared/files/file-options.ts';

/** The options of this source. */
export const csvOptions = fileOptions('csv', 'A CSV file with a header row, in UTF-8');
export type CsvOptions = z.infer<typeof csvOptions>;

/** The options of reporting opt-outs. */
export const csvReturnsOptions = fileReturnsOptions(
  'csv',
  'Adds a line to a CSV file for each opt-out',
);
export type CsvReturnsOptions = z.infer<typeof csvReturnsOptions>;

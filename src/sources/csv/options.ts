import { z } from 'zod';
import {
  fileReturnsOptions,
  placedShape,
  refusePlacedFaults,
} from '../shared/files/file-options.ts';
import { headerRow } from '../shared/option-fields.ts';
import { delimiters, encodings } from './csv-format.ts';

export const csvOptions = z
  .strictObject({
    type: z.literal('csv').describe('A CSV file with a header row'),
    ...placedShape,
    encoding: z
      .enum(encodings)
      .describe(
        'Encoding of the text; by default utf-8. A byte order mark in the file takes precedence',
      )
      .optional(),
    delimiter: z
      .enum([...delimiters, 'tab'])
      .transform((given) => (given === 'tab' ? '\t' : given))
      .describe("Character between two fields: ',', ';', '|' or tab; by default it is detected")
      .optional(),
    headerRow: headerRow.optional(),
  })
  .superRefine(refusePlacedFaults);
export type CsvOptions = z.infer<typeof csvOptions>;

export const csvReturnsOptions = fileReturnsOptions(
  'csv',
  'Adds a line to a CSV file for each opt-out',
);

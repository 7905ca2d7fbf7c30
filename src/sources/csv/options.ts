import { z } from 'zod';
import {
  fileReturnsOptions,
  placedShape,
  refusePlacedFaults,
  headerRow,
} from '../shared/option-fields.ts';

export const delimiters = [',', ';', '\t', '|'] as const;
export type Delimiter = (typeof delimiters)[number];

const encodings = ['utf-8', 'utf-16', 'windows-1252'] as const;
export type Encoding = (typeof encodings)[number];

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

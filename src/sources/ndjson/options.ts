import { z } from 'zod';
import { fileReturnsOptions, placedShape, refusePlacedFaults } from '../shared/option-fields.ts';

export const ndjsonOptions = z
  .strictObject({
    type: z.literal('ndjson').describe('A file with one JSON object per line, in UTF-8'),
    ...placedShape,
  })
  .superRefine(refusePlacedFaults);
export type NdjsonOptions = z.infer<typeof ndjsonOptions>;

export const ndjsonReturnsOptions = fileReturnsOptions(
  'ndjson',
  'Adds a line with a JSON object to a file for each opt-out',
);

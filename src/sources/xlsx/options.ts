import { z } from 'zod';
import { reporter, text } from '../../domain/schema-fields.ts';
import { placeOf } from '../../domain/values/config-file.ts';
import { headerRow } from '../shared/option-fields.ts';

/** The path is made absolute before the options are used. */
export const xlsxOptions = z.strictObject({
  type: z.literal('xlsx').describe('A sheet of an Excel workbook, with a header row'),
  path: z
    .string()
    .min(1)
    .superRefine((path, context) => {
      if (placeOf(path) === 'file') return;
      reporter(context)([], 'is not a file on this machine', 'save the workbook there first');
    })
    .describe('Path of the workbook, relative to the configuration'),
  sheet: text('Name of the sheet; by default the first one that is not hidden').optional(),
  headerRow: headerRow.optional(),
});
export type XlsxOptions = z.infer<typeof xlsxOptions>;

import { z } from 'zod';
import { fault, issueOf } from '../../../domain/schema-fault.ts';
import { placeOf } from '../../../domain/values/config-file.ts';
import { addressFault, flag, headers, whole } from '../option-fields.ts';

export interface PlacedOptions {
  /** An absolute path, `-` for standard input, or a web address. */
  path: string;
  headers?: Readonly<Record<string, string>> | undefined;
  timeoutMs?: number | undefined;
  allowHttp?: boolean | undefined;
  /** With `optional`, a last line without a line break counts as complete. */
  finalNewline?: 'required' | 'optional' | undefined;
}

export const placedShape = {
  path: z
    .string()
    .min(1)
    .describe(
      'Path of the file, relative to the configuration file; or an https address; or - for standard input',
    ),
  headers: headers.optional(),
  timeoutMs: whole(
    1,
    600_000,
    'Time-out while waiting for data from an address, in milliseconds; by default 30000',
  ).optional(),
  allowHttp: flag('Allows plain HTTP to another machine').optional(),
  finalNewline: z
    .enum(['required', 'optional'])
    .describe(
      'optional: the export does not have to end with a line break, but its last row must be complete',
    )
    .optional(),
};

export function refusePlacedFaults(value: PlacedOptions, context: z.core.$RefinementCtx): void {
  const { path, allowHttp = false } = value;
  if (placeOf(path) === 'address') {
    const mistake = addressFault(path, allowHttp);
    if (mistake) context.addIssue(issueOf(mistake, ['path']));
    return;
  }
  for (const field of ['headers', 'timeoutMs', 'allowHttp'] as const) {
    if (value[field] === undefined) continue;
    context.addIssue(issueOf(fault('belongs to an address', 'remove it'), [field]));
  }
}

export function fileReturnsOptions<T extends string>(type: T, what: string) {
  return z.strictObject({
    type: z.literal(type).describe(what),
    path: z.string().min(1).describe('Path of the file, relative to the configuration file'),
  });
}

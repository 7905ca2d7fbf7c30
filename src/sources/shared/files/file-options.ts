/** The YAML of a file as a source: where it lies, and what is said to get it from there. */
import { z } from 'zod';
import { placeOf } from '../../../domain/values/config-file.ts';
import { addressFault, headers } from '../web-address.ts';
import { flag, whole } from '../option-fields.ts';

export interface PlacedOptions {
  /** A path that is absolute, `-`, or an address. */
  path: string;
  headers?: Readonly<Record<string, string>> | undefined;
  timeoutMs?: number | undefined;
  allowHttp?: boolean | undefined;
  /** optional: a last line without a line break is whole all the same. */
  finalNewline?: 'required' | 'optional' | undefined;
}

export const placedShape = {
  path: z
    .string()
    .min(1)
    .describe(
      'Path of the file, relative to the configuration; or an https address; or -, standard input',
    ),
  headers: headers.optional(),
  timeoutMs: whole(
    1,
    600_000,
    'Longest silence of the host of an address, in milliseconds; 30000 if not said',
  ).optional(),
  allowHttp: flag('Allow an address without encryption that is not this machine').optional(),
  finalNewline: z
    .enum(['required', 'optional'])
    .describe(
      'optional: for an export that never ends with a line break; then its last row has to be whole',
    )
    .optional(),
};

/** Faults in how the fields fit together, each with the field it concerns. */
export function placedFaults(options: PlacedOptions): [field: string, message: string][] {
  const { path, allowHttp = false } = options;
  if (placeOf(path) === 'address') {
    const fault = addressFault(path, allowHttp);
    return fault === undefined ? [] : [['path', fault]];
  }
  return (['headers', 'timeoutMs', 'allowHttp'] as const).flatMap((field) =>
    options[field] === undefined ? [] : [[field, 'belongs to an address → remove it']],
  );
}

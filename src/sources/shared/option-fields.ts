import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { fault, flag, reporter, says, text, whole } from '../../domain/schema-fields.ts';
import { durationForm, isLoopback } from '../../domain/values/config-value.ts';
import { placeOf } from '../../domain/values/config-file.ts';

export const headerRow = whole(
  1,
  100,
  'Number of the row, or of the line, with the column names; those above it are ignored',
);

export const requestTimeout = (ms: number) =>
  whole(1, 600_000, 'Time-out of a request, in milliseconds').prefault(ms);

const noDuration = says('is not a duration', 'write a number from 1 and s, m, h or d: 2m');

/** Returns the schema of a duration that defaults to 2m. */
export const overlap = (what: string) =>
  z.string().regex(durationForm, noDuration).describe(what).default('2m');

const own = [
  'connection',
  'content-length',
  'expect',
  'host',
  'transfer-encoding',
  'upgrade',
  'user-agent',
];

export const headers = z
  .record(z.string(), z.string())
  .superRefine((given, context) => {
    const wrong = reporter(context);
    for (const [name, value] of Object.entries(given)) {
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) wrong(name, 'is no name of a header', 'correct it');
      else if (own.includes(name.toLowerCase()))
        wrong(name, 'is written by crm-mirror itself', 'remove it');
      else if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
        const why = 'is empty or holds what a header cannot carry';
        wrong(name, why, 'write it in plain letters, on one line');
      }
    }
  })
  .describe('Headers of every request; take secrets from the environment with ${NAME}');

/** Returns what is wrong with a web address, or undefined if it can be used. */
export function addressFault(address: string, allowHttp: boolean): Fault | undefined {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    return fault('is no web address', 'write https://HOST/…');
  if (url.username || url.password) return fault('holds a user or password', 'move it to headers');
  if (url.hash) return fault('holds a fragment', 'end it before the #');
  if (url.protocol === 'https:' || isLoopback(address) || allowHttp) return undefined;
  return fault('would send people and secrets unencrypted', 'use https, or add allowHttp: true');
}

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
  path: text(
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
  const wrong = reporter(context);
  if (placeOf(path) === 'address') return wrong('path', addressFault(path, allowHttp));
  for (const field of ['headers', 'timeoutMs', 'allowHttp'] as const)
    if (value[field] !== undefined) wrong(field, 'belongs to an address', 'remove it');
}

export function fileReturnsOptions<T extends string>(type: T, what: string) {
  return z.strictObject({
    type: z.literal(type).describe(what),
    path: text('Path of the file, relative to the configuration file'),
  });
}

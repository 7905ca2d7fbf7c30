import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { fault, issueOf, says } from '../../domain/schema-fault.ts';
import { durationForm, isLoopback, numeric, truth } from '../../domain/values/config-value.ts';

export const text = (what: string) => z.string().min(1).describe(what);

export const whole = (min: number, max: number, what: string) =>
  z.preprocess(numeric, z.number().int().min(min).max(max)).describe(what);

export const headerRow = whole(
  1,
  100,
  'Number of the row, or of the line, with the column names; those above it are ignored',
);

export const flag = (what: string) => z.preprocess(truth, z.boolean()).describe(what);

const noDuration = says('is not a duration', 'write a number from 1 and s, m, h or d: 2m');

/** Returns the schema of a duration that defaults to 2m. */
export const overlap = (what: string) =>
  z.string().regex(durationForm, noDuration).describe(what).default('2m');

/** Headers that the client sets itself. */
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
    for (const [name, value] of Object.entries(given)) {
      const wrong = (reason: string, fix: string) =>
        context.addIssue(issueOf(fault(reason, fix), [name]));
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) wrong('is no name of a header', 'correct it');
      else if (own.includes(name.toLowerCase()))
        wrong('is written by crm-mirror itself', 'remove it');
      else if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
        const why = 'is empty or holds what a header cannot carry';
        wrong(why, 'write it in plain letters, on one line');
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

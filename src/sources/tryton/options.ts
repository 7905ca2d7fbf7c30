import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { fault, issueOf } from '../../domain/schema-fault.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { flag, overlap, text, whole } from '../shared/option-fields.ts';

/** The options of this source. Relative paths are made absolute before the options are used. */
export const trytonOptions = z
  .strictObject({
    type: z.literal('tryton').describe('The parties of a Tryton database'),
    url: text('Address of the server: https://HOST or https://HOST:PORT'),
    database: text('Name of the database'),
    username: text('Login name of a user who can read parties, contact mechanisms and categories'),
    password: text('Password of the user; take it from the environment with ${NAME}').optional(),
    passwordFile: text('File that contains the password, instead of password').optional(),
    language: text(
      'Language of category names, such as de; by default the language of the database',
    ).optional(),
    overlap: overlap(
      'Length of the period before the last read for which changes are read again: 2m, 1h',
    ),
    timeoutMs: whole(1, 600_000, 'Time-out of a request, in milliseconds').prefault(60_000),
    allowHttp: flag('Allows plain HTTP to another machine').prefault(false),
  })
  .superRefine(({ url, password, passwordFile, allowHttp }, context) => {
    const wrong = (path: string, mistake: Fault | undefined) =>
      mistake && context.addIssue(issueOf(mistake, [path]));
    wrong('url', addressFault(url, allowHttp));
    if (password === undefined && passwordFile === undefined)
      wrong('password', fault('is missing', 'add it, or passwordFile'));
    if (password !== undefined && passwordFile !== undefined)
      wrong('passwordFile', fault('stands beside password', 'keep one of the two'));
  });
export type TrytonOptions = z.infer<typeof trytonOptions>;

function addressFault(address: string, allowHttp: boolean): Fault | undefined {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    return fault('is no web address', 'write https://HOST:PORT');
  if (url.username || url.password) {
    return fault('holds a user or password', 'move them to username and password');
  }
  if (url.pathname !== '/' || url.search || url.hash) {
    return fault(
      'holds more than a host',
      'end it before the path; the database has a field of its own',
    );
  }
  if (url.protocol === 'https:' || isLoopback(address) || allowHttp) return undefined;
  return fault(
    'would send people and the password unencrypted',
    'use https, or add allowHttp: true',
  );
}

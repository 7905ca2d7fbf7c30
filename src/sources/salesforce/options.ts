import { z } from 'zod';
import { reporter, says, text, whole } from '../../domain/schema-fields.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { requestTimeout } from '../shared/option-fields.ts';

const auth = z
  .strictObject({
    clientId: text('Consumer key of the app; take it from the environment with ${NAME}'),
    clientSecret: text('Consumer secret of the app, for the client credentials flow').optional(),
    username: text('User whose permissions apply, for the JWT bearer flow').optional(),
    privateKey: text('Private key in PEM format, instead of privateKeyFile').optional(),
    privateKeyFile: text(
      'File that contains the private key in PEM format, for the JWT bearer flow',
    ).optional(),
    audience: text(
      'Audience of the JWT; by default the login host for production or sandboxes',
    ).optional(),
  })
  .superRefine(({ clientSecret, clientId: _, ...others }, context) => {
    const wrong = reporter(context);
    const { username, privateKey, privateKeyFile } = others;
    if (clientSecret !== undefined) {
      for (const [field, value] of Object.entries(others)) {
        if (value === undefined) continue;
        wrong(field, 'stands beside clientSecret', 'keep one of the two ways');
      }
    } else if (username === undefined) {
      wrong('clientSecret', 'is missing', 'add it, or username and privateKeyFile');
    } else if (privateKey === undefined && privateKeyFile === undefined) {
      const fix = 'add it, or privateKey, whose certificate the app has';
      wrong('privateKeyFile', 'is missing', fix);
    } else if (privateKey !== undefined && privateKeyFile !== undefined) {
      wrong('privateKeyFile', 'stands beside privateKey', 'keep one of the two');
    }
  })
  .describe('Login: only clientSecret, or username and a private key');

/** The options of this source. Relative paths are made absolute before they are used. */
export const salesforceOptions = z
  .strictObject({
    type: z.literal('salesforce').describe('The contacts and leads of a Salesforce organization'),
    url: text('Address of the organization (My Domain): https://acme.my.salesforce.com'),
    auth,
    objects: z
      .array(z.enum(['Contact', 'Lead']))
      .min(1)
      .refine((names) => new Set(names).size === names.length, says('names one twice', 'remove it'))
      .describe('Objects to read: Contact, Lead or both')
      .default(['Contact']),
    where: text('SOQL condition; records that do not match it are not read').optional(),
    version: z
      .string()
      .regex(/^v\d{2}\.0$/, says('is no version of the API', 'write one such as v62.0'))
      .describe('Version of the Salesforce API')
      .default('v62.0'),
    overlap: z
      .string()
      .regex(/^[1-9]\d{0,3}[smh]$/, says('is not a duration', 'write a number and s, m or h: 2m'))
      .describe(
        'Length of the period before the last read for which changes are read again: 2m, 1h',
      )
      .default('2m'),
    bulkAbove: whole(
      1,
      1_000_000_000,
      'Number of records above which an object is read with the Bulk API',
    ).prefault(50_000),
    timeoutMs: requestTimeout(120_000),
  })
  .superRefine(({ url: address }, context) => {
    const wrong = (reason: string, fix: string) => reporter(context)('url', reason, fix);
    const url = URL.parse(address);
    const example = 'write https://acme.my.salesforce.com';
    if (!url || !/^https?:$/.test(url.protocol)) wrong('is no web address', example);
    else if (url.username || url.password) wrong('holds a user or password', 'move it to auth');
    else if (url.hostname.endsWith('.lightning.force.com'))
      wrong('is the address of its pages', `${example}, as Setup shows it at My Domain`);
    else if (url.pathname !== '/' || url.search || url.hash)
      wrong('is more than the address of the organization', example);
    else if (url.protocol !== 'https:' && !isLoopback(address))
      wrong('would send people and secrets unencrypted', 'use https');
  });
export type SalesforceOptions = z.infer<typeof salesforceOptions>;

/** The options for reporting opt-outs. The organization and the access are those of the source. */
export const salesforceReturnsOptions = z.strictObject({
  type: z
    .literal('salesforce')
    .describe('Changes records in the Salesforce organization of the source'),
  fields: z
    .record(
      z.string(),
      z
        .string()
        .regex(/^[A-Za-z]\w{0,79}$/, says('is no name of a field', 'write one: Newsletter__c')),
    )
    .describe(
      'For each channel, the checkbox that is set to false; other channels are not reported',
    )
    .optional(),
});
export type SalesforceReturnsOptions = z.infer<typeof salesforceReturnsOptions>;

/** The YAML of when a worker runs, and of the Redis it does so by. */
import { z } from 'zod';
import { isReadable } from './platform-address.ts';
import { isPattern, isTimeZone } from './cron-pattern.ts';

const noPattern =
  'is no cron pattern → write five fields (minute hour day month weekday), or six with seconds before them';
const cron = (what: string) =>
  z
    .string()
    .refine(isPattern, noPattern)
    .nullable()
    .describe(`${what}: a cron pattern, with seconds where it has six fields`)
    .optional();
const noZone = 'is no time zone → write one such as Europe/Berlin, or UTC';
export const schedule = z
  .strictObject({
    full: cron('Full runs'),
    fast: cron('Fast runs'),
    templates: cron('Templates'),
    sentinel: cron('A look whether anybody left all mail, by one request'),
    timezone: z
      .string()
      .refine(isTimeZone, noZone)
      .describe('Time zone of the patterns, by its IANA name')
      .default('UTC'),
  })
  .describe('When the worker runs');

const noRedis =
  'is no address of a Redis → write redis://HOST:PORT, or rediss:// with encryption; a % in a password as %25';
export const redis = z
  .string()
  .regex(/^rediss?:\/\/[^\s/]/, { error: noRedis, abort: true })
  .refine((url) => URL.canParse(url) && isReadable(url), noRedis)
  .describe('Address of the Redis through which several processes share every limit');

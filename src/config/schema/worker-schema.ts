/** Defines the schema of what only a worker uses: schedules, Redis, its server and events. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { reporter, says, text, whole } from '../../domain/schema-fields.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { isPattern, isTimeZone } from './cron-pattern.ts';
import { onMapping, secret } from './field-types.ts';

const noPattern = says(
  'is no cron pattern',
  'write five fields (minute hour day month weekday), or six with seconds before them',
);
const cron = (what: string) =>
  z
    .string()
    .refine(isPattern, noPattern)
    .nullable()
    .describe(
      `${what}: a cron pattern with five fields, or six with seconds; H: a time of the mirror's own`,
    )
    .optional();
const noZone = says('is no time zone', 'write one such as Europe/Berlin, or UTC');

export const timeZone = (what: string) => z.string().refine(isTimeZone, noZone).describe(what);

export const schedule = z
  .strictObject({
    full: cron('Full runs'),
    fast: cron('Fast runs'),
    templates: cron('Runs for templates only'),
    sentinel: cron('Checks for people who unsubscribed from all mail, one request each'),
    timezone: timeZone('Time zone of the patterns: an IANA name such as Europe/Berlin').default(
      'UTC',
    ),
  })
  .describe('When the worker starts runs');

const noRedis = says(
  'is no address of a Redis',
  'write redis://HOST:PORT, or rediss:// with encryption; a % in a password as %25',
);
export const redis = z
  .string()
  .regex(/^rediss?:\/\/[^\s/]/, { ...noRedis, abort: true })
  .refine((text) => {
    const url = URL.parse(text);
    try {
      // A literal % must be written as %25.
      return url !== null && decodeURIComponent(`${url.username} ${url.password}`) !== '';
    } catch {
      return false;
    }
  }, noRedis)
  .describe(
    'Address of Redis: required by the worker; several processes share rate limits through it',
  );

const noBase = says('is no web address', 'write https://HOST, as the CRM calls it');
const noAddress = says('is no IP address', 'write it as the connection shows it: 10.0.0.7');

export const server = z
  .strictObject({
    host: text('Address to listen on').default('127.0.0.1'),
    port: whole(0, 65_535, 'Port to listen on').prefault(8080),
    token: secret('Token required for all requests except health checks and webhooks').optional(),
    publicUrl: z
      .string()
      .refine((text) => {
        const url = URL.parse(text);
        return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
      }, noBase)
      .transform((url) => url.replace(/\/+$/, ''))
      .describe(
        'Public address of this server behind a proxy: for webhooks, links in notifications and cookies',
      )
      .optional(),
    users: text('File of the users of the console; without it, the console only shows').optional(),
    proxyUser: z
      .strictObject({
        header: text('Header in which the proxy names the user that it has signed in'),
        from: z.array(z.string()).min(1).describe('Addresses of the proxy'),
        operators: z
          .array(z.string())
          .default([])
          .describe('Users who may act; all others only look'),
      })
      .describe('Users whom a proxy signs in, for example with OpenID Connect')
      .optional(),
    proxies: z
      .array(z.string().refine((address) => isIP(address) !== 0, noAddress))
      .describe('IP addresses of proxies in front: their X-Forwarded-For says who signs in')
      .optional(),
    viewersSeeAddresses: z
      .boolean()
      .describe('Names people by their address to viewers too; operators always see it')
      .default(false),
  })
  .superRefine(({ publicUrl = '', users, proxyUser }, context) => {
    const path = URL.parse(publicUrl)?.pathname ?? '/';
    if (path === '/' || (users === undefined && proxyUser === undefined)) return;
    const fix = 'give the console a host name of its own, and write https://HOST';
    const reason = `has the path ${path}, and the links of the console begin at /`;
    reporter(context)('publicUrl', reason, fix);
  }, onMapping)
  .superRefine(({ host, token }, context) => {
    // A host of another type is refused elsewhere.
    if (token !== undefined || typeof host !== 'string') return;
    if (isLoopback(`http://${host.includes(':') ? `[${host}]` : host}`)) return;
    const fix = 'add token: ${OPS_TOKEN}, or use host: 127.0.0.1';
    reporter(context)('token', 'is missing, and host is not this machine alone', fix);
  }, onMapping)
  .describe("The worker's HTTP server: health, metrics, console, webhooks");

/** The schema of `contacts.webhook`: how events are signed, and where they name a record. */
export const webhook = z
  .strictObject({
    format: z.enum(['standard', 'hubspot']).describe('How the CRM signs its events'),
    secret: secret('Secret with which the CRM signs its events'),
    id: text(
      'Dotted path in an event to the id of the CRM record; by default data.id, or objectId for hubspot',
    ).optional(),
  })
  .superRefine(({ format, secret: given }, context) => {
    if (format !== 'standard' || typeof given !== 'string' || isBase64(given)) return;
    const fix = 'copy it as the sender shows it: whsec_ and then base64';
    reporter(context)('secret', 'is no secret of Standard Webhooks', fix);
  }, onMapping)
  .transform(({ id, ...rest }) => ({ ...rest, id: id ?? ids[rest.format] }))
  .describe('Events from the CRM; each one updates a single person immediately');

const ids = { standard: 'data.id', hubspot: 'objectId' };

/** Returns whether a text is a Standard Webhooks secret, with or without `whsec_`. */
export function isBase64(given: string): boolean {
  const text = given.replace(/^whsec_/, '');
  return (
    text !== '' && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
  );
}

/** Defines the schema of `notices`: where problems with a mirror are reported, and which. */
import { z } from 'zod';
import { choice, reporter, says, text } from '../../domain/schema-fields.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { mailbox, noAddress, onMapping, secret } from './field-types.ts';
import { isBase64 } from './worker-schema.ts';

/** The problems that are reported, in this order. */
export const troubles = [
  'unreadable',
  'held',
  'opt_outs',
  'quarantined',
  'failed',
  'stale',
  'alert',
] as const;

export type Trouble = (typeof troubles)[number];

export const troubleLevels: Readonly<Record<Trouble, 'warning' | 'error'>> = {
  unreadable: 'error',
  held: 'warning',
  opt_outs: 'warning',
  quarantined: 'error',
  failed: 'error',
  stale: 'error',
  alert: 'warning',
};

const noUrl = says('is no web address', 'write https://HOST/PATH');
const unsafe = says('would send it unencrypted', 'use https');
const address = (what: string) =>
  z
    .string()
    .refine(
      (given) => {
        const url = URL.parse(given);
        return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === '';
      },
      { ...noUrl, abort: true },
    )
    .refine((url) => URL.parse(url)?.protocol !== 'http:' || isLoopback(url), unsafe)
    .describe(what);

const signingMeaning = 'Secret for the signature, in the format of Standard Webhooks';
const signing = secret(signingMeaning).refine(
  (it) => it === '' || isBase64(it),
  says(
    'is no secret of Standard Webhooks',
    'write whsec_ and then base64 (openssl rand -base64 32)',
  ),
);

const sender = /^(?:[^<>@,;"\r\n]*<[^\s<>@,;"]+@[^\s<>@,;"]+>|[^\s<>@,;"]+@[^\s<>@,;"]+)$/;

const email = z
  .strictObject({
    smtp: z
      .string()
      .refine(
        (given) =>
          /^smtps?:\/\/[^/?#@]+\/?$/i.test(given) &&
          /^smtps?:$/.test(URL.parse(given)?.protocol ?? ''),
        says(
          'is no address of a mail server',
          'write smtps://HOST, or smtp://HOST:587 for STARTTLS; user and password are keys of their own',
        ),
      )
      .describe('Mail server: smtps://HOST, or smtp://HOST:587, which must offer STARTTLS'),
    user: text('User at the mail server').optional(),
    password: text('Password of this user').optional(),
    from: z.string().regex(sender, noAddress).describe('Sender, also in the form NAME <ADDRESS>'),
    to: z.array(z.string().regex(mailbox, noAddress)).min(1).describe('Recipients'),
  })
  .superRefine(({ user, password }, context) => {
    if ((user === undefined) === (password === undefined)) return;
    const [is, lacks] = user === undefined ? ['password', 'user'] : ['user', 'password'];
    reporter(context)(lacks, `is missing, and there is a ${is}`, `add ${lacks}, or remove ${is}`);
  }, onMapping)
  .describe('Sends an e-mail');

const receiverKinds = ['slack', 'teams', 'ntfy', 'email', 'webhook'] as const;
export type ReceiverKind = (typeof receiverKinds)[number];

const receiver = z
  .strictObject({
    slack: z
      .strictObject({ url: address('URL of an incoming webhook of Slack') })
      .describe('Posts to Slack')
      .optional(),
    teams: z
      .strictObject({ url: address('URL of a workflow of Teams that posts what it is sent') })
      .describe('Posts to Microsoft Teams')
      .optional(),
    ntfy: z
      .strictObject({
        url: address('URL of a topic: https://ntfy.sh/TOPIC'),
        token: secret('Access token, if the topic needs one').optional(),
      })
      .describe('Publishes to a topic of ntfy')
      .optional(),
    email: email.optional(),
    webhook: z
      .strictObject({ url: address('Address of your own program'), secret: signing })
      .describe('Sends the signed JSON, as url and secret do')
      .optional(),
    name: z
      .string()
      .regex(/^[a-z0-9-]{1,40}$/, says('is no name', 'use 1 to 40 of a-z, 0-9 and -'))
      .describe('Name, under which is stored what it was told; by default the kind')
      .optional(),
    events: z
      .array(z.enum(troubles))
      .min(1)
      .describe('Reports only these problems, and their ends')
      .optional(),
    level: choice(['warning', 'error'], 'warning', 'error leaves out problems that are warnings'),
  })
  .superRefine((entry, context) => {
    const named = receiverKinds.filter((kind) => entry[kind] !== undefined);
    if (named.length === 1) return;
    const fix = 'write one of them, and a further entry for another receiver';
    reporter(context)([], `has to name one of ${receiverKinds.join(', ')}`, fix);
  }, onMapping);

export type Receiver = z.output<typeof receiver>;

/** Returns the kind of a receiver, which names exactly one. */
export function kindOf(entry: Receiver): ReceiverKind {
  return receiverKinds.find((kind) => entry[kind] !== undefined) ?? 'webhook';
}

/** Returns the name of a receiver: its kind unless it has its own. */
export function nameOf(entry: Receiver): string {
  return entry.name ?? kindOf(entry);
}

export const notices = z
  .strictObject({
    url: address('Address to which the signed JSON is sent').optional(),
    secret: signing.optional(),
    to: z.array(receiver).min(1).describe('Further receivers').optional(),
  })
  .superRefine((given, context) => {
    const wrong = reporter(context);
    const { url, secret: key, to } = given;
    if (url === undefined && key === undefined) {
      if (to === undefined) wrong('to', 'is missing, and so is url', 'list at least one receiver');
    } else if (url === undefined)
      wrong('url', 'is missing', 'add "url: …" (Address to which notifications are sent)');
    else if (key === undefined)
      wrong('secret', 'is missing', `add "secret: …" (${signingMeaning})`);
    if (!Array.isArray(to)) return;
    const names = new Set(url === undefined ? [] : ['webhook']);
    for (const [at, entry] of to.entries()) {
      // An entry of another type is refused elsewhere.
      if (typeof entry !== 'object' || entry === null) continue;
      const name = nameOf(entry);
      const fix = 'give it a name of its own: name: …';
      if (names.has(name)) wrong(['to', at], 'has the name of another receiver', fix);
      names.add(name);
    }
  }, onMapping)
  .describe('Where problems with the mirror are reported, and when they are solved');

/** The schema of the configuration file, with the descriptions that editors show. */
import { z } from 'zod';
import {
  choice,
  fault,
  flag,
  number,
  reporter,
  requireOne,
  says,
  text,
  whole,
} from '../../domain/schema-fields.ts';
import { byGuardKey, type Guard } from '../../domain/guard-classes.ts';
import { isRecord } from '../../domain/values/record-field.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { delay, duration, onMapping, percent, readText, secret } from './field-types.ts';
import { contacts, templates } from './records-schema.ts';
import { rules } from './rule-condition.ts';
import { notices } from './notices-schema.ts';
import { redis, schedule, server, timeZone } from './worker-schema.ts';
import { isPrivateKey, publicKeyIn } from '../../domain/values/ed25519-key.ts';
import { hoursOf, type WeeklyHours } from '../../domain/guards/change-window.ts';
import { askedClasses } from '../../domain/guards/plan-rule.ts';

const bound = (what: string) => percent(`Percentage of the canary ${what}`).prefault(5);

const canary = z
  .strictObject({
    percent: percent(
      'Percentage of the people or templates of a class that are changed first',
    ).prefault(2),
    floor: whole(
      1,
      1_000_000,
      'The least number of people in a canary; no more than that need none',
    ).prefault(25),
    wait: duration('Time after which the canary is read back').default('30m'),
    bounds: z
      .strictObject({
        unsubscribed: bound('that may unsubscribe, or receive no mail, in the meantime'),
        refused: bound('whose change the platform may refuse'),
        drift: bound('for whom the platform may not show what was written'),
      })
      .prefault({})
      .describe('Above one of these, the rest awaits approval'),
  })
  .describe(
    'After a change of the mapping, in a first load and when many templates change: some are changed first, and the rest waits for them',
  );

const publicKey = z
  .string()
  .transform((text, context) => {
    const key = publicKeyIn(text);
    if (key !== undefined) return key;
    const mistake = isPrivateKey(text)
      ? fault(
          'is a private key, which only its owner may have',
          'make a new key with `crm-mirror approve --new-key FILE`, and write the public key here',
        )
      : fault(
          'is no public Ed25519 key (base64 or PEM)',
          'write what `crm-mirror approve --new-key FILE` prints',
        );
    reporter(context)([], mistake);
    return z.NEVER;
  })
  .describe('Public key of an approver: Ed25519, base64 (SPKI) or PEM');

/** The schema of `policy.approvers`. In its output, all keys are base64. */
export const approvers = z
  .strictObject({
    need: whole(1, 20, 'How many of them have to sign the same changes'),
    keys: z
      .record(
        z
          .string()
          .regex(
            /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}$/,
            says('is no name of an approver', 'use 1 to 40 letters, digits, spaces, dots, - and _'),
          ),
        publicKey,
      )
      .describe('The public key of each approver, by name'),
  })
  .superRefine(({ need, keys }, context) => {
    const wrong = reporter(context);
    const all = Object.entries(keys);
    if (need > all.length) wrong('need', 'is more than there are keys', 'lower it, or add keys');
    for (const [at, [own, key]] of all.entries()) {
      const other = all.slice(0, at).find(([, one]) => one === key)?.[0];
      if (other === undefined) continue;
      wrong(['keys', own], `is also the key of ${other}`, 'give each approver an own key');
    }
  })
  .describe('Who signs approvals');

const windows = z
  .array(
    z
      .strictObject({
        allow: readText<WeeklyHours[]>(
          "Days and hours: 'Mon-Fri 08:00-18:00', 'Sat,Sun 10:00-12:00' or '22:00-06:00', several with ;",
          hoursOf,
        ),
        for: z
          .array(z.enum(askedClasses))
          .min(1)
          .describe('The classes of changes that are made only then; by default all three')
          .optional(),
        timezone: timeZone(
          'Time zone of the hours: an IANA name; by default that of the schedule',
        ).optional(),
      })
      .describe('Hours in which classes of changes are made'),
  )
  .describe('Hours outside of which classes of changes wait for a later run');

const requests = z
  .strictObject({
    log: choice(
      ['on', 'off'],
      'on',
      'off: no requests are logged, and the next run deletes the log',
    ),
    keep: duration('How long requests are kept').default('14d'),
    size: z
      .string()
      .regex(/^[1-9]\d{0,4}[MG]B$/, says('is no size', 'write a number and MB or GB: 100MB'))
      .describe('Maximum size of the log; the oldest requests are dropped first')
      .default('100MB'),
  })
  .describe('The log of requests to the platform');

const alerts = z
  .strictObject({
    refused: percent('Percentage of the changes of a run that the platform refuses').optional(),
    runTime: duration('How long a run takes').optional(),
    proofAge: duration(
      'Time since the last full run that ended well began; by default 36 hours and two runs of the schedule',
    ).optional(),
    deviation: number(
      1,
      100,
      'How many times further from the median a run is than the 30 before it, in changes',
    ).optional(),
  })
  .describe('Values above which a mirror needs attention');

/** The platform's URL, to which a path can be appended. The output has no trailing slash. */
const address = z
  .string()
  .superRefine((text, context) => {
    const wrong = (reason: string, fix: string) => reporter(context)([], reason, fix);
    const url = URL.parse(text.trim());
    if (!url || !/^https?:$/.test(url.protocol)) wrong('is no web address', 'write https://HOST');
    else if (url.username || url.password)
      wrong('holds a user or password', 'move the key to apiKey');
    else if (/[?#]/.test(text)) wrong('holds a query or fragment', 'end it before the ? or #');
  })
  .transform((text) => {
    const url = new URL(text);
    return url.origin + url.pathname.replace(/\/+$/, '');
  });

const platform = z
  .strictObject({
    url: address.describe('Address of the platform: https, with a base path if it has one'),
    apiKey: secret(
      'API key of the organization; take it from the environment with ${NAME}',
    ).optional(),
    apiKeyFile: text('File that contains the API key, instead of apiKey').optional(),
    timeoutMs: whole(1, 600_000, 'Time-out of a request, in milliseconds').prefault(10_000),
    reserve: number(
      0,
      0.9,
      'Share of each rate limit that is left to other programs of the organization',
    ).prefault(0.1),
    allowHttp: flag('Allows plain HTTP to another machine').prefault(false),
  })
  .superRefine((value, context) => {
    requireOne(context, value, 'apiKey', 'apiKeyFile');
    if (!/^http:/i.test(value.url) || isLoopback(value.url) || value.allowHttp) return;
    const fix = 'use https, or add allowHttp: true';
    reporter(context)('url', 'would send the key unencrypted', fix);
  }, onMapping)
  .describe('The email platform: its address and its key');

const policy = z
  .strictObject({
    absent: choice(
      ['keep', 'opt_out'],
      'opt_out',
      'What to do with contacts of this mirror that are missing from the CRM: keep leaves them subscribed, opt_out opts them out',
    ),
    deletes: choice(
      ['off', 'created', 'owned'],
      'off',
      'Which contacts are deleted on the platform if they are missing from the CRM: none, those that this mirror created, or all that it owns',
    ),
    deleteAfter: delay(
      'Time from the opt-out of a missing person to the deletion. 0s means immediately. People with a' +
        ' deletion flag in the CRM do not wait',
    ).default('30d'),
    optIns: choice(
      ['on', 'off'],
      'on',
      'off: no contact is created or opted in; opt-outs, deletes and templates continue',
    ),
    resubscribe: choice(
      ['never', 'newer'],
      'never',
      'Whether a newer consent in the CRM overrides an opt-out on the platform',
    ),
    missing: choice(
      ['respect', 'recreate'],
      'respect',
      'What to do if a contact of this mirror was deleted on the platform: respect leaves it deleted, recreate creates it again',
    ),
    templates: choice(
      ['keep', 'overwrite'],
      'keep',
      'What to do with a template that was edited on the platform',
    ),
    absentTemplates: choice(
      ['keep', 'archive'],
      'keep',
      'What to do with a template of this mirror that is missing from its source',
    ),
    approvers: approvers.optional(),
    canary: canary.optional(),
  })
  .describe('What to do if the CRM and the platform disagree');

function limit({ defaults, words: { schema } }: Guard): z.ZodType<Guard['defaults']> {
  const { percent: share, floor, holdFor } = defaults;
  const least = 'Minimum of the limit, whatever the percentage';
  const both = z.strictObject({
    percent: percent(`Limit as a percentage of ${schema.of}`).prefault(share),
    floor: whole(0, 1_000_000_000, least).prefault(floor),
  });
  if (holdFor === undefined) return both.describe(schema.what);
  const timed = duration('Time after which the opt-outs are applied without approval');
  return both.extend({ holdFor: timed.default(holdFor) }).describe(schema.what);
}

const guards = z
  .strictObject({
    ...byGuardKey((guard) => limit(guard).prefault({})),
    absentReadings: whole(
      1,
      100,
      'Number of complete exports from which a person must be missing',
    ).prefault(2),
    absentFor: delay(
      'Minimum time between the first and the last of these exports; 0s for none',
    ).default('20h'),
  })
  .describe('Limits above which changes of a run need approval');

const audit = z
  .strictObject({ keep: duration('How long the audit log keeps its entries').default('1095d') })
  .describe('The audit log: who allowed what, and what was sent');

/** The schema of the file. Its output has defaults; paths and durations are still text. */
export const fileSchema = z
  .strictObject({
    mirror: z
      .string()
      .regex(/^[a-z0-9-]{1,40}$/, says('is no mirror name', 'use 1 to 40 of a-z, 0-9 and -'))
      .describe('Name of the mirror: 1 to 40 characters of a-z, 0-9 and -'),
    snapshot: text('Path of the snapshot file, relative to the configuration file'),
    memoryKeyFile: text(
      'File of the key of the memory (do-not-contact list, audit log, request log), created at first use; by default beside the snapshot',
    ).optional(),
    platform,
    contacts: contacts.optional(),
    templates: templates.optional(),
    policy: policy.prefault({}),
    guards: guards.prefault({}),
    rules: rules.default([]),
    windows: windows.default([]),
    keep: duration('How long the snapshot keeps runs and their changes').default('90d'),
    audit: audit.prefault({}),
    requests: requests.prefault({}),
    schedule: schedule.optional(),
    redis: redis.optional(),
    server: server.optional(),
    notices: notices.optional(),
    alerts: alerts.prefault({}),
  })
  .superRefine(({ schedule: due, contacts: people, templates: letters, policy }, context) => {
    const wrong = reporter(context);
    if (people === undefined && letters === undefined)
      wrong('contacts', 'is missing, and so is templates', 'add at least one of the two');
    if (due?.sentinel && people === undefined) {
      const reason = 'checks for unsubscribed contacts, and there are no contacts';
      wrong(['schedule', 'sentinel'], reason, 'remove it, or add contacts');
    }
    if (policy?.resubscribe === 'newer' && people && people.consentAt === undefined) {
      const fix = 'name the column, or set it to never';
      wrong(['policy', 'resubscribe'], 'newer needs contacts.consentAt', fix);
    }
    // A source may be invalid.
    const isInput = (source: unknown) => isRecord(source) && source['path'] === '-';
    if (isInput(people?.source) && isInput(letters?.source)) {
      const reason = 'is standard input, which the people come from';
      wrong(['templates', 'source', 'path'], reason, 'name a file');
    }
  }, onMapping)
  .meta({
    title: 'Configuration of one crm-mirror',
    description: 'One mirror: an organization on the email platform that is kept equal to its CRM',
  });

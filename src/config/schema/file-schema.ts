/**
 * The configuration file as a schema: what may stand where, in words an editor shows (README,
 * configuration). Own messages read "what is wrong → how to mend it".
 */
import { z } from 'zod';
import { delayForm, durationForm, isLoopback, truth } from '../../domain/values/config-value.ts';
import { csvOptions } from '../../sources/csv/options.ts';
import { directoryOptions } from '../../sources/directory/options.ts';
import { httpOptions } from '../../sources/http/options.ts';
import { hubspotOptions } from '../../sources/hubspot/options.ts';
import { ndjsonOptions } from '../../sources/ndjson/options.ts';
import { salesforceOptions } from '../../sources/salesforce/options.ts';
import { sqlOptions } from '../../sources/sql/options.ts';
import { trytonOptions } from '../../sources/tryton/options.ts';
import { address } from './platform-address.ts';
import { protect } from './protect-schema.ts';
import { condition } from './cel-condition.ts';
import { number, onMapping, secret, text, whole } from './field-types.ts';
import { notices } from './notification-schema.ts';
import { returns, returnsFaults } from './write-back-schema.ts';
import { redis, schedule } from './schedule-schema.ts';
import { server } from './server-schema.ts';
import { readsOne, webhook } from './webhook-schema.ts';
import { flagWords, subscriptionWords } from './word-schema.ts';

const flag = (what: string) => z.preprocess(truth, z.boolean()).describe(what);
const field = (what: string) => text(`Column or dotted path of the CRM record: ${what}`);
const duration = (what: string) =>
  z
    .string()
    .regex(durationForm, {
      error: ({ input }) =>
        /^0+[smhd]$/.test(String(input))
          ? 'must be greater than 0 → write 1s or more'
          : 'is not a duration → write a number and s, m, h or d: 90d',
    })
    .describe(what);
/** A duration that may be 0s. */
const delay = (what: string) =>
  z
    .string()
    .regex(delayForm, 'is not a duration → write a number and s, m, h or d: 90d, or 0s')
    .describe(what);
const otherwise = '; or with words of its own; or a condition';
const flagged = (what: string) =>
  z
    .union([
      field(`yes when ${what}`),
      z.strictObject({ when: condition(false, `true when ${what}`) }),
      flagWords,
    ])
    .describe(`Column or dotted path of the CRM record: yes when ${what}${otherwise}`);

/** Of what may be no source at all. */
function isInput(source: unknown): boolean {
  const hasPath = typeof source === 'object' && source !== null && 'path' in source;
  return hasPath && source.path === '-';
}

const onList = { when: ({ value }: { value: unknown }) => Array.isArray(value) };

const platform = z
  .strictObject({
    url: address.describe('Address of the platform: https, with its base path if it has one'),
    apiKey: secret('Key of the organization; better ${NAME} than in the file').optional(),
    apiKeyFile: text('File that holds the key, instead of apiKey').optional(),
    timeoutMs: number(whole(1, 600_000), 'Longest wait for one request, in milliseconds').prefault(
      10_000,
    ),
    reserve: number(
      z.number().min(0).max(0.9),
      "Share of each route's budget left to other programs of the organization",
    ).prefault(0.1),
    allowHttp: flag('Allow an address without encryption that is not this machine').prefault(false),
  })
  .superRefine((value, context) => {
    const wrong = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (value.apiKey === undefined && value.apiKeyFile === undefined)
      wrong('apiKey', 'is missing → add it, or apiKeyFile');
    if (value.apiKey !== undefined && value.apiKeyFile !== undefined)
      wrong('apiKeyFile', 'stands beside apiKey → keep one of the two');
    if (/^http:/i.test(value.url) && !isLoopback(value.url) && !value.allowHttp)
      wrong('url', 'would send the key unencrypted → use https, or add allowHttp: true');
  }, onMapping)
  .describe('The email platform: where it is and how to get in');

const channel = z
  .strictObject({
    id: text('Id of the channel on the platform'),
    name: text('What people call it, in messages').optional(),
    subscription: z
      .union([
        field('what this person wants of the channel'),
        z.strictObject({
          when: condition(true, 'true opts in, false opts out, null does neither'),
        }),
        subscriptionWords,
      ])
      .describe(
        `Column or dotted path of the CRM record: what this person wants of the channel${otherwise}`,
      ),
    replaces: text(
      'Id of a channel this one took over from: who left that one is not opted in here',
    ).optional(),
  })
  .describe('id and subscription of one channel');

/** Of an entry that may be no channel at all. */
function idOf(entry: unknown): unknown {
  return typeof entry === 'object' && entry !== null && 'id' in entry ? entry.id : undefined;
}

function replacedBy(entry: unknown): unknown {
  const replaces = typeof entry === 'object' && entry !== null && 'replaces' in entry;
  return replaces ? entry.replaces : undefined;
}

const channels = z
  .array(channel)
  .min(1)
  .superRefine((list, context) => {
    const ids = list.map(idOf);
    for (const [index, id] of ids.entries()) {
      if (id === undefined || ids.indexOf(id) === index) continue;
      const message = 'is the id of an earlier channel too → keep one of the two';
      context.addIssue({ code: 'custom', path: [index, 'id'], message });
    }
    for (const [index, replaced] of list.map(replacedBy).entries()) {
      if (replaced === undefined || !ids.includes(replaced)) continue;
      const message =
        ids[index] === replaced
          ? 'names the channel itself → name the one it took over from'
          : 'names a channel that is kept equal itself → remove that one from the list, or this';
      context.addIssue({ code: 'custom', path: [index, 'replaces'], message });
    }
  }, onList)
  .describe('The channels to keep equal, at least one');

/** Where a source says itself what tells its records apart. */
const ids: Readonly<Record<string, string>> = { hubspot: 'id', salesforce: 'Id', tryton: 'id' };

const contacts = z
  .strictObject({
    source: z
      .discriminatedUnion('type', [
        csvOptions,
        ndjsonOptions,
        httpOptions,
        hubspotOptions,
        salesforceOptions,
        sqlOptions,
        trytonOptions,
      ])
      .describe('Where the CRM records come from'),
    map: text('A module that each record goes through first: TypeScript or JavaScript').optional(),
    id: field('its stable id'),
    email: field('the email address'),
    deleted: flagged('the CRM says this person is gone').optional(),
    unsubscribed: flagged('this person wants no mail at all').optional(),
    consentAt: field('when this person last stated their will (ISO 8601)').optional(),
    include: condition(false, 'false takes it out of scope').optional(),
    protect: protect.optional(),
    channels,
    webhook: webhook.optional(),
    returns: returns.optional(),
  })
  .superRefine((given, context) => {
    for (const [path, message] of returnsFaults(given))
      context.addIssue({ code: 'custom', path: ['returns', ...path], message });
  }, onMapping)
  .superRefine(({ source, webhook: events }, context) => {
    if (events === undefined || source === undefined || readsOne(source)) return;
    const message =
      'needs a source that reads a single record → use http with `one`, hubspot, salesforce, sql or tryton, or remove it';
    context.addIssue({ code: 'custom', path: ['webhook'], message });
  }, onMapping)
  .superRefine(({ source, id }, context) => {
    const given = ids[source?.type ?? ''];
    if (given === undefined || id === undefined || id === given) return;
    const message = `is not what tells its records apart → write ${given}, and nothing else`;
    context.addIssue({ code: 'custom', path: ['id'], message });
  }, onMapping)
  .describe('The people to keep equal');

const templates = z
  .strictObject({
    source: z
      .discriminatedUnion('type', [directoryOptions, ndjsonOptions, httpOptions])
      .describe('Where the templates come from'),
  })
  .describe('The templates to keep equal');

const policy = z
  .strictObject({
    absent: z
      .enum(['keep', 'opt_out'])
      .default('opt_out')
      .describe('People we own who left the CRM: opt them out, or leave them subscribed'),
    deletes: z
      .enum(['off', 'created', 'owned'])
      .default('off')
      .describe('Whether people who left the CRM are deleted on the platform'),
    deleteAfter: delay(
      'Time from the opt-out of people who left the CRM to their deletion; 0s: at once, as people' +
        ' are whom the CRM flags as deleted',
    ).default('30d'),
    optIns: z
      .enum(['on', 'off'])
      .default('on')
      .describe('off: nobody is created or opted in; opt-outs, deletes and templates go on'),
    resubscribe: z
      .enum(['never', 'newer'])
      .default('never')
      .describe('Whether a newer consent in the CRM outweighs an opt-out on the platform'),
    missing: z
      .enum(['respect', 'recreate'])
      .default('respect')
      .describe('A person we own who vanished on the platform'),
    templates: z
      .enum(['keep', 'overwrite'])
      .default('keep')
      .describe('A template that was edited on the platform'),
    absentTemplates: z
      .enum(['keep', 'archive'])
      .default('keep')
      .describe('A template we own that its source no longer has'),
  })
  .describe('What to do where both sides disagree');

const limit = (what: string, of: string, [percent, floor]: [number, number]) =>
  z
    .strictObject({
      percent: number(z.number().min(0).max(100), `Percent of ${of}`).prefault(percent),
      floor: number(whole(0, 1_000_000_000), 'Never held below this many').prefault(floor),
    })
    .describe(what);

const guards = z
  .strictObject({
    deletes: limit('Deletes and opt-outs for absence', 'the owned people', [10, 10]).prefault({}),
    optIns: limit('Opt-ins and creations', 'the people the CRM wants', [20, 100]).prefault({}),
    optOuts: limit('Opt-outs that the CRM states', 'the people subscribed', [30, 20])
      .extend({ holdFor: duration('After that: applied without approval').default('72h') })
      .prefault({}),
    templates: limit('Changes of templates', 'the owned templates', [20, 3]).prefault({}),
    absentReadings: number(whole(1, 100), 'Readings in which a person must be missing').prefault(2),
    absentFor: delay('Least time between the first and the last of them; 0s: none').default('20h'),
  })
  .describe('What is held until a person approves it');

/** The whole file. Its output has the defaults filled in; paths and durations are still text. */
export const fileSchema = z
  .strictObject({
    mirror: z
      .string()
      .regex(/^[a-z0-9-]{1,40}$/, 'is no mirror name → use 1 to 40 of a-z, 0-9 and -')
      .describe('Name of the mirror, 1 to 40 of a-z, 0-9 and -'),
    snapshot: text('File of the snapshot; relative paths are relative to this file'),
    ledgerKeyFile: text(
      'File of the key of the ledger, made at first use; without it beside the snapshot',
    ).optional(),
    platform,
    contacts: contacts.optional(),
    templates: templates.optional(),
    policy: policy.prefault({}),
    guards: guards.prefault({}),
    keep: duration('Runs and changes older than this are dropped from the snapshot').default('90d'),
    schedule: schedule.optional(),
    redis: redis.optional(),
    server: server.optional(),
    notices: notices.optional(),
  })
  .superRefine((value, context) => {
    if (value.contacts !== undefined || value.templates !== undefined) return;
    const message = 'is missing, and so is templates → add at least one of the two';
    context.addIssue({ code: 'custom', path: ['contacts'], message });
  }, onMapping)
  .superRefine(({ schedule: due, contacts: people }, context) => {
    if (!due?.sentinel || people !== undefined) return;
    const message = 'watches contacts, and there are none → remove it, or add contacts';
    context.addIssue({ code: 'custom', path: ['schedule', 'sentinel'], message });
  }, onMapping)
  .superRefine(({ policy: { resubscribe }, contacts: people }, context) => {
    if (resubscribe === 'never' || people === undefined || people.consentAt !== undefined) return;
    const message = 'newer needs contacts.consentAt → name the column, or set it to never';
    context.addIssue({ code: 'custom', path: ['policy', 'resubscribe'], message });
  }, onMapping)
  .superRefine(({ contacts: people, templates: letters }, context) => {
    if (!isInput(people?.source) || !isInput(letters?.source)) return;
    const message = 'is standard input, which the people come from → name a file';
    context.addIssue({ code: 'custom', path: ['templates', 'source', 'path'], message });
  }, onMapping)
  .meta({
    title: 'Configuration of one crm-mirror',
    description: 'One mirror: an organization on the email platform, kept equal to its CRM',
  });

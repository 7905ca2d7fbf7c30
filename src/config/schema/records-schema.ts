/** Defines the schema of `contacts` and `templates`, with channels, protection and write-back. */
import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { fault, reporter, says, text, whole } from '../../domain/schema-fields.ts';
import { isOptOutField } from '../../domain/opt-out-names.ts';
import { parseDateFormat } from '../../domain/values/local-time.ts';
import { isRecord, wordOf } from '../../domain/values/record-field.ts';
import { condition } from './cel-condition.ts';
import { mailbox, noAddress, onMapping } from './field-types.ts';
import { contactSource, readsOne, returns, templateSource, traitsOf } from './source-types.ts';
import { timeZone, webhook } from './worker-schema.ts';
import { fillsInChannel } from '../../sources/http/options.ts';
import { binds } from '../../sources/sql/options.ts';

const word = (what: string) =>
  z
    .union([z.string(), z.number(), z.boolean()])
    .transform(String)
    .refine(
      (value) => wordOf(value) !== '',
      says('is empty', 'remove it: an empty value says nothing'),
    )
    .describe(what);
const words = (what: string) =>
  z.array(word('A word; case and surrounding spaces are ignored')).describe(what);

const fieldName = text('Column or dotted path of the CRM record');

const yesAndNo = {
  yes: z
    .union([
      words('Further words that mean yes'),
      z.literal('any').describe('Every value that is neither empty nor a word for no'),
    ])
    .describe(
      'Further words that mean yes; any means every value that is neither empty nor a word for no',
    )
    .optional(),
  no: words('Further words that mean no').optional(),
};

const flagWords = z
  .strictObject({ field: fieldName, ...yesAndNo })
  .superRefine(refuseTwice(['yes', 'no']), onMapping);

const optOutWords = z
  .strictObject({
    optOut: text('Column or dotted path in which yes opts out'),
    ...yesAndNo,
    else: z.literal('in').describe('Opts in everybody whose value is empty or a no').optional(),
  })
  .superRefine(refuseTwice(['yes', 'no']), onMapping);

const subscriptionWords = z
  .strictObject({
    field: fieldName,
    in: words('Further words that opt in').optional(),
    out: words('Further words that opt out').optional(),
    none: words('Words that mean no opinion').optional(),
  })
  .superRefine(refuseTwice(['in', 'out', 'none']), onMapping)
  .superRefine(({ field, in: ins, out }, context) => {
    if (typeof field !== 'string' || (ins?.length && out?.length)) return;
    if (isOptOutField(field)) reporter(context)('field', inverted);
  }, onMapping);

/** The built-in words would opt in exactly the people who opted out. */
const inverted = fault(
  'is named like an opt-out, so its yes is not taken as a consent',
  'write subscription: { optOut: COLUMN } if yes means no mail, or name all words yourself: { field: COLUMN, in: […], out: […] }',
);

/** Refuses a word that appears in two lists. The checked value may itself be invalid. */
function refuseTwice(lists: readonly string[]) {
  return (value: object, context: z.core.$RefinementCtx) => {
    const known = new Map<string, string>();
    for (const name of lists) {
      const list: unknown = Reflect.get(value, name);
      for (const [at, given] of (Array.isArray(list) ? list : []).entries()) {
        const plain = wordOf(String(given));
        const other = known.get(plain) ?? name;
        known.set(plain, other);
        if (other === name) continue;
        reporter(context)([name, at], `stands in ${other} too`, 'keep it in one of the two');
      }
    }
  };
}

const field = (what: string) => text(`Column or dotted path of the CRM record: ${what}`);

/** Zones without summer time, under names that most people write for zones with it. */
const withoutSummer = ['EST', 'MST', 'HST'];

const consentTime = z
  .union([
    field('when this person last gave or withdrew consent (ISO 8601)'),
    z
      .strictObject({
        field: fieldName,
        format: text('Format of the values: yyyy, MM or M, dd or d, HH, mm, ss').superRefine(
          (format, context) => {
            const parsed = parseDateFormat(format);
            if ('reason' in parsed) reporter(context)([], parsed);
          },
        ),
        timezone: timeZone(
          'Time zone of the values: an IANA name such as Europe/Berlin',
        ).optional(),
      })
      .superRefine(({ format, timezone }, context) => {
        const wrong = reporter(context);
        if (timezone === undefined) {
          const parsed = typeof format === 'string' ? parseDateFormat(format) : {};
          if (!('hasTime' in parsed) || !parsed.hasTime) return;
          wrong('timezone', 'is missing', 'name the zone of the times, such as Europe/Berlin');
        } else if (withoutSummer.includes(timezone)) {
          const fix = 'name a place in the zone, such as America/New_York';
          wrong('timezone', `${timezone} has no summer time`, fix);
        }
      }, onMapping),
  ])
  .describe(
    'Column or dotted path of the CRM record: when this person last gave or withdrew consent (ISO 8601); or a field with its own format and time zone',
  );
const otherwise = '; or a field with its own words, or a condition';
const flagged = (what: string) =>
  z
    .union([
      field(`yes if ${what}`),
      z.strictObject({ when: condition(false, `true if ${what}`) }),
      flagWords,
    ])
    .describe(`Column or dotted path of the CRM record: yes if ${what}${otherwise}`);

const optOut = flagged('this person wants no mail at all');
/** One setting, or several: a yes in any of them opts the person out. */
const optOuts = z
  .union([optOut, z.array(optOut).min(1).describe('Several of these: a yes in any counts')])
  .describe(`${optOut.description}; or a list of these, in which any yes counts`);

/** The schema of `contacts.protect`: addresses, and conditions on the CRM record. */
export const protect = z
  .array(
    z.union([
      z
        .string()
        .trim()
        .regex(
          /^[^\s@]+@[^\s@]+$/,
          says('is not an email address', 'write one, or { when: <condition> }'),
        )
        .describe('An email address'),
      z.strictObject({ when: condition(false, 'true protects this person') }),
    ]),
  )
  .min(1)
  .describe(
    'Addresses and conditions of people who are never created, opted in, opted out for absence or a deletion flag, or deleted;' +
      ' opt-outs that the CRM states still apply',
  );

const channel = z
  .strictObject({
    id: text('Id of the channel on the platform'),
    name: text('Name of the channel, used in messages').optional(),
    subscription: z
      .union([
        field('whether this person wants the channel').refine(
          (name) => !isOptOutField(name),
          says(inverted.reason, inverted.fix),
        ),
        z.strictObject({
          when: condition(true, 'true opts in, false opts out, null does neither'),
        }),
        subscriptionWords,
        optOutWords,
      ])
      .describe(
        `Column or dotted path of the CRM record: whether this person wants the channel${otherwise}, or a column of opt-outs`,
      ),
    replaces: text(
      'Id of the channel that this one replaces; people who opted out of the replaced channel are not opted in',
    ).optional(),
  })
  .describe('One channel: its id and the subscription field');

function fieldOf(entry: unknown, name: 'id' | 'replaces'): unknown {
  return isRecord(entry) && Object.hasOwn(entry, name) ? entry[name] : undefined;
}

const channels = z
  .array(channel)
  .min(1)
  .superRefine(
    (list, context) => {
      const wrong = reporter(context);
      const ids = list.map((entry) => fieldOf(entry, 'id'));
      for (const [index, entry] of list.entries()) {
        const id = ids[index];
        if (id !== undefined && ids.indexOf(id) !== index)
          wrong([index, 'id'], 'is the id of an earlier channel too', 'keep one of the two');
        const replaced = fieldOf(entry, 'replaces');
        if (replaced === undefined || !ids.includes(replaced)) continue;
        const [reason, fix] =
          id === replaced
            ? ['names the channel itself', 'name the one it took over from']
            : [
                'names a channel that is kept equal itself',
                'remove that one from the list, or this',
              ];
        wrong([index, 'replaces'], reason, fix);
      }
    },
    { when: ({ value }) => Array.isArray(value) },
  )
  .describe('Channels to keep equal, at least one');

/** A check of `returns` beside other keys runs only if `returns` itself has no mistake. */
const onReturns = {
  when: (payload: z.core.ParsePayload) =>
    onMapping.when(payload) && payload.issues.every(({ path }) => path?.[0] !== 'returns'),
};

export const contacts = z
  .strictObject({
    source: contactSource,
    map: text('TypeScript or JavaScript module that converts each record first').optional(),
    id: field('its stable id'),
    email: field('the email address'),
    deleted: flagged('the CRM flags this person as deleted').optional(),
    unsubscribed: optOuts.optional(),
    consentAt: consentTime.optional(),
    include: condition(false, 'false excludes the record').optional(),
    protect: protect.optional(),
    sample: whole(
      1,
      1_000_000,
      'Number of people to begin with: only these are created, opted in or adopted',
    ).optional(),
    channels,
    webhook: webhook.optional(),
    returns: returns.optional(),
  })
  .superRefine((given, context) => {
    for (const [path, mistake] of findReturnsFaults(given))
      reporter(context)(['returns', ...path], mistake);
  }, onReturns)
  .superRefine(({ source, webhook: events }, context) => {
    if (events === undefined || source === undefined || readsOne(source)) return;
    const fix = 'use http with `one`, hubspot, salesforce or sql, or remove it';
    reporter(context)('webhook', 'needs a source that reads a single record', fix);
  }, onMapping)
  .superRefine(({ source, id }, context) => {
    const given = traitsOf(source?.type)?.id;
    if (given === undefined || id === undefined || id === given) return;
    reporter(context)('id', 'is not the id of its records', `write ${given}, and nothing else`);
  }, onMapping)
  .describe('People to keep equal');

export const templates = z
  .strictObject({
    source: templateSource,
    canary: z
      .strictObject({
        to: z
          .array(z.string().regex(mailbox, noAddress))
          .min(1)
          .max(20)
          .describe('Addresses that get a test of each changed template, before it is published'),
      })
      .describe('Tests of changed templates')
      .optional(),
  })
  .describe('Templates to keep equal');

/** Returns the conflicts between `returns` and the rest of `contacts`, each with its path. */
function findReturnsFaults(given: {
  returns?: z.output<typeof returns> | undefined;
  source?: { type?: unknown } | undefined;
  channels?: unknown;
}): [path: string[], mistake: Fault][] {
  const { returns: back, source } = given;
  if (back === undefined || source === undefined) return [];
  if ('path' in back && /^(-$|https?:)/i.test(back.path)) {
    return [[['path'], fault('is no file that can be added to', 'name one')]];
  }
  if (back.type === 'sql' && back.url === undefined && source.type !== 'sql') {
    return [[['url'], fault('is missing', 'add it: the source is no database')]];
  }
  const list: unknown[] = Array.isArray(given.channels) ? given.channels : [];
  const known = list.map((entry) => fieldOf(entry, 'id'));
  const ignoring = known.length > 1 ? ignoresChannel(back) : undefined;
  if (ignoring) {
    const reason = `ignores the channel: leaving one of the ${known.length} channels would opt the person out of all`;
    const fix = `use ${ignoring.name}, or add allChannels: true if that is intended`;
    return [[[ignoring.path], fault(reason, fix)]];
  }
  if (back.type !== 'hubspot' && back.type !== 'salesforce') return [];
  if (back.type !== source.type) {
    const reason = `reports with the credentials of its source, and the source is not ${back.type}`;
    const fix = `use the source ${back.type}, or another type of write-back`;
    return [[['type'], fault(reason, fix)]];
  }
  const named = Object.keys((back.type === 'hubspot' ? back.subscriptions : back.fields) ?? {});
  const where = back.type === 'hubspot' ? 'subscriptions' : 'fields';
  const mistake = fault('is no channel of this mirror', 'write the id of one of channels');
  return named.filter((id) => !known.includes(id)).map((id) => [[where, id], mistake]);
}

/** Returns the option in which a write-back has to name the channel and does not, if any. */
function ignoresChannel(
  back: z.output<typeof returns>,
): { path: string; name: string } | undefined {
  if (back.type === 'sql' && !back.allChannels && !binds(back.statement, 'channel'))
    return { path: 'statement', name: ':channel' };
  if (back.type === 'http' && !back.allChannels && !fillsInChannel(back))
    return { path: 'url', name: '{channel} here or in body' };
  return undefined;
}

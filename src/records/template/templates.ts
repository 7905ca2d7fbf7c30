/**
 * The templates of a mirror on the platform: lists them, sends them and tests of them, and finds
 * the outcome of a change.
 */
import { Rejected, isExpected, Unavailable } from '../../domain/errors.ts';
import {
  canonicalJson,
  type Key,
  type ObservedRow,
  type RecordedRow,
  fingerprint,
} from '../../domain/record.ts';
import type { Change, Op } from '../../domain/change.ts';
import type { CanaryBound } from '../../domain/guards/canary.ts';
import type { Template } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/api-client.ts';
import { templateCreateBody } from '../../platform/request-schemas.ts';
import {
  acked,
  type Acknowledged,
  type SendOutcome,
  type Sending,
  settled,
  stale,
  outcomeOf,
} from '../change-outcome.ts';
import { decideTemplate, type TemplatePolicy } from './template-decision.ts';
import {
  decodeTemplate,
  difference,
  observeTemplate,
  type TemplateChange,
  type TemplateStates,
} from './template-state.ts';

export interface TemplateOptions {
  policy: TemplatePolicy;
  platform: Platform['templates'];
  /** The addresses that get a test of each changed template; undefined if nobody does. */
  testTo?: readonly string[] | undefined;
}

interface TestSending {
  platform: Platform['templates'];
  to: readonly string[];
}

/** A test of one content of a template, to one address. */
export interface TestClaim {
  key: Key;
  content: string;
  to: string;
}

/** Claims tests of templates, so that none is sent twice. */
export interface TestClaims {
  /** Returns false if the test was claimed before. The claim is on disk when this returns. */
  claim(test: TestClaim): boolean;
  /** Gives the claim back, because the test was certainly not sent. */
  release(test: TestClaim): void;
}

/** What is known about a template when a change to it is about to be sent. */
export interface KnownTemplate {
  recorded: RecordedRow | undefined;
  /** Whether the platform was read recently enough to prove the plan's assumptions. */
  fresh: boolean;
  signal: AbortSignal;
}

export type Templates = ReturnType<typeof connectTemplates>;

/** Connects the templates of a mirror to the platform. */
export function connectTemplates({ platform, testTo = [], ...options }: TemplateOptions) {
  const policy: TemplatePolicy = { ...options.policy, tests: testTo.length > 0 };
  const tests = { platform, to: testTo };
  return {
    /** Returns a page of canonical forms. Throws the request's errors. */
    async list(page: { page: number; limit: number }, signal: AbortSignal) {
      const { templates, total } = await platform.list(page, { signal });
      const organization = templates[0]?.organizationId ?? undefined;
      return { rows: templates.map(observeTemplate), total, organization };
    },
    /** Returns what to do about one template. Pure; nothing, once its changes are acknowledged. */
    decide: (states: TemplateStates) => decideTemplate(states, policy),
    /**
     * Checks immediately before a change is sent whether the plan's assumptions still hold. Returns
     * undefined if they do, otherwise the outcome of the change. Throws only unexpected errors.
     */
    look: (change: Change, known: KnownTemplate) =>
      settled(() => look(platform, decodeTemplate.change(change), known)),
    /** Sends a change, and tests of it. Throws only unexpected errors. */
    send: (change: Change, sending: Sending, claims?: TestClaims) =>
      settled(() => send(tests, decodeTemplate.change(change), { ...sending, claims })),
    /** Finds the outcome of a silent change by reading. Throws the errors of the read. */
    recover: (change: Change, asked: { late: boolean; signal: AbortSignal }) =>
      recover(platform, decodeTemplate.change(change), asked),
  };
}

/** Returns the route of an operation. A refused one stops only the changes that use it. */
export function templateRoute(op: Op): string {
  return op === 'create' ? 'templates.create' : 'templates.update';
}

/** Returns what is wrong some time after a change of an earlier run, if anything. Pure. */
export function templateDrift(
  rows: readonly ObservedRow[],
  recorded: RecordedRow | undefined,
): CanaryBound | undefined {
  if (recorded && decodeTemplate.recorded(recorded).value.untested !== undefined) return 'refused';
  const row = rows.find(({ id }) => id === recorded?.id);
  const isSame = recorded?.shown === undefined || recorded.shown === row?.fingerprint;
  return row && isSame ? undefined : 'drift';
}

/** Reads an old template again: names are not unique, and an edit must not be lost. */
async function look(
  platform: Platform['templates'],
  change: TemplateChange,
  known: KnownTemplate,
): Promise<SendOutcome | undefined> {
  if (known.fresh) return undefined;
  const rows = (await find(platform, change, known.signal)).map(observeTemplate);
  if (change.op === 'create') {
    return rows.length === 0 ? undefined : stale(rows, 'found on the platform');
  }
  const unchanged = rows[0] && rows[0].fingerprint === known.recorded?.shown;
  return unchanged ? undefined : stale(rows, 'changed on the platform since it was last seen');
}

/** The fields that an email shows. */
const sendable = [
  'subject',
  'fromEmail',
  'replyTo',
  'previewText',
  'content',
  'variables',
] as const;

/**
 * Sends a test of a changed template to the addresses of `templates.canary.to`: before the template
 * is published, or after it was changed if it was published before. The same content is sent to an
 * address once. Returns undefined if all were sent, otherwise why one was not.
 */
async function sendTests(
  { platform, to }: TestSending,
  { key, target, value: { wanted } }: TemplateChange,
  { claims, signal, abort }: Sending & { claims?: TestClaims | undefined },
): Promise<Exclude<SendOutcome, { is: 'acked' | 'unknown' }> | undefined> {
  const shown = Object.fromEntries(sendable.map((name) => [name, wanted[name]]));
  const content = fingerprint(canonicalJson(shown));
  for (const address of to) {
    const claim = { key, content, to: address };
    if (claims?.claim(claim) === false) continue;
    try {
      await platform.test(target ?? '', { to: address }, { signal, abort });
    } catch (error) {
      if (!isExpected(error)) throw error;
      // Without an answer, the email may have been sent, and it is never sent twice.
      if (error instanceof Unavailable && error.acted === 'maybe') continue;
      claims?.release(claim);
      const outcome = outcomeOf(error);
      if (outcome.is === 'acked' || outcome.is === 'unknown') {
        return { is: 'unsent', why: 'no test could be sent' };
      }
      if (outcome.is !== 'rejected') return outcome;
      const reason = `the test was refused: ${outcome.reason}`;
      const first = outcome.fix === '' ? '' : `${outcome.fix}; then `;
      const fix = `${first}correct the template or templates.canary.to, and \`crm-mirror retry\``;
      return { ...outcome, reason, fix };
    }
  }
  return undefined;
}

/** Sends one change. A 404 for a template that is gone makes the change stale. */
async function send(
  tests: TestSending,
  change: TemplateChange,
  sendContext: Sending & { claims?: TestClaims | undefined },
): Promise<SendOutcome> {
  const { platform } = tests;
  const { fields, publish, undone } = change.value;
  if (change.op === 'create') {
    const template = await platform.create(templateCreateBody.parse(fields), sendContext);
    return acked({ id: template.id, observed: observeTemplate(template) });
  }
  const id = change.target ?? '';
  const untested = publish === 'now' ? await sendTests(tests, change, sendContext) : undefined;
  if (untested) return untested;
  try {
    const template = await platform.update(id, fields, sendContext);
    const shows = sendable.some((name) => fields[name] !== undefined);
    const isLive = template.status === 'published' && publish !== 'now' && shows;
    const late = isLive && !undone ? await sendTests(tests, change, sendContext) : undefined;
    return acked({
      id,
      observed: observeTemplate(template),
      more: publish === 'next',
      untested: late && ('reason' in late ? late.reason : late.why),
    });
  } catch (error) {
    if (!(error instanceof Rejected) || error.status !== 404) throw error;
    if ((await find(platform, change, sendContext.abort)).length > 0) throw error;
    return stale([], 'gone from the platform');
  }
}

/**
 * Finds the outcome of an unanswered change: a creation by its exact name, any other change by its
 * id. A template that was changed since its creation counts as read late, because what it shows may
 * be an edit rather than the platform's formatting.
 */
async function recover(
  platform: Platform['templates'],
  change: TemplateChange,
  { late, signal }: { late: boolean; signal: AbortSignal },
): Promise<SendOutcome> {
  const found = await find(platform, change, signal);
  const [template] = found;
  if (!template) return stale([], 'did not happen');
  // One of them may be the one that was created.
  if (found.length > 1) return stale(found.map(observeTemplate), 'several have this name');
  const row = observeTemplate(template);
  if (change.op === 'create') {
    const isAsMade = template.updatedAt && template.updatedAt === template.createdAt;
    return acked({ id: row.id, observed: row, late: late || !isAsMade });
  }
  const { fields } = change.value;
  const { fields: shown } = decodeTemplate.observed(row).value;
  const done = Object.keys(difference(fields, shown)).length === 0;
  return done ? acked({ id: row.id, observed: row, late }) : stale([row], 'did not happen');
}

/** Returns the templates with the change's id, or with its name if it has no id. */
async function find(
  platform: Platform['templates'],
  change: TemplateChange,
  signal: AbortSignal,
): Promise<Template[]> {
  const { fields } = change.value;
  const found: Template[] = [];
  for await (const template of platform.all({}, { signal })) {
    const matches = change.target ? template.id === change.target : template.name === fields.name;
    if (matches) found.push(template);
  }
  return found;
}

/** Returns the row that follows from an acknowledged change. */
export function acknowledgeTemplate(
  before: RecordedRow | undefined,
  sent: Change,
  ack: Acknowledged,
): RecordedRow | undefined {
  const change = decodeTemplate.change(sent);
  const { fields, wanted, undone, publish, begins } = change.value;
  const recorded = before && decodeTemplate.recorded(before).value;
  const seen = ack.observed ? decodeTemplate.observed(ack.observed).value : recorded?.shown;
  if (!seen) return before;
  // A late reading may show an edit, so only the fields that were sent count as ours, and the
  // template is read before the next update.
  const asSent = { ...seen, fields: { ...seen.fields, ...fields }, updatedAt: null };
  const shown = ack.late ? asSent : seen;
  const isBegun = change.op === 'create' || recorded?.completes === true;
  const isCompleting = begins ?? (publish === 'next' && isBegun);
  const body = {
    sent: wanted,
    leftAlone: null,
    shown,
    replaced: recorded?.replaced ?? null,
    undone,
    completes: isCompleting || undefined,
    untested: ack.untested,
  };
  return {
    kind: 'template',
    key: change.key,
    id: ack.id ?? before?.id,
    ownership: change.op === 'create' ? 'created' : (before?.ownership ?? 'created'),
    body: canonicalJson(body),
    shown: ack.late ? undefined : ack.observed?.fingerprint,
    desired: undefined,
    seenAt: ack.at,
  };
}

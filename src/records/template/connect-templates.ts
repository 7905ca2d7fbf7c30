/** Connects the templates of a mirror (templates.ts) to the platform. */
import { Rejected, isExpected, Unavailable } from '../../domain/errors.ts';
import { canonicalJson, fingerprint } from '../../domain/record.ts';
import type { Template } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/api-client.ts';
import { templateCreateBody } from '../../platform/request-schemas.ts';
import {
  acked,
  type SendOutcome,
  type Sending,
  settled,
  stale,
  outcomeOf,
} from '../change-outcome.ts';
import {
  decideTemplate,
  reasonFor,
  type TemplatePolicy,
  undoTemplate,
} from './template-decision.ts';
import type { KnownTemplate, Templates, TestClaims } from './templates.ts';
import {
  decodeTemplate,
  difference,
  observeTemplate,
  type TemplateChange,
} from './template-state.ts';

interface TestSending {
  platform: Platform['templates'];
  to: readonly string[];
}

/** Connects the templates. `testTo`: the addresses that get a test of each changed template. */
export function connectTemplates({
  platform,
  testTo = [],
  ...options
}: {
  policy: TemplatePolicy;
  platform: Platform['templates'];
  testTo?: readonly string[] | undefined;
}): Templates {
  const policy: TemplatePolicy = { ...options.policy, tests: testTo.length > 0 };
  const tests = { platform, to: testTo };
  return {
    async list(page, signal) {
      const { templates, total } = await platform.list(page, { signal });
      const organization = templates[0]?.organizationId ?? undefined;
      return { rows: templates.map(observeTemplate), total, organization };
    },
    decide: (states) => decideTemplate(states, policy),
    undo: undoTemplate,
    reasonFor: (change) => reasonFor(decodeTemplate.change(change)),
    look: async (change, known) =>
      settled(() => look(platform, decodeTemplate.change(change), known)),
    send: async (change, sending, claims) =>
      settled(() => send(tests, decodeTemplate.change(change), { ...sending, claims })),
    recover: async (change, asked) => recover(platform, decodeTemplate.change(change), asked),
  };
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
 * Finds the outcome of an unanswered change: a creation by its exact name, others by id. One
 * changed since its creation counts as read late: what it shows may be an edit, not mere
 * formatting.
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

async function find(platform: Platform['templates'], change: TemplateChange, signal: AbortSignal) {
  const { fields } = change.value;
  const found: Template[] = [];
  for await (const template of platform.all({}, { signal })) {
    const matches = change.target ? template.id === change.target : template.name === fields.name;
    if (matches) found.push(template);
  }
  return found;
}

/** The record type of templates: lists and sends them, and finds the outcome of a change. */
import { Rejected } from '../../domain/errors.ts';
import { canonicalJson, type ObservedRow, type RecordedRow } from '../../domain/record.ts';
import type { Template } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/api-client.ts';
import { templateCreateBody } from '../../platform/request-schemas.ts';
import {
  acked,
  type Acknowledged,
  type RecordType,
  type KnownRecord,
  type SendOutcome,
  type Recovery,
} from '../record-type.ts';
import type { SendContext } from '../send-context.ts';
import { decodedStates } from '../decoded-rows.ts';
import { settled, stale } from '../send-outcome.ts';
import { decideTemplate, phases, reasonFor, type TemplatePolicy } from './template-decision.ts';
import { undoTemplate } from './undo-template.ts';
import { desireTemplate } from './desired-template.ts';
import { isSendable, sendTests, type TestSending } from './template-tests.ts';
import {
  decodeTemplate,
  difference,
  observeTemplate,
  type TemplateChange,
  unreadBody,
} from './template-state.ts';

/** The settings of templates, and the client of the platform. */
export interface TemplateOptions {
  policy: Omit<TemplatePolicy, 'tests'>;
  platform: Platform['templates'];
  /** The addresses that get a test of each changed template; undefined if nobody does. */
  testTo?: readonly string[] | undefined;
}

/** Returns the record type of templates. It has none of the capabilities. */
export function templateType({ platform, testTo = [], ...options }: TemplateOptions): RecordType {
  const policy: TemplatePolicy = { ...options.policy, tests: testTo.length > 0 };
  const tests = { platform, to: testTo };
  return {
    name: 'template',
    fields: [],
    phases,
    needsCertificate: false,
    decidesAbsent: { full: true, fast: true },
    keyedById: true,
    capabilities: {},
    unreadBody,
    desire: desireTemplate,
    list: async (query, signal) => {
      const { templates, total } = await platform.list(query, { signal });
      const organization = templates[0]?.organizationId ?? undefined;
      return { rows: templates.map(observeTemplate), total, date: undefined, organization };
    },
    decide: (states) => decideTemplate(decodedStates(states, decodeTemplate), policy),
    undo: (states, undoing) => undoTemplate(decodedStates(states, decodeTemplate), undoing),
    reason: (change) => reasonFor(decodeTemplate.change(change)),
    route: (op) => (op === 'create' ? 'templates.create' : 'templates.update'),
    lookRoute: () => 'templates.list',
    look: (change, known) => settled(() => look(platform, decodeTemplate.change(change), known)),
    send: (change, sendContext) =>
      settled(() => send({ platform, tests }, decodeTemplate.change(change), sendContext)),
    recover: async (change, asked) => recover(platform, decodeTemplate.change(change), asked),
    acknowledge: (before, change, ack) => acknowledge(before, decodeTemplate.change(change), ack),
    readBack(_, { rows, recorded }) {
      const row = rows.find(({ id }) => id === recorded?.id);
      if (recorded && decodeTemplate.recorded(recorded).value.untested !== undefined)
        return 'refused';
      const isSame = recorded?.shown === undefined || recorded.shown === row?.fingerprint;
      return row && isSame ? undefined : 'drift';
    },
  };
}

/**
 * Reads the template again if the last reading is too old, because names are not unique on the
 * platform and an edit made there must not be lost.
 */
async function look(
  platform: Platform['templates'],
  change: TemplateChange,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  if (known.fresh) return undefined;
  const { recorded } = known;
  const rows = await find(platform, change, known.signal);
  if (change.op === 'create')
    return rows.length === 0 ? undefined : stale(rows, 'found on the platform');
  const unchanged = rows[0] && rows[0].fingerprint === recorded?.shown;
  return unchanged ? undefined : stale(rows, 'changed on the platform since it was last seen');
}

/** Sends one change. A 404 for a template that is gone makes the change stale. */
async function send(
  { platform, tests }: { platform: Platform['templates']; tests: TestSending },
  change: TemplateChange,
  sendContext: SendContext,
): Promise<SendOutcome> {
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
    const isLive = template.status === 'published' && publish !== 'now' && isSendable(fields);
    const late = isLive && !undone ? await sendTests(tests, change, sendContext) : undefined;
    return acked({
      id,
      observed: observeTemplate(template),
      more: publish === 'next',
      untested: late && ('reason' in late ? late.reason : late.why),
    });
  } catch (error) {
    if (!(error instanceof Rejected) || error.status !== 404) throw error;
    const rows = await find(platform, change, sendContext.abort);
    if (rows.length > 0) throw error;
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
  { late, signal }: Recovery,
): Promise<SendOutcome> {
  const found = await all(platform, change, signal);
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

/** Returns the templates that the change is about, in canonical form. */
async function find(
  platform: Platform['templates'],
  change: TemplateChange,
  signal: AbortSignal,
): Promise<ObservedRow[]> {
  return (await all(platform, change, signal)).map(observeTemplate);
}

/** Returns the templates with the change's id, or with its name if it has no id. */
async function all(
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

/** Returns the row to record after an acknowledged change. */
function acknowledge(
  before: RecordedRow | undefined,
  change: TemplateChange,
  ack: Acknowledged,
): RecordedRow | undefined {
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

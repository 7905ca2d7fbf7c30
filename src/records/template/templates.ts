/** The contract of a mirror's templates, and what is recorded once a change is acknowledged. */
import type { Change, Op } from '../../domain/change.ts';
import type { CanaryBound } from '../../domain/guards/canary.ts';
import {
  canonicalJson,
  type Key,
  type ObservedRow,
  type RecordedRow,
} from '../../domain/record.ts';
import type { Acknowledged, Sending, SendOutcome } from '../change-outcome.ts';
import type { Decision, Undoing, Undone } from '../decision.ts';
import { decodeTemplate, type ObservedTemplateRow, type TemplateStates } from './template-state.ts';

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

export interface Templates {
  list(
    page: { page: number; limit: number },
    signal: AbortSignal,
  ): Promise<{ rows: ObservedTemplateRow[]; total: number; organization: string | undefined }>;
  /** Returns what to do about one template. Pure; nothing, once its changes are acknowledged. */
  decide(states: TemplateStates): Decision;
  /** Returns the inverse of the changes that an earlier run made to one template. Pure. */
  undo(states: TemplateStates, undoing: Undoing): Undone;
  reasonFor(change: Change): string;
  /**
   * Checks immediately before a change is sent whether the plan's assumptions still hold. Returns
   * undefined if they do, otherwise the outcome of the change. Throws only unexpected errors.
   */
  look(change: Change, known: KnownTemplate): Promise<SendOutcome | undefined>;
  /** Sends a change, and tests of it. Throws only unexpected errors. */
  send(change: Change, sending: Sending, claims?: TestClaims): Promise<SendOutcome>;
  /** Finds the outcome of a silent change by reading. Throws the errors of the read. */
  recover(change: Change, asked: { late: boolean; signal: AbortSignal }): Promise<SendOutcome>;
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
  // A late reading may show an edit, so only the fields that were sent count as ours.
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

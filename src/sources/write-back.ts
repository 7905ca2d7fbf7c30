/**
 * The way back into a CRM: it is told who left on the platform. One file `write-back.ts` in the
 * folder of each source that can be written to.
 *
 * The contract:
 * - It carries opt-outs and nothing else: a Return has no word for what brings somebody in.
 * - `tell` answers what came of each, in their order. Where it throws, what it has not answered is
 *   of unknown outcome, or was certainly refused with Invalid and RateLimited; the run goes on.
 * - What is of unknown outcome is told again under the same id: to whoever has that already it must
 *   say nothing new. Where twice is not the same as once, `arrived` tells what is there already.
 * - Reasons hold no personal data and nothing of an answer: they are shown and logged.
 */
import type { OptOutReport } from '../domain/opt-out-report.ts';

export interface WriteBack {
  /** How many are told at once, and noted as sent together. */
  readonly most: number;
  /** Whether one that it chokes on undoes all that are told with it. */
  readonly reportsTogether?: true;
  /** Whether it can say this at all: without an id of the CRM, of this channel. */
  takes(one: Pick<OptOutReport, 'crmId' | 'channel'>): boolean;
  /** Throws Invalid for what only a person can mend, Unavailable, RateLimited. */
  tell(batch: readonly OptOutReport[], signal: AbortSignal): AsyncGenerator<ReportResult, void>;
  /** Which of these are there; throws as `tell` does. */
  arrived?(batch: readonly OptOutReport[]): ReadonlySet<string>;
  /** Where they go, in words; changes nothing. Throws Invalid for what would be in the way. */
  look(): string;
}

/** rejected: the CRM does not take this one, whatever becomes of others. */
export type ReportResult = { is: 'told' } | { is: 'rejected'; reason: string; fix: string };

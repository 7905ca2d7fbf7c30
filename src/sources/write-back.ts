/**
 * Reports to a CRM who opted out on the platform. Each source that can be written to has a file
 * `write-back.ts` in its folder.
 *
 * The contract: - It carries opt-outs and nothing else: a report has no way to opt a person in. -
 * `tell` yields the result of each report, in their order. When it throws, the outcome of the other
 * reports is unknown; after Invalid and RateLimited they were certainly refused. The run goes on. -
 * A report with an unknown outcome is sent again under the same id, which must change nothing where
 * it has arrived already. Where sending twice is not the same as once, `arrived` returns what is
 * there. - Reasons contain no personal data and nothing of an answer: they are shown and logged.
 */
import type { OptOutReport } from '../domain/opt-out-report.ts';

/** One way to report opt-outs. */
export interface WriteBack {
  /** The most reports that are sent at once and noted as sent together. */
  readonly most: number;
  /** Set when one bad report undoes all that are sent with it. */
  readonly reportsTogether?: true;
  /** Returns whether it can report this: without a CRM id, or for this channel. */
  takes(one: Pick<OptOutReport, 'crmId' | 'channel'>): boolean;
  /**
   * Sends the reports. Throws Invalid for what only a person can mend, Unavailable, RateLimited.
   */
  tell(batch: readonly OptOutReport[], signal: AbortSignal): AsyncGenerator<ReportResult, void>;
  /** Returns the ids of the reports that are there. Throws as `tell` does. */
  arrived?(batch: readonly OptOutReport[]): ReadonlySet<string>;
  /** Returns in words where reports go, and changes nothing. Throws Invalid for an obstacle. */
  look(): string;
}

/**
 * The result of a report. rejected: the CRM does not accept this one, whatever becomes of others.
 */
export type ReportResult = { is: 'told' } | { is: 'rejected'; reason: string; fix: string };

/**
 * Reports to a CRM who opted out on the platform. Each source that supports it has a file
 * `write-back.ts` in its folder; CSV and NDJSON share `shared/files/file-write-back.ts`.
 *
 * The contract:
 * - A report carries an opt-out and nothing else; it cannot opt a person in.
 * - `tell` yields the result of each report, in their order. If it throws, the outcome of the
 *   remaining reports is unknown, except after Invalid and RateLimited, when they were certainly
 *   refused. The run goes on.
 * - A report with an unknown outcome is sent again under the same id, which must change nothing if
 *   it has already arrived. If sending twice differs from sending once, `arrived` returns the
 *   reports that are already there.
 * - Reasons contain no personal data and nothing from a response, because they are shown and
 *   logged.
 */
import type { OptOutReport } from '../domain/opt-out-report.ts';

export interface WriteBack {
  /** The maximum number of reports that are sent at once and noted as sent together. */
  readonly most: number;
  /** Set if one bad report undoes all reports sent with it. */
  readonly reportsTogether?: true;
  /** Returns whether this opt-out can be reported, given its CRM id (if any) and its channel. */
  takes(one: Pick<OptOutReport, 'crmId' | 'channel'>): boolean;
  /** Sends the reports. Throws Invalid if a person has to help, Unavailable, RateLimited. */
  tell(batch: readonly OptOutReport[], signal: AbortSignal): AsyncGenerator<ReportResult, void>;
  /** Returns the ids of the reports that have already arrived. Throws the same errors as `tell`. */
  arrived?(batch: readonly OptOutReport[]): ReadonlySet<string>;
  /** Describes where reports go, and changes nothing. Throws Invalid if none can. */
  look(): string;
}

/** The result of a report. `rejected`: the CRM does not accept it, whatever the others. */
export type ReportResult = { is: 'told' } | { is: 'rejected'; reason: string; fix: string };

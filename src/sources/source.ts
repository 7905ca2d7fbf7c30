import type { OptOutReport } from '../domain/opt-out-report.ts';

/**
 * A source holds the authoritative records, such as a CRM, a file or a folder. Each type of source
 * has a folder of its own here.
 *
 * The contract:
 * - `read` yields every record once, in batches, and holds no more than one batch in memory.
 * - A record that cannot be read (a ragged row, a broken file) is yielded as `broken`, with its
 *   position and the reason. It never disappears, and it never stops the read.
 * - A fault that makes the whole source unreadable (no file, wrong encoding, a missing column)
 *   throws Invalid.
 * - Values are passed on unchanged; src/records decides what they mean.
 * - A read returns its certificate: the proof that it was complete, or the reason why it was not.
 *   Without the proof, nobody counts as absent, and nobody is opted in.
 * - `reading` names the state of the source that was read. The same name means the same state.
 * - `still` returns whether the source is still in the state that this object read under that name.
 *   It returns immediately, because it is called just before a deletion is sent. It never throws:
 *   if the source cannot be checked, it returns false. A source of contacts must implement it;
 *   without it, nobody is deleted.
 * - `one` reads a single record by its id, and returns undefined if the source has no such id. Not
 *   every source supports it. It throws the same errors as `read`, and Invalid if the response is
 *   another record.
 * - `changes` reads only what changed since a cursor. A deleted record is yielded as a record that
 *   says so, or not at all: a record that `changes` does not yield never counts as absent.
 *   `changes` may yield a record twice but must not miss one, so a cursor is earlier than the start
 *   of its read by as much as the source may lag behind. It returns 'lost' if the source no longer
 *   recognizes the cursor and has to be read completely. A source with `changes` also has `one`.
 * - Records and reasons may contain personal data: they go to staging and never to a log.
 */
export interface Source {
  read(request: ReadRequest): AsyncGenerator<SourceRecord[], Certificate>;
  still?(reading: string): boolean;
  changes?(
    since: string,
    request: ReadRequest,
  ): AsyncGenerator<SourceRecord[], Certificate | 'lost'>;
  one?(id: string, request: ReadRequest): Promise<SourceRecord | undefined>;
}

/** The fields to read. */
export interface ReadRequest {
  /** The configured fields. One that the whole source lacks throws Invalid. */
  fields: readonly string[];
  signal: AbortSignal;
  /** Called with the share read so far, from 0 to 1; never by a source of unknown size. */
  progress?(share: number): void;
}

/** A record with its position in the source, or the reason why it cannot be read. */
export type SourceRecord =
  | { where: string; value: Record<string, unknown> }
  | { where: string; broken: string; fix: string };

/** States whether a read was complete, and if not, why and how to fix it. */
export type Certificate =
  | {
      complete: true;
      reading: string;
      /** Where `changes` continues after this read; undefined if the source has none. */
      cursor?: string | undefined;
    }
  | {
      complete: false;
      reading: string;
      why: string;
      fix: string;
      /** Set if a file was not read to its end. */
      isCut?: true;
    };

// Reports to a CRM who opted out on the platform. CSV and NDJSON share file-write-back.ts.
//
// The contract:
// - A report carries an opt-out and nothing else; it cannot opt a person in.
// - `tell` yields the result of each report, in their order. If it throws, the outcome of the
//   remaining reports is unknown, except after Invalid and RateLimited, when they were certainly
//   refused. The run goes on.
// - A report with an unknown outcome is sent again under the same id, listed in `repeated`, which
//   must change nothing if it has already arrived. If sending twice differs from sending once,
//   `arrived` returns the reports that are already there.
// - Reasons contain no personal data and nothing from a response, because they are shown and
//   logged.

export interface WriteBack {
  /** The maximum number of reports that are sent at once and noted as sent together. */
  readonly most: number;
  /** Set if one bad report undoes all reports sent with it. */
  readonly reportsTogether?: true;
  /** Returns whether this opt-out can be reported, given its CRM id (if any) and its channel. */
  takes(one: Pick<OptOutReport, 'crmId' | 'channel'>): boolean;
  /** Sends the reports. Throws Invalid if a person has to help, Unavailable, RateLimited. */
  tell(
    batch: readonly OptOutReport[],
    signal: AbortSignal,
    repeated?: ReadonlySet<string>,
  ): AsyncGenerator<ReportResult, void>;
  /** Returns the ids of the reports that have already arrived. Throws the same errors as `tell`. */
  arrived?(batch: readonly OptOutReport[]): ReadonlySet<string>;
  /** Describes where reports go, and changes nothing. Throws Invalid if none can. */
  look(): string;
}

/** The result of a report. `rejected`: the CRM does not accept it, whatever the others. */
export type ReportResult = { is: 'told' } | { is: 'rejected'; reason: string; fix: string };

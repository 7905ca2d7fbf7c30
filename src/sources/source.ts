/**
 * A source is where the true records are: a CRM, a file, a folder. Each type of source has a folder
 * of its own here.
 *
 * The contract: - `read` yields every record once, in batches, and holds no more than one batch in
 * memory. - A record that cannot be read (a ragged row, a broken file) is yielded as `broken`, with
 * its place and the reason. It never disappears, and never stops the reading. - What makes the
 * whole source unreadable (no file, wrong encoding, a missing column) throws Invalid. - Values are
 * passed on as found; src/records decides what they mean. - A reading returns its certificate: the
 * proof that it was complete, or why it was not. Without it nobody counts as absent, and nobody is
 * opted in. - `reading` names the state of the source that was read. The same name means the same
 * reading. - `still` returns whether the source is now what this object read under that name. It
 * answers at once, because it is called when a deletion is about to be sent, and never throws: what
 * cannot be looked at is not what was read. A source of contacts needs it; nobody is deleted
 * without. - `one` reads a single record by its id and returns undefined when the source has no
 * such id. Not every source can. It throws what `read` throws, and Invalid when the answer is
 * another record. - `changes` reads only what changed since a cursor. A deleted record comes as a
 * record that says so, or not at all: a record that it does not name is not concluded to be absent.
 * It may yield a record twice, but must not miss one: a cursor lies before the start of its reading
 * by as much as the source may be late. It returns 'lost' when the source does not know the cursor
 * any more and has to be read as a whole. A source that has `changes` has `one` as well. - Records
 * and reasons may contain personal data: they go to staging and never to a log.
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

/** The fields that a reading is asked for. */
export interface ReadRequest {
  /**
   * The fields that the configuration names. A field that the source as a whole lacks throws
   * Invalid.
   */
  fields: readonly string[];
  signal: AbortSignal;
}

/** A record with its place in the source, or why it cannot be read. */
export type SourceRecord =
  | { where: string; value: Record<string, unknown> }
  | { where: string; broken: string; fix: string };

/** Whether a reading was complete, and if not why, and how to mend it. */
export type Certificate =
  | {
      complete: true;
      reading: string;
      /** Where `changes` goes on after this reading; undefined: the source has no changes. */
      cursor?: string | undefined;
    }
  | { complete: false; reading: string; why: string; fix: string };

/**
 * A source is where the truth lives: a CRM, a file, a folder. One folder here per kind of source.
 *
 * The contract:
 * - `read` goes through everything once, in batches, holding no more than one batch in memory.
 * - A record that cannot be read (a ragged row, a broken file) is yielded as `broken`, with where
 *   it stands and why; it never silently disappears, and it never stops the reading.
 * - What makes the whole unreadable (no file, wrong encoding, a missing column) throws Invalid.
 * - Values are passed on as found; what they mean is the business of kind/.
 * - The last thing a reading gives is its certificate: the proof that it was complete, or why not.
 *   Without one nobody is concluded to have left, and nobody is opted in.
 * - `reading` names the state of the source that was read. The same name twice is the same reading.
 * - `still` says whether the source is now what this very object read under that name. It answers
 *   at once, for it is asked at the moment a delete leaves, and it never throws: what cannot be
 *   looked at is not what was read. A source of people needs it: nobody is deleted without.
 * - `one` reads a single record by its id; undefined: the source has none of that id. Not every
 *   source can. It throws what reading throws, and Invalid for an answer that is another record.
 * - `changes` reads what changed since a cursor, and nothing else, in as many requests as that
 *   takes. Whoever was deleted comes as a record that says so, or not at all: of whom it does not
 *   name nothing is concluded. Better one twice than none: a cursor lies so far before the start of
 *   its reading as the source may tell late. A record that is told twice is asked for once more.
 *   'lost': the source does not know that cursor any more, and has to be read wholly. A source
 *   that has `changes` has `one` as well.
 * - Records and reasons may hold personal data: they go to staging and never to a log.
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

export interface ReadRequest {
  /** The fields the configuration names; one that the source as a whole lacks throws Invalid. */
  fields: readonly string[];
  signal: AbortSignal;
}

export type SourceRecord =
  | { where: string; value: Record<string, unknown> }
  | { where: string; broken: string; fix: string };

export type Certificate =
  | {
      complete: true;
      reading: string;
      /** From where `changes` goes on after this reading, where the source has them. */
      cursor?: string | undefined;
    }
  | { complete: false; reading: string; why: string; fix: string };

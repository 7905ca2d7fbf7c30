/**
 * Reads each source once, and gives the same records to every run of a rehearsal. The CRM is really
 * read, but only when a run asks for something that was not read before.
 */
import type { Certificate, ReadRequest, Source, SourceRecord } from '../../sources/source.ts';

type End = Certificate | 'lost';
/** The readings that have ended: their batches, and what the source said of each. */
type Keep = Map<string, { batches: SourceRecord[][]; end: End }>;

/** Waits for real work, during which no virtual time passes. */
type Hold = <T>(real: Promise<T>) => Promise<T>;

export type SourceReadings = ReturnType<typeof createReadings>;

/** Creates an empty store of the readings of all sources of a rehearsal. */
export function createReadings() {
  const known: Keep = new Map();
  return {
    /**
     * Returns a source that yields what was read from the source of that name, and otherwise reads
     * it. It never changes while the rehearsal lasts.
     */
    of: (name: string, source: Source, hold: Hold): Source => {
      const { changes, one } = source;
      const read = (what: readonly string[], from: () => AsyncGenerator<SourceRecord[], End>) =>
        replay(known, { key: JSON.stringify([name, ...what]), from, hold });
      return {
        async *read(request) {
          const end = yield* read(request.fields, () => source.read(request));
          if (end === 'lost') throw new Error('only a reading of changes can be lost');
          return end;
        },
        ...(source.still && { still: () => true }),
        ...(changes && {
          changes: (since: string, request: ReadRequest) =>
            read(['since', since, ...request.fields], () => changes(since, request)),
        }),
        ...(one && { one: async (id: string, request: ReadRequest) => hold(one(id, request)) }),
      };
    },
  };
}

async function* replay(
  known: Keep,
  { key, from, hold }: { key: string; from(): AsyncGenerator<SourceRecord[], End>; hold: Hold },
): AsyncGenerator<SourceRecord[], End> {
  const kept = known.get(key);
  if (kept) {
    yield* kept.batches;
    return kept.end;
  }
  const batches: SourceRecord[][] = [];
  const reading = from();
  try {
    for (;;) {
      const next = await hold(reading.next());
      if (next.done === true) {
        known.set(key, { batches, end: next.value });
        return next.value;
      }
      batches.push(next.value);
      yield next.value;
    }
  } finally {
    await hold(reading.return({ complete: false, reading: '', why: '', fix: '' }));
  }
}

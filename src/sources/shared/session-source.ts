/**
 * A source whose reads each open a session, such as a connection, and close it. The CRM cannot tell
 * whether its data has changed, so each read has a new name and stays valid for 15 minutes.
 */
import type { Clock } from '../../domain/clock.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import type {
  Certificate,
  ReadRequest,
  ReportResult,
  Source,
  SourceRecord,
  WriteBack,
} from '../source.ts';
import { certificateOf, type Flaw, holding } from './read-certificate.ts';

/** How a list ended: what speaks against its being complete, and where changes continue. */
export interface ListEnd {
  flaws: readonly Flaw[];
  cursor?: string | undefined;
}

export type Listing<T = ListEnd> = AsyncGenerator<SourceRecord[], T>;

interface Reads<S> {
  /** Opens a session, which is closed even if the read breaks off. */
  open(request: ReadRequest, part: 'read' | 'changes' | 'one'): S | Promise<S>;
  read(session: S, request: ReadRequest): Listing;
  changes?(session: S, since: string, request: ReadRequest): Listing<ListEnd | 'lost'>;
  one?(session: S, id: string, request: ReadRequest): Promise<SourceRecord | undefined>;
  /** Set if a read of everything stays valid beside those of the changes after it. */
  isOneState?: true;
}

interface Session {
  close(): Promise<unknown>;
}

/** Returns the source; `kind` begins the names of its reads. */
export function sessionSource<S extends Session>(
  kind: string,
  clock: Clock,
  { open, read, changes, one, isOneState }: Reads<S>,
): Source {
  const { keep, still } = holding(clock);
  return {
    async *read(request): AsyncGenerator<SourceRecord[], Certificate> {
      const reading = `${kind}-${clock.now()}`;
      const session = await open(request, 'read');
      try {
        const { flaws, ...more } = yield* read(session, request);
        keep(reading);
        return certificateOf(reading, flaws, more);
      } finally {
        await session.close();
      }
    },
    ...(changes && {
      async *changes(since, request): AsyncGenerator<SourceRecord[], Certificate | 'lost'> {
        const reading = `${kind}-changes-${clock.now()}`;
        const session = await open(request, 'changes');
        try {
          const end = yield* changes(session, since, request);
          if (end === 'lost') return end;
          keep(reading, isOneState);
          const { flaws, ...more } = end;
          return certificateOf(reading, flaws, more);
        } finally {
          await session.close();
        }
      },
    }),
    ...(one && {
      async one(id, request) {
        const session = await open(request, 'one');
        try {
          return await one(session, id, request);
        } finally {
          await session.close();
        }
      },
    }),
    still,
  };
}

const REPORTS_AT_ONCE = 20;

interface Reports<S> {
  takes: WriteBack['takes'];
  look: WriteBack['look'];
  open(signal: AbortSignal): S;
  report(session: S, one: OptOutReport, signal: AbortSignal): Promise<ReportResult>;
}

/** Returns the write-back that reports opt-outs one after another in a session. */
export function sessionWriteBack<S extends Session>({
  open,
  report,
  ...rest
}: Reports<S>): WriteBack {
  return {
    ...rest,
    most: REPORTS_AT_ONCE,
    async *tell(batch, signal) {
      const session = open(signal);
      try {
        for (const one of batch) yield await report(session, one, signal);
      } finally {
        await session.close();
      }
    },
  };
}

/** Reads back what a run changed, for `undo`. */
import { z } from 'zod';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { DoneChange } from '../../domain/change.ts';
import { alreadyThere } from './journal.ts';
import { inStretch, type Stretch, stretchesOf } from '../database/plan-chunks.ts';
import type { Statements } from '../database/prepared-statements.ts';

export interface RunPart {
  run: string;
  kind: RecordTypeName;
}

interface StoredDone extends Omit<
  DoneChange,
  'target' | 'before' | 'later' | 'isUndone' | 'wasThere'
> {
  wasThere: 0 | 1;
  target: string | null;
  before: string | null;
  /** `laterRuns` as JSON text, the newest first. */
  later: string;
}

/** The runs that changed a record later, and which run each of them undid, if it did. */
const laterRuns = z.array(z.object({ run: z.string(), undoes: z.string().nullable() }));
type LaterRun = z.infer<typeof laterRuns>[number];

/** The acknowledged changes of earlier runs. */
export function runChangesIn(db: Statements) {
  const chunks = stretchesOf(db, 'from change indexed by change_by_run where run = @run');
  const select = db.run<Stretch & { run: string; of: string }>(
    `insert or ignore into temp.candidate (kind, key)
     select kind, key from change indexed by change_by_run
     where run = @run and kind = @of and state = 'acked' and ${inStretch}`,
  );
  // A later change to the whole record, or to the same part, comes from another run.
  const done = db.all<RunPart & { by: string; key: Key }, StoredDone>(
    `select op, part, target, body, before, reason is '${alreadyThere}' wasThere, (
       select json_group_array(json_object('run', l.run, 'undoes', r.asked ->> '$.undoes')
         order by l.seq desc)
       from change l indexed by change_by_key left join run r on r.id = l.run
       where l.kind = c.kind and l.key = c.key and l.run not in (c.run, @by) and l.seq > c.seq
         and l.state = 'acked' and (l.part in (c.part, '') or c.part = '')) later
     from change c indexed by change_by_key
     where run = @run and kind = @kind and state = 'acked' and key = @key
     order by seq`,
  );
  const lastAt = db.one<[kind: string, key: string], { at: number | null }>(
    `select max(ended_at) at from change indexed by change_by_key
     where kind = ? and key = ? and state = 'acked'`,
  );
  return {
    /** Yields the chunks of the changes of a run. */
    chunks: (run: string) => chunks({ run }),
    /** Makes the records of a chunk that the run has changed candidates for a decision. */
    select: ({ run, kind }: RunPart, stretch: Stretch) => select({ run, of: kind, ...stretch }),
    /**
     * Returns the changes that a run made to a record, oldest first. Those of the run `by`, which
     * asks, do not count as later ones.
     */
    of: (part: RunPart & { by: string }, key: Key): DoneChange[] =>
      done({ ...part, key }).map(({ target, before, later, wasThere, ...row }) => {
        const last = standing(laterRuns.parse(JSON.parse(later)), part.run);
        return {
          ...row,
          target: target ?? undefined,
          before: before ?? undefined,
          later: last?.run,
          isUndone: last?.undoes === part.run,
          wasThere: wasThere === 1,
        };
      }),
    /**
     * Returns when the newest change of any run to a record was acknowledged, in milliseconds since
     * the epoch; undefined if none was.
     */
    lastAt: (kind: RecordTypeName, key: Key) => lastAt(kind, key)?.at ?? undefined,
  };
}

/**
 * Returns the newest of the later runs that counts; they are in that order. A run and its undo
 * cancel each other, unless the run itself is the undo of the one that is to be undone.
 */
function standing(later: readonly LaterRun[], run: string): LaterRun | undefined {
  const cancelled = new Set<string>();
  for (const one of later) {
    if (cancelled.has(one.run)) continue;
    const undone = later.find((other) => other.run === one.undoes);
    if (!undone || undone.undoes === run) return one;
    cancelled.add(undone.run);
  }
  return undefined;
}

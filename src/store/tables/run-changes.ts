/** Reads back what a run changed, for `undo`. */
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { DoneChange } from '../../domain/change.ts';
import { alreadyThere } from './journal.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { inStretch, type RecordName, type Stretch, stretchesOf } from '../database/key-range.ts';
import { type Statements, withoutNull } from '../database/prepared-statements.ts';

interface StoredDone extends Omit<DoneChange, 'later' | 'isUndone' | 'wasThere'> {
  wasThere: 0 | 1;
  /** `laterRuns` as JSON text, the newest first. */
  later: string;
}

/** A run that changed a record later, and which run it undid, if it did. */
interface LaterRun {
  run: string;
  undoes: string | null;
}
const laterRuns = storedJson<readonly LaterRun[]>('the history of a record');

/** The acknowledged changes of earlier runs. */
export function runChangesIn(db: Statements) {
  // A later change to the whole record, or to the same part, comes from another run.
  const done = db.all<RecordName & { run: string; by: string }, StoredDone>(
    `select op, part, target, body, before, reason is '${alreadyThere}' wasThere, (
       select json_group_array(json_object('run', l.run, 'undoes', r.asked ->> '$.undoes')
         order by l.seq desc)
       from change l indexed by change_by_key left join run r on r.id = l.run
       where l.kind = c.kind and l.key = c.key and l.run not in (c.run, @by) and l.seq > c.seq
         and l.state = 'acked' and (l.part in (c.part, '') or c.part = '')) later
     from change c indexed by change_by_key
     where run = @run and kind = @kind and state = 'acked' and key = @key
     order by seq`,
    withoutNull,
  );
  return {
    /** Yields the chunks of the changes of a run. */
    chunks: stretchesOf<{ run: string }>(
      db,
      'from change indexed by change_by_run where run = @run',
    ),
    /** Makes the records of a chunk that the run has changed candidates for a decision. */
    select: db.run<Stretch & { run: string; of: RecordTypeName }>(
      `insert or ignore into temp.candidate (kind, key)
       select kind, key from change indexed by change_by_run
       where run = @run and kind = @of and state = 'acked' and ${inStretch}`,
    ),
    /**
     * Returns the changes that a run made to a record, oldest first. Those of the run `by`, which
     * asks, do not count as later ones.
     */
    of: (part: RecordName & { run: string; by: string }): DoneChange[] =>
      done(part).map(({ later, wasThere, ...row }) => {
        const last = standing(laterRuns.decode(later), part.run);
        return {
          ...row,
          later: last?.run,
          isUndone: last?.undoes === part.run,
          wasThere: wasThere === 1,
        };
      }),
    /**
     * Returns when the newest change of any run to a record was acknowledged, in milliseconds since
     * the epoch; undefined if none was.
     */
    lastAt: db.value<[RecordTypeName, Key], number>(
      `select max(ended_at) from change indexed by change_by_key
       where kind = ? and key = ? and state = 'acked'`,
    ),
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

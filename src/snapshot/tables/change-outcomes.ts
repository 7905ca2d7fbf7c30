import type { Statements } from '../database/prepared-statements.ts';
import type { JournaledChange } from '../../domain/change.ts';

/** What became of changes, for people to look at; the journal itself is journal.ts. */
export interface Outcomes {
  /** The changes of a run: first what a person should look at, opt-outs before others. */
  gravest(run: string, count: number): KeptChange[];
  /** How many changes of any run are sent and not answered, and since when. */
  countOpen(): OpenCount[];
}

/** Times in milliseconds since the epoch. */
export interface KeptChange extends Pick<
  JournaledChange,
  'kind' | 'key' | 'op' | 'part' | 'state'
> {
  reason: string | null;
  fix: string | null;
  plannedAt: number;
  sentAt: number | null;
  endedAt: number | null;
}

export interface OpenCount {
  state: 'sent' | 'unknown';
  n: number;
  since: number | null;
}

/** A KeptChange, as columns of the table `change`. */
export const keptColumns =
  'kind, key, op, part, state, reason, fix, planned_at plannedAt, sent_at sentAt, ended_at endedAt';

export function outcomesIn(db: Statements): Outcomes {
  const gravest = db.prepare<[string, number], KeptChange>(
    `select ${keptColumns} from change indexed by change_by_run where run = ?
     order by case state when 'rejected' then 0 when 'unknown' then 1 when 'sent' then 2
       when 'planned' then 3 when 'stale' then 4 else 5 end, op <> 'opt_out', seq limit ?`,
  );
  const countOpen = db.prepare<[], OpenCount>(
    `select state, count(*) n, min(sent_at) since from change indexed by change_open
     where state in ('sent', 'unknown') group by state`,
  );
  return {
    gravest: (run, count) => gravest.all(run, count),
    countOpen: () => countOpen.all(),
  };
}

import type { Statements } from '../database/prepared-statements.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { most } from '../database/plan-chunks.ts';

/** What of a run is put back when its source is read once more in the middle of it. */
export interface Slicing {
  /** Whether anything planned waits to be sent. */
  hasPlanned(run: string, kind: RecordTypeName): boolean;
  /**
   * Takes back some thousands of what is planned and was not sent: that leaves no trace. Answers
   * whether there may be others.
   */
  withdraw(run: string, kind: RecordTypeName): boolean;
  /** What the run has done is newer than what it had listed: of these the recorded state counts. */
  assumeDone(run: string, kind: RecordTypeName): void;
}

export function slicingIn(db: Statements): Slicing {
  const those = `from change indexed by change_planned
    where state = 'planned' and run = ? and kind = ? limit`;
  const planned = db.prepare<[string, string]>(`select 1 ${those} 1`);
  const withdraw = db.prepare<[string, string]>(
    `delete from change where seq in (select seq ${those} ${most})`,
  );
  const done = `select distinct kind, key from change
    where run = ? and kind = ? and state = 'acked'`;
  const forget = db.prepare(`delete from temp.observed where (kind, key) in (${done})`);
  const assume = db.prepare(
    `insert or replace into temp.looked (kind, key, at) select kind, key, null from (${done})`,
  );
  return {
    hasPlanned: (run, kind) => planned.get(run, kind) !== undefined,
    withdraw: (run, kind) => withdraw.run(run, kind).changes === most,
    assumeDone: (run, kind) => {
      forget.run(run, kind);
      assume.run(run, kind);
    },
  };
}

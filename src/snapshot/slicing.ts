import type { Statements } from './statements.ts';
import type { KindName } from '../model/record.ts';

/** What of a run is put back when its source is read once more in the middle of it. */
export interface Slicing {
  /** Whether anything planned waits to be sent. */
  hasPlanned(run: string, kind: KindName): boolean;
  /** Takes back what is planned and was not sent: it leaves no trace. */
  withdraw(run: string, kind: KindName): void;
  /** What the run has done is newer than what it had listed: of these the recorded state counts. */
  assumeDone(run: string, kind: KindName): void;
}

export function slicingIn(db: Statements): Slicing {
  const planned = db.prepare<[string, string]>(
    `select 1 from change indexed by change_planned
     where state = 'planned' and run = ? and kind = ? limit 1`,
  );
  const withdraw = db.prepare(
    `delete from change where run = ? and kind = ? and state = 'planned'`,
  );
  const done = `select distinct kind, key from change
    where run = ? and kind = ? and state = 'acked'`;
  const forget = db.prepare(`delete from temp.observed where (kind, key) in (${done})`);
  const assume = db.prepare(
    `insert or replace into temp.looked (kind, key, at) select kind, key, null from (${done})`,
  );
  return {
    hasPlanned: (run, kind) => planned.get(run, kind) !== undefined,
    withdraw: (run, kind) => void withdraw.run(run, kind),
    assumeDone: (run, kind) => {
      forget.run(run, kind);
      assume.run(run, kind);
    },
  };
}

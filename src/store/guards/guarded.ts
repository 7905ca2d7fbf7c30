/** Puts together all queries about the staged changes of a run that something may hold back. */
import { type AskedChanges, askedChangesIn } from './guarded-asked.ts';
import { type CanaryChanges, canaryChangesIn } from './canary-changes.ts';
import { type DeferredChanges, deferredIn } from './deferred-changes.ts';
import { type GuardedChanges, guardedChangesIn } from './guarded-changes.ts';
import { type Withdrawals, withdrawalsIn } from './guarded-withdrawals.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** What guards, rules, windows and canaries ask, withhold and leave to a later run. */
export interface StagedGuards extends GuardedChanges {
  withdrawals: Withdrawals;
  asked: AskedChanges;
  deferred: DeferredChanges;
  canary: CanaryChanges;
}

/** Prepares the statements about changes that something may hold back. */
export function stagedGuardsIn(db: Statements): StagedGuards {
  return {
    ...guardedChangesIn(db),
    withdrawals: withdrawalsIn(db),
    asked: askedChangesIn(db),
    deferred: deferredIn(db),
    canary: canaryChangesIn(db),
  };
}

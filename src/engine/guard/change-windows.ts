/**
 * Leaves changes to a later run while no window of the configuration allows them. Nothing is
 * withheld: the next run in the window plans them again. What the CRM states about one person is
 * made at any time, and so are the opt-outs of `undo`. No run makes the other changes of an undo,
 * so that the command has to be called again.
 */
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Problem } from '../../domain/errors.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import { type AskedClass, askedClasses } from '../../domain/guards/plan-rule.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { countWords, waitWords } from '../report/guard-text.ts';
import type { RunContext } from '../context/run-context.ts';

/** Returns whether no window allows a class now. */
export function isClosedNow({ windows, timezone, clock }: RunContext, guard: GuardClass): boolean {
  return windows.length > 0 && isClosed(windows, guard, { at: clock.now(), timezone });
}

/** Returns whether a change must not be sent now. */
export function isTooLate(run: RunContext, { guard, seq }: JournaledChange): boolean {
  if (guard === undefined || !isClosedNow(run, guard)) return false;
  return !run.snapshot.guarded.deferred.isUrgent(seq);
}

/** Counts the records with changes that are left to a later run, by class. */
export function countDeferred({ snapshot }: RunContext): Record<AskedClass, number> {
  const { count } = snapshot.guarded.deferred;
  return { delete: count('delete'), opt_in: count('opt_in'), template: count('template') };
}

/** Returns whether changes of a record type are left to a later run. */
export function hasDeferred(run: RunContext, kind: RecordTypeName): boolean {
  const counts = countDeferred(run);
  return askedClasses.some((of) => guardRows[of].recordType === kind && counts[of] > 0);
}

/** States what waits for a window, and until when. */
export function sayDeferred(run: RunContext): Problem[] {
  const { windows, timezone, clock, snapshot, undo } = run;
  const { count } = snapshot.guarded.deferred;
  return askedClasses
    .filter((of) => count(of, 'window') > 0)
    .map((of): Problem => {
      const { recordType } = guardRows[of];
      const opens = opening(windows, of, { at: clock.now(), timezone });
      const waiting = count(of, 'window');
      if (undo) {
        const what = `of this undo, changes to ${countWords(recordType, waiting)} are not made`;
        const when = opens ? `from ${opens.words} on` : 'in more than two weeks';
        const fix = `run \`crm-mirror undo ${undo.run}\` again ${when}`;
        return { code: 'note', reason: `${what}: no window allows them now`, fix };
      }
      const until = opens?.words ?? 'longer than two weeks';
      return { code: 'note', reason: `${waitWords(of, waiting, until)} (windows)` };
    });
}

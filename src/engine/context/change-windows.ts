/**
 * Leaves changes to a later run while no window of the configuration allows them. Nothing is
 * withheld: the next run in the window plans them again. What the CRM states about one person is
 * made at any time.
 */
import { isClosed, opening } from '../../domain/change-window.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Problem } from '../../domain/errors.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import { type AskedClass, askedClasses } from '../../domain/plan-rule.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { countWords } from '../report/guard-text.ts';
import type { RunContext } from './run-context.ts';

type Windowed = Pick<RunContext, 'windows' | 'timezone' | 'clock' | 'snapshot'>;

/** Returns whether no window allows a class now. */
export function isClosedNow({ windows, timezone, clock }: Windowed, guard: GuardClass): boolean {
  return windows.length > 0 && isClosed(windows, guard, { at: clock.now(), timezone });
}

/** Returns whether a change must not be sent now. */
export function isTooLate(run: Windowed, { guard, seq }: JournaledChange): boolean {
  if (guard === undefined || !isClosedNow(run, guard)) return false;
  return !run.snapshot.guarded.deferred.isStated(seq);
}

/** Counts the records with changes that are left to a later run, by class. */
export function countDeferred({ snapshot }: Windowed): Record<AskedClass, number> {
  const { count } = snapshot.guarded.deferred;
  return { delete: count('delete'), opt_in: count('opt_in'), template: count('template') };
}

/** Returns whether changes of a record type are left to a later run. */
export function hasDeferred(run: Windowed, kind: RecordTypeName): boolean {
  const counts = countDeferred(run);
  return askedClasses.some((of) => guardRows[of].recordType === kind && counts[of] > 0);
}

/** States what waits for a window, and until when. */
export function sayDeferred(run: Windowed): Problem[] {
  const { windows, timezone, clock, snapshot } = run;
  const { count } = snapshot.guarded.deferred;
  return askedClasses
    .filter((of) => count(of, 'window') > 0)
    .map((of): Problem => {
      const { recordType, words } = guardRows[of];
      const opens = opening(windows, of, { at: clock.now(), timezone });
      const waiting = count(of, 'window');
      const wait = waiting === 1 ? 'waits' : 'wait';
      const until = opens ? `for ${opens.words}` : 'for longer than two weeks';
      const who = `${countWords(recordType, waiting)} ${words.planned}`;
      return { code: 'note', reason: `${who} ${wait} ${until} (windows)` };
    });
}

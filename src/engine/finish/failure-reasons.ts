/** Why a run that did not end as it should did not. */
import { Interrupted } from '../../domain/errors.ts';
import type { Stop } from '../../records/record-type.ts';
import type { RunState } from '../context/run-state.ts';
import type { JournalTally } from '../../snapshot/tables/journal.ts';
import { openIn } from '../context/run-context.ts';

/** `tally`: of the changes of the run. */
export function reasonsOf(context: RunState, tally: readonly JournalTally[]): string[] {
  const { run, breaker, failure, parts } = context;
  const reasons = [...context.reasons, ...breaker.reasons()];
  if (failure && !(failure instanceof Interrupted)) reasons.push(failure.message);
  if (!run.writes) return reasons;
  const unknown = parts.flatMap(({ type }) => openIn(run, type.name)).length;
  if (unknown > 0) {
    reasons.push(
      `the outcome of ${unknown} changes is not known yet → the next run reads what became of them`,
    );
  }
  const unsent = tally.reduce((sum, { state, n }) => sum + (state === 'planned' ? n : 0), 0);
  if (unsent > 0 && !run.stop.aborted) {
    reasons.push(`${unsent} changes were not sent → the next run plans them again`);
  }
  return reasons;
}

/** A line for each setting that keeps people from a change, with how many people that are. */
export function sayStopped({ protect, optIns }: Record<Stop, number>): string[] {
  const people = (n: number): string => (n === 1 ? '1 person' : `${n} people`);
  const lines: string[] = [];
  if (optIns > 0) {
    lines.push(
      `policy.optIns is off: ${people(optIns)} would be created or opted in → set it to on to do so`,
    );
  }
  if (protect > 0) {
    lines.push(
      `contacts.protect: ${people(protect)} would be changed and stay as they are → ` +
        '`crm-mirror explain <email>` says what for one person',
    );
  }
  return lines;
}

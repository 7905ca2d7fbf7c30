/** Words the title of a rehearsal: what it did, and how it ended. All functions are pure. */
import { doneGroups } from '../../compose/output/change-groups.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { heldIn, type Summary } from '../../engine/report/run-summary.ts';
import type { Rehearsed } from './rehearse-run.ts';

const modes = {
  full: 'full comparison',
  fast: 'compared with what is recorded',
  single: '',
  undo: '',
};

export const endings: Record<Summary['status'], string> = {
  done: 'It would end well.',
  held: 'It would end, except for what awaits approval.',
  rejected: 'It would end, but some records have problems.',
  failed: 'It would fail.',
  interrupted: 'The rehearsal was interrupted.',
};

/** Returns the title. What faults or guards kept back is counted in it. */
export function titleOf(rehearsed: Rehearsed): string {
  const { summary } = rehearsed;
  const { mirror, mode, ms } = summary;
  const sum = (counts: readonly number[]): number => counts.reduce((all, n) => all + n, 0);
  // A template is created in two steps.
  const planned = rehearsed.groups.map(
    ({ kind, held, n, own }) => (kind === 'contact' ? n : own) * Number(!held),
  );
  const counts = {
    planned: sum(planned),
    done: sum(doneGroups(summary).map(({ n }) => n)),
    held: sum(Object.values(heldIn(summary))),
  };
  const what = `${changesDone(counts)}, in ${lasting(ms)}.`;
  const ending = `${endingOf(summary, counts)}${waitingWords(summary)}`;
  return `Rehearsal for ${mirror} (${modes[mode]}): ${what} ${ending}`;
}

/** The changes that the run planned and did not withhold, those it made, and records withheld. */
interface Counts {
  planned: number;
  done: number;
  held: number;
}

function changesDone({ planned, done, held }: Counts): string {
  if (done < planned) return `${withCommas(done)} of ${counted(planned, 'planned change')}`;
  if (done > 0) return counted(done, 'change');
  return held > 0 ? 'nothing done' : 'nothing to do';
}

/** Says how the run would end, and how many changes were kept back. */
function endingOf({ status }: Pick<Summary, 'status'>, { planned, done, held }: Counts): string {
  const first =
    status === 'failed' && done < planned
      ? `It would fail; ${counted(planned - done, 'planned change')} would not be made.`
      : endings[status];
  if (held === 0) return first;
  const waits = `changes of ${counted(held, 'record')} would await approval.`;
  return status === 'held'
    ? `It would end; ${waits}`
    : `${first} ${waits.charAt(0).toUpperCase() + waits.slice(1)}`;
}

function waitingWords({ deferred }: Summary): string {
  const n = deferredCount(deferred);
  return n === 0 ? '' : ` ${counted(n, 'record')} would wait for a later run.`;
}

/** Groups all problems that a run has found by cause. The list of problems has a limit. */
import { guardNames, type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { findingsNamed, type RunState } from '../context/run-state.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { groupProblems, type ProblemGroup, type ProblemGroups } from '../report/problem-groups.ts';
import { sayRejected } from '../write-back/report-opt-outs.ts';
import type { ReturnedRow } from '../../store/tables/opt-out-reports.ts';

/** Collects the problems that the summary counts, except for what awaits approval. */
export async function groupFound(state: RunState): Promise<ProblemGroups> {
  const { run, parts, known } = state;
  const { problems, ranges } = run.snapshot;
  const found = groupProblems();
  const only = onlyKey(run);
  for (const { type } of parts) {
    const { name } = type;
    for await (const range of inTurns(run, ranges.ofNoticed(name))) {
      const noticed = problems.counted.noticed(range);
      found.add(
        name,
        noticed.filter((one) => one.class !== 'held'),
      );
    }
    if (only !== undefined) {
      found.add(name, problems.counted.parkedOf({ kind: name, key: only }));
      continue;
    }
    const { whole, reading } = findingsNamed(known, name);
    const isPartial = !whole && reading !== '';
    for await (const range of inTurns(run, ranges.ofProblems(name))) {
      found.add(name, problems.counted.parked(range));
      if (isPartial) found.add(name, problems.counted.unread(range));
    }
  }
  if (state.mirror.returns) {
    const all = run.snapshot.optOutReports.rejected('contact', mostReports);
    const ours = all.filter(({ email }) => only === undefined || email === only);
    found.add('contact', refusedReports(ours));
  }
  return found;
}

const mostReports = 1_000_000;

/** Returns the opt-outs that the CRM refused, in the form in which problems are grouped. */
export function refusedReports(rows: readonly ReturnedRow[]) {
  return rows.map(({ email: key, reason, fix }) => ({
    class: 'rejected' as const,
    cause: 'crm-refused' as const,
    about: sayRejected(reason ?? ''),
    option: null,
    value: null,
    fix: fix ?? '',
    n: 1,
    samples: [{ key, place: null }],
  }));
}

/** Returns the groups, with what awaits approval in each guard class. */
export function withHeld(
  found: ProblemGroups,
  { tally }: RunState,
  held: Record<GuardClass, number>,
): ProblemGroup[] {
  const told = tally.problems().filter((one) => one.class === 'held');
  for (const guard of guardNames.filter((of) => held[of] > 0)) {
    found.put(
      heldGroup(
        guard,
        held[guard],
        told.find(({ key }) => key === guard) ?? { reason: '', fix: '' },
      ),
    );
  }
  return found.groups();
}

/** Returns the group of what awaits approval because of a guard. */
export function heldGroup(
  guard: GuardClass,
  count: number,
  { reason, fix }: { reason: string; fix: string },
): ProblemGroup {
  const kind = guardRows[guard].recordType;
  const about = { class: 'held', kind, cause: 'awaiting-approval' } as const;
  const none = { option: undefined, values: [], others: 0, samples: [] };
  return { ...about, ...none, count, reason, fix };
}

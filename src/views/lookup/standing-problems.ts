/** Reads from the snapshot which problems the last runs recorded. */
import { type GuardClass, guardNames } from '../../domain/guard-classes.ts';
import type { ProblemCause, ProblemClass } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { heldGroup, refusedReports } from '../../engine/finish/group-found-problems.ts';
import { groupProblems, type ProblemGroup } from '../../engine/report/problem-groups.ts';
import { sayRejected } from '../../engine/write-back/report-delivery.ts';
import { approvingUndo } from '../../engine/report/guard-text.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import type { ApprovalOf } from './held-changes.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/** A problem of one record. The address and the value may be personal data. */
export interface StandingProblem {
  class: ProblemClass;
  kind: RecordTypeName;
  cause: ProblemCause;
  key: Key;
  /** The ids of the records in the CRM. */
  crmIds: readonly string[];
  /** The channel or the operation; '' for the whole record. */
  part: string;
  place: string | null;
  option: string | null;
  value: string | null;
  reason: string;
  fix: string;
  /** When a run first recorded it, in milliseconds since the epoch. */
  since: number;
}

const kinds: readonly RecordTypeName[] = ['contact', 'template'];
const most = 1_000_000;

/** Returns the groups of all recorded problems. */
export function standingGroups(snapshot: Snapshot): ProblemGroup[] {
  const { problems, optOutReports } = snapshot;
  const found = groupProblems();
  for (const kind of kinds) {
    for (const range of problems.ranges(kind)) {
      const known = problems.counted.known(kind, range);
      found.add(
        kind,
        known.filter((one) => one.class !== 'held'),
      );
    }
    found.add(kind, refusedReports(optOutReports.rejected(kind, most)));
  }
  // A group for each guard with changes that await approval.
  const plans = snapshot.awaitingApproval.current();
  for (const guard of guardNames) {
    const [plan] = plans.toSorted((a, b) => b.held[guard] - a.held[guard]);
    if (!plan || plan.held[guard] === 0) continue;
    const stated = plan.undoes === null ? heldReason(snapshot, guard) : undefined;
    found.put(heldGroup(guard, plan.held[guard], stated ?? awaits(plan)));
  }
  return found.groups();
}

/** Returns why a guard withholds changes, as the last run that judged them said. */
export function heldReason(
  { problems }: Snapshot,
  guard: GuardClass,
): { reason: string; fix: string } | undefined {
  const told = kinds.flatMap((kind) => problems.counted.list(kind, guard));
  return told.find((one) => one.class === 'held');
}

function awaits({ plan, undoes }: { plan: string; undoes: string | null }) {
  if (undoes !== null) {
    return { reason: '`undo` awaits approval', fix: approvingUndo({ undoes, plan }) };
  }
  return { reason: 'awaits approval', fix: `\`crm-mirror approve ${plan}\`, if it is right` };
}

/** Yields every recorded problem. What is approved waits for a run, and says so. */
export function* standingProblems(
  snapshot: Snapshot,
  approvalOf: ApprovalOf,
): Generator<StandingProblem> {
  const { problems, optOutReports } = snapshot;
  yield* heldChanges(snapshot, approvalOf);
  for (const kind of kinds) {
    for (const range of problems.ranges(kind)) {
      const rows = problems.counted.list(kind, range).filter((one) => one.class !== 'held');
      for (const row of rows) {
        const crmIds = row.crmId === null ? idsOf(snapshot, kind, row.key) : [row.crmId];
        yield { ...row, kind, crmIds };
      }
    }
    for (const row of optOutReports.rejected(kind, most)) {
      const { email: key, crmId, channel: part, reason, fix, plannedAt: since } = row;
      const about = { class: 'rejected', kind, cause: 'crm-refused', ...nowhere } as const;
      const said = { reason: sayRejected(reason ?? ''), fix: fix ?? '' };
      yield { ...about, key, part, ...said, since, crmIds: crmId === '' ? [] : [crmId] };
    }
  }
}

const nowhere = { place: null, option: null, value: null };

function* heldChanges(snapshot: Snapshot, approvalOf: ApprovalOf): Generator<StandingProblem> {
  const told = new Set<string>();
  for (const { plan, since, undoes } of snapshot.awaitingApproval.current()) {
    for (const { kind, key, op, part } of snapshot.awaitingApproval.changes(plan, most)) {
      const name = JSON.stringify([kind, key, op, part]);
      if (told.has(name)) continue;
      told.add(name);
      const about = { class: 'held', kind, cause: 'awaiting-approval', ...nowhere } as const;
      const crmIds = idsOf(snapshot, kind, key);
      const approval = approvalOf({ kind, key, op, part });
      yield {
        ...about,
        key,
        part: [op, part].join(' ').trim(),
        ...(approval
          ? {
              reason: `approved${byWords(approval)}, waits for a run`,
              fix: 'the next run makes it',
            }
          : awaits({ plan, undoes })),
        since,
        crmIds,
      };
    }
  }
}

/** Returns the ids of the CRM's records with this key. */
function idsOf({ recorded, duplicates }: Snapshot, kind: RecordTypeName, key: Key): string[] {
  if (kind === 'template') return [];
  return [...new Set([...recorded.originsOf(kind, key), ...duplicates.of(kind, key)])].toSorted();
}

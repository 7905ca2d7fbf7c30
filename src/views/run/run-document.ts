/** Makes the document of a run, which --json of `plan`, `sync`, `backfill` and `undo` prints. */
import { shownGroups } from '../lookup/problem-groups.ts';
import type { Summary } from '../../engine/report/run-summary.ts';
import type { Names } from '../lookup/person-names.ts';
import type { Sample } from './change-groups.ts';

export type RunDocument = ReturnType<typeof runDocument>;

/**
 * Returns the document. `names` names people, and values of the CRM are in it only with
 * `addresses`. `planned`: what the plan of an undo would do.
 */
export function runDocument(
  { reasonCodes: _, ...summary }: Summary,
  { names, addresses, planned }: { names: Names; addresses: boolean; planned?: readonly Sample[] },
) {
  const { certificate, problems, groups, cannot } = summary;
  return {
    ...summary,
    // A side that was not read counts as not certified.
    certificate: { source: certificate.source ?? false, platform: certificate.platform ?? false },
    problems: problems.map(({ isNew, shown, ...problem }) => {
      const { kind, class: of, cause, fix } = problem;
      const reason = addresses ? (shown ?? problem.reason) : problem.reason;
      return { kind, key: names(problem), class: of, cause, reason, fix, new: isNew };
    }),
    groups: shownGroups(groups, { names, addresses }),
    ...(cannot && {
      cannot: cannot.map((group) => ({
        ...group,
        records: group.records.map(({ key, channel }) => ({
          key: names({ kind: group.kind, key }),
          channel,
        })),
      })),
    }),
    ...(planned && {
      planned: planned.map(({ kind, op, held, n: count, records }) => ({
        kind,
        op,
        held,
        count,
        records: records.map(({ key, parts: channels, reason }) => ({
          key: names({ kind, key }),
          channels,
          reason,
        })),
      })),
    }),
  };
}

/** The document of a run that would undo another. */
export type UndoPlan = RunDocument & Required<Pick<RunDocument, 'undoes' | 'planned' | 'cannot'>>;

/** Returns whether what a process of this program has printed is the document of a run. */
export function isRunDocument(value: unknown): value is RunDocument {
  return typeof value === 'object' && value !== null && 'run' in value && 'contacts' in value;
}

/** Returns whether it is the plan of an undo. */
export function isUndoPlan(value: unknown): value is UndoPlan {
  return isRunDocument(value) && 'undoes' in value && 'planned' in value && 'cannot' in value;
}

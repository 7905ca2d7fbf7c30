/** Says what of a run would be undone, and what cannot be. */
import type { CannotUndo } from '../../engine/report/run-summary.ts';
import { counted } from '../../domain/values/counted.ts';
import { changeName } from '../../compose/output/change-words.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import type { Sample } from './run-view.ts';

/** Returns the groups with the records under the names that may be shown. */
export function namedCannot(groups: readonly CannotUndo[], names: Names): CannotUndo[] {
  return groups.map((group) => ({
    ...group,
    records: group.records.map(({ key, channel }) => ({
      key: names({ kind: group.kind, key }),
      channel,
    })),
  }));
}

/** Returns the lines for people: each reason with its number, and a few records. */
export function cannotLines(groups: readonly CannotUndo[], names: Names): string[] {
  if (groups.length === 0) return [];
  const all = groups.reduce((sum, { count }) => sum + count, 0);
  const lines = namedCannot(groups, names).flatMap(({ op, rule, reason, count, records }) => {
    const some = records.map(({ key, channel }) => (channel === '' ? key : `${key} (${channel})`));
    const more = count > records.length ? ` and ${count - records.length} more` : '';
    return [
      `  ${counted(count, 'change')} (${changeName(op, true)}): ${reason} [${rule}]`,
      `    ${some.join(', ')}${more}`,
    ];
  });
  return [`Cannot be undone: ${counted(all, 'change')}`, ...lines];
}

/** Returns the groups of a plan with their first records under the names that may be shown. */
export function namedSamples(samples: readonly Sample[], names: Names) {
  return samples.map(({ group: { kind, op, held, n: count }, records }) => ({
    kind,
    op,
    held,
    count,
    records: records.map(({ key, parts: channels, reason }) => ({
      key: names({ kind, key }),
      channels,
      reason,
    })),
  }));
}

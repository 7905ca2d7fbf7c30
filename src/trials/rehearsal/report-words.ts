/** The words of a rehearsal's report for one person. All functions are pure. */
import { changeName, stateWords } from '../../compose/output/change-words.ts';
import type { PlannedRecord } from '../../engine/report/plan-view.ts';
import type { Difference, PersonState } from './platform-state.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';

/** Formats the states of all contacts of a person. */
export function statesWords(states: readonly PersonState[]): string {
  return states.length === 0 ? stateWords(undefined) : states.map(stateWords).join(' / ');
}

/** Formats the reasons for changes, each once. */
export function reasonWords(changes: readonly PlannedRecord[]): string {
  return [...new Set(changes.map(({ reason }) => reason))].join('; ');
}

/** Formats the changes with their reasons: `opt out ch_news: the CRM says so` */
export function changesWords(changes: readonly PlannedRecord[]): string {
  if (changes.length === 0) return 'nothing to do';
  const words = changes.map(({ op, parts, held, reason }) => {
    const waits = held ? ' (awaits approval)' : '';
    return `${[changeName(op, false), parts.join(', ')].join(' ').trim()}${waits}: ${reason}`;
  });
  return words.join('; ');
}

/** Sorts people so that those with a reason, which may be known of some only, come first. */
export function explainedFirst(
  people: readonly Difference<PersonState>[],
  { changes }: Pick<Rehearsed, 'changes'>,
): Difference<PersonState>[] {
  const isUnexplained = ({ key }: Difference<PersonState>): number =>
    Number(!changes.has(recordName({ kind: 'contact', key })));
  return people.toSorted((a, b) => isUnexplained(a) - isUnexplained(b));
}

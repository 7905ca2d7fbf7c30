/** The words of a rehearsal's report for one person. All functions are pure. */
import { changeName } from '../cli/output/change-words.ts';
import type { PlannedRecord } from '../engine/report/plan-view.ts';
import type { PersonState } from './platform-state.ts';

/** Formats a state: `ch_news in, ch_product out, blocked` */
export function stateWords(state: PersonState | undefined): string {
  if (!state) return 'not there';
  const channels = Object.entries(state.channels).map(
    ([id, is]) => `${id} ${is === 'opt_in' ? 'in' : 'out'}`,
  );
  const status = state.status === 'subscribed' ? [] : [state.status];
  const words = [...channels, ...status];
  return words.length === 0 ? 'in no channel' : words.join(', ');
}

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

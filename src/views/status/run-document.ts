/** Builds the documents of runs and changes, and their words, for the command and the console. */
import { approvalOf, type ToldApprover } from '../../compose/output/decision-words.ts';
import { changeName, outcomeName } from '../../compose/output/change-words.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { KeptChange, KeptRun } from '../../store/tables/run-history.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import * as history from './run-history.ts';

/** A run in the list of runs. */
export type ListedRun = history.ToldRun & { changes: history.ToldChanges };

/**
 * Returns the documents of runs, with the numbers of their changes. `chunks`: how many chunks of
 * the journal are counted for one run at most.
 */
export function listedRuns(
  { snapshot, leased }: Seen,
  runs: readonly KeptRun[],
  chunks?: number,
): ListedRun[] {
  if (!snapshot) return [];
  const isRunning = history.runningOf(snapshot, leased);
  return runs.map((run) => ({
    ...history.tellRun(run, isRunning),
    changes: history.tellChanges(snapshot, run.id, {
      hasEnded: run.endedAt !== null,
      ...(chunks === undefined ? {} : { chunks }),
    }),
  }));
}

/** Formats the mode with the codes of why it was full, such as: full (schedule) */
export function modeWords({ mode, fullBecause }: history.ToldRun): string {
  const codes = fullBecause.map(({ code }) => code).join(', ');
  return codes === '' ? mode : `${mode} (${codes})`;
}

/** Formats who asked for a run, such as: anna on mail-1; '' for what runs by itself. */
export function askedWords({ askedBy }: history.ToldRun): string {
  return askedBy?.name ?? '';
}

/** Other words for outcomes. */
export type StateWords = Readonly<Record<string, string>>;

/** Formats counts such as: 3 created, 1 template updated; still to send: 2 opt out */
export function changeWords(
  { contacts, templates, isCut }: history.ToldChanges,
  stateWords: StateWords = {},
): string {
  const byState = new Map<string, string[]>([['acked', []]]);
  const count = (of: history.ToldChanges['contacts'], kind: RecordTypeName): void => {
    for (const [op, states] of Object.entries(of)) {
      for (const [state, n] of Object.entries(states)) {
        const word = changeName(op, state === 'acked');
        const number = kind === 'template' ? counted(n, 'template') : withCommas(n);
        byState.set(state, [...(byState.get(state) ?? []), `${number} ${word}`]);
      }
    }
  };
  count(contacts, 'contact');
  count(templates, 'template');
  const parts = [...byState].filter(([, found]) => found.length > 0);
  const words = parts.map(([state, found]) => {
    const all = found.join(', ');
    return state === 'acked' ? all : `${stateWords[state] ?? outcomeName(state)}: ${all}`;
  });
  const all = words.join('; ') || 'none';
  return isCut ? `${all}; and more, which are not counted` : all;
}

/** A change of a run and its outcome. */
export interface ToldChange {
  kind: RecordTypeName;
  key: string;
  op: string;
  part: string;
  outcome: string;
  reason: string | null;
  fix: string | null;
  approval: ToldApprover | null;
  plannedAt: string;
  sentAt: string | null;
  endedAt: string | null;
}

/** Returns the document of a change. `key` is the name of the record. */
export function changeOf(change: KeptChange, key: string): ToldChange {
  return {
    kind: change.kind,
    key,
    op: change.op,
    part: change.part,
    outcome: change.state,
    reason: change.reason,
    fix: change.fix,
    approval: approvalOf(change),
    plannedAt: instant(change.plannedAt),
    sentAt: instantOrNull(change.sentAt),
    endedAt: instantOrNull(change.endedAt),
  };
}

/** Returns how many changes are counted. */
export function totalOf({ contacts, templates }: history.ToldChanges): number {
  const states = [contacts, templates].flatMap((of) => Object.values(of));
  return states.flatMap((of) => Object.values(of)).reduce((sum, n) => sum + n, 0);
}

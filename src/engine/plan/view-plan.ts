/**
 * Groups the staged plan for people, and finds the reasons for the changes that are shown. A reason
 * takes a decision of its own, so a large plan costs no more than its samples.
 */
import type { Change } from '../../domain/change.ts';
import type { RecordType, States } from '../../records/record-type.ts';
import type { ChangeGroup } from '../../store/staging/staging.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { statesOf } from '../read/record-states.ts';
import type { PlannedRecord, PlanView } from '../report/plan-view.ts';

/** Counts the groups of the staged plan, and returns access to their records. */
export async function viewPlan(state: RunState): Promise<PlanView> {
  const { staging } = state.run.snapshot;
  const groups = new Map<string, ChangeGroup>();
  for await (const chunk of inTurns(state.run, staging.chunks())) {
    for (const group of staging.groupsIn(chunk)) {
      const name = `${group.kind} ${group.op} ${group.held}`;
      const { n, own } = groups.get(name) ?? { n: 0, own: 0 };
      groups.set(name, { ...group, n: n + group.n, own: own + group.own });
    }
  }
  return {
    groups: [...groups.values()],
    records: (group, most) => recordsOf(state, group, most),
    cannot: state.run.undo?.cannot(),
  };
}

async function* recordsOf(
  state: RunState,
  group: ChangeGroup,
  most: number,
): AsyncGenerator<PlannedRecord> {
  const { run, parts } = state;
  const { staging } = run.snapshot;
  const type = parts.find((part) => part.type.name === group.kind)?.type;
  if (!type) return;
  let last: PlannedRecord | undefined;
  let count = 0;
  // The changes of a record follow each other, possibly across the border of two chunks.
  for await (const chunk of inTurns(run, staging.chunks())) {
    for (const change of staging.groupedIn(chunk, group)) {
      if (last && addPart(last, change)) continue;
      if (last) yield last;
      if (count === most) return;
      count += 1;
      last = shownOf(state, type, { change, group });
    }
  }
  if (last) yield last;
}

/** Adds a change to a record. Returns false if it belongs to another one. */
function addPart(record: PlannedRecord, { key, part }: Change): boolean {
  if (record.key !== key) return false;
  if (!record.parts.includes(part)) record.parts.push(part);
  return true;
}

function shownOf(
  state: RunState,
  type: RecordType,
  { change, group }: { change: Change; group: ChangeGroup },
): PlannedRecord {
  const { key, part } = change;
  const { kind, op, held } = group;
  const states = statesOf(state.run, type, { key, known: findingsOf(state, type) });
  const parts = part === '' ? [] : [part];
  return { kind, op, held, key, parts, reason: reasonOf(state, type, { change, states }) };
}

function reasonOf(
  { run: { undo } }: RunState,
  type: RecordType,
  { change, states }: { change: Change; states: States },
): string {
  return undo ? `undoes what run ${undo.run} did` : type.reason(change, states);
}

/**
 * Holds what a run in mode `undo` is about: the acknowledged changes of an earlier run. It collects
 * those that cannot be undone.
 */
import { Invalid } from '../../domain/errors.ts';
import type { DoneChange } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { NotUndone } from '../../records/decision.ts';
import type { Stretch } from '../../store/database/key-range.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { CannotUndo } from '../report/run-summary.ts';
import type { ToUndo } from './mirror-context.ts';

export type UndoneRun = ReturnType<typeof undoneRun>;

const mostNamed = 3;

/** Finds the run to undo, for the run `by`. Throws Invalid if there is none, or if it is unfit. */
export function undoneRun(snapshot: Snapshot, { run: word, ops }: ToUndo, by: string) {
  const run = word === 'last' ? findLastRun(snapshot) : word;
  refuseUnfit(snapshot, run);
  const { runChanges } = snapshot;
  const groups = new Map<string, CannotUndo>();
  const noted = new Set<string>();
  return {
    run,
    chunks: (): Iterable<Stretch> => runChanges.chunks({ run }),
    /** Makes the records of a chunk that the run has changed candidates. */
    select: (kind: RecordTypeName, chunk: Stretch): void =>
      snapshot.stage(() => runChanges.select({ ...chunk, run, of: kind })),
    changesOf(kind: RecordTypeName, key: Key): DoneChange[] {
      const all = runChanges.of({ run, kind, by, key });
      if (!ops) return all;
      // A creation includes the further channels of the person and the second step of a template.
      const isPart = all.some(({ op }) => op === 'create') && ops.includes('create');
      return all.filter(
        ({ op }) => ops.includes(op) || (isPart && (op === 'opt_in' || op === 'complete')),
      );
    },
    lastAt: (kind: RecordTypeName, key: Key): number | undefined => runChanges.lastAt(kind, key),
    /** Notes what of one record cannot be undone. Only the first decision about a record counts. */
    note({ kind, key }: { kind: RecordTypeName; key: Key }, cannot: readonly NotUndone[]): void {
      const record = `${kind} ${key}`;
      if (noted.has(record)) return;
      noted.add(record);
      for (const { op, part: channel, rule, reason } of cannot) {
        const name = `${kind} ${op} ${rule} ${reason}`;
        const group = groups.get(name) ?? { kind, op, rule, reason, count: 0, records: [] };
        group.count += 1;
        if (group.records.length < mostNamed) group.records.push({ key, channel });
        groups.set(name, group);
      }
    },
    /** Returns what cannot be undone, grouped by reason; the largest group comes first. */
    cannot: (): CannotUndo[] => [...groups.values()].toSorted((a, b) => b.count - a.count),
  };
}

const mostLooked = 1000;

/** Returns the newest run that has changed anything and is no undo. Throws Invalid if none. */
function findLastRun(snapshot: Snapshot): string {
  const found = snapshot.runs.newest(mostLooked).find(({ id, mode }) => {
    const states = mode === 'undo' ? undefined : statesOf(snapshot, id);
    return ['acked', 'sent', 'unknown'].some((state) => states?.has(state));
  });
  if (found) return found.id;
  throw new Invalid('no run has changed anything, so there is nothing to undo', {
    fix: '`crm-mirror runs` lists the runs',
  });
}

function refuseUnfit(snapshot: Snapshot, id: string): void {
  const found = snapshot.runs.get(id);
  if (!found) {
    throw new Invalid(`${id}: there is no such run`, {
      fix: '`crm-mirror runs` lists the runs; those older than `keep` are dropped',
    });
  }
  const states = statesOf(snapshot, id);
  const open = (states.get('sent') ?? 0) + (states.get('unknown') ?? 0);
  const hasEnded = found.endedAt !== null;
  if (!hasEnded && (open > 0 || states.has('planned'))) {
    throw new Invalid(`${id}: this run has not ended, or it was killed`, {
      fix: 'wait for it, or run `crm-mirror sync`, which finds out what became of its changes',
    });
  }
  if (open > 0) {
    const reason = `${id}: the outcome of ${counted(open, 'change')} of this run is not known yet`;
    throw new Invalid(reason, { fix: 'run `crm-mirror sync`, which finds it out' });
  }
  if (!states.has('acked')) {
    throw new Invalid(`${id}: this run has changed nothing, so there is nothing to undo`, {
      fix: '`crm-mirror runs` lists what each run has changed',
    });
  }
}

function statesOf({ journal }: Snapshot, run: string): Map<string, number> {
  const states = new Map<string, number>();
  for (const some of journal.tally(run)) {
    for (const { state, n } of some) states.set(state, (states.get(state) ?? 0) + n);
  }
  return states;
}

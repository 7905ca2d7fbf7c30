/**
 * One run of a mirror: read → observe → plan → guard → apply → finish. A plan is the same run,
 * stopped before anything is written.
 *
 * If a run learns something while it applies changes (a person is found on the platform, or has
 * been removed from it), it makes new decisions in a further round, with three rounds at most.
 */
import { Busy, Invalid, isExpected } from '../domain/errors.ts';
import { bindAccount, keepBinding } from './account/account-binding.ts';
import { abandonLeftovers, beginRun } from './begin-run.ts';
import {
  isRecord,
  type Mirror,
  type MirrorPart,
  modeName,
  onlyKey,
  type RunOptions,
} from './context/mirror-context.ts';
import { type RunState, stateOf } from './context/run-state.ts';
import { writeAuditLog } from './context/run-context.ts';
import { finishRun } from './finish/finish-run.ts';
import { invalidateCursorsAfter } from './finish/source-cursor.ts';
import { applyGuards } from './guard/apply-guards.ts';
import { readBackCanaries } from './guard/canaries.ts';
import { storeAwaitingApproval } from './guard/plan-approval.ts';
import {
  applyInSlices,
  decide,
  recoverAll,
  selectCandidates,
  showPlan,
  writePlan,
  viewPlan,
} from './plan-and-apply.ts';
import { findAbsences, lockPerson, observe, readSources, storeStated } from './read-and-observe.ts';
import { keepDuplicates } from './read/partial-read.ts';
import type { Summary } from './report/run-summary.ts';
import { counted } from '../domain/values/counted.ts';

const mostRounds = 3;

/**
 * Performs one run. The summary reports problems with people, the source or the platform. Throws
 * Invalid for input that cannot be used at all, Busy for input that is not ready, and unexpected
 * errors.
 */
export async function run(mirror: Mirror, options: RunOptions): Promise<Summary> {
  const state = stateOf(beginRun(mirror, options));
  try {
    try {
      await work(state);
    } catch (error) {
      if (!isExpected(error)) throw error;
      state.failure = error;
    }
    const summary = await finishRun(state);
    if (state.failure instanceof Invalid || state.failure instanceof Busy) throw state.failure;
    return summary;
  } catch (error) {
    invalidateCursorsAfter(state);
    throw error;
  } finally {
    state.lock?.release();
    mirror.requestLog?.setRun(undefined);
    mirror.locks.end(state.run.id);
  }
}

async function work(state: RunState): Promise<void> {
  const { mirror, options } = state;
  const { writes, stop } = options;
  const { snapshot } = state.run;
  const keepsAll = writes && onlyKey(options) === undefined;
  if (writes) await writeAuditLog(state.run);
  if (keepsAll) await abandonLeftovers(state.run, state.parts);
  state.notes.push(...(await bindAccount(state.run, mirror.account)));

  await lockPerson(state);
  if (writes) await recoverAll(state, ['full', 'undo'].includes(modeName(options.mode)));
  if (!isRecord(options.mode)) await readSources(state);
  await observe(state);
  const listings = [...state.known.values()].flatMap(({ listing }) => listing ?? []);
  if (writes) keepBinding(snapshot, mirror.account, listings);
  await readBackCanaries(state);
  await findAbsences(state);
  for (const { type } of state.parts) await selectCandidates(state, type);
  if (keepsAll) await keepDuplicates(state, 'read');

  for (let round = 1; ; round += 1) {
    await decide(state);
    if (!state.plan) await showPlan(state);
    await applyGuards(state);
    if (options.shows) await options.shows(await viewPlan(state), round);
    if (!writes) break;
    if (round > (options.agrees ? 1 : mostRounds)) {
      noteChangesLeft(state);
      break;
    }
    await writePlan(state, await storeAwaitingApproval(state, round));
    if (round === 1) await storeStated(state);
    snapshot.candidates.clear();
    await applyInSlices(state);
    if (stop.aborted || state.breaker.stopped()) break;
    // Has the run learned something that requires another decision?
    const isNew = ({ type }: MirrorPart) => snapshot.candidates.next(type.name, '', 1).length > 0;
    if (!state.parts.some(isNew)) break;
  }
  if (keepsAll && !stop.aborted) await keepDuplicates(state, 'done');
}

/** Reports the changes that the last round leaves to the next run. */
function noteChangesLeft({ run: { snapshot, undo }, reasons }: RunState): void {
  const left = snapshot.guarded.countPassing();
  if (left === 0) return;
  const reason = `${counted(left, 'change')} could not be made in this run`;
  const fix = undo ? `run \`crm-mirror undo ${undo.run}\` again` : 'run again';
  reasons.push({ code: 'changes-left', reason, fix });
}

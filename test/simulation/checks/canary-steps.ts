/**
 * That a canary withholds everybody but its slice (docs/guards-and-approvals.md). Who is in a slice
 * is told apart from how the engine chooses it: the snapshot says after each run which canary is
 * open, and in its slice are those whom runs have changed since it began and until it waits.
 *
 *   canary of the class   whom a run about all people may change in that class
 *   none                  everybody; on an occasion no more than `floor`
 *   begins in this run    no more than policy puts into a slice
 *   applying              those changed since it began, and others until the slice is full
 *   waiting               those changed since it began; everybody, from the first run on that
 *                         begins after `wait` and finds the slice within the bounds
 *   failed                those whom an approval shows that was given since; everybody, once all
 *                         that was shown has been approved
 *   passed                everybody, until another mapping
 *
 * Another mapping ends the canaries about people in any state. Newcomers wait like others, and so
 * does what an approval shows that was given before the slice was read back. Never withheld are
 * stated opt-outs, people flagged as deleted, erasures and new templates, none of which is noted
 * here; nor what a run does that is limited to some people, or undoes another.
 */
import type { Approval, Passing, Shown } from './approvals.ts';
import { countOf, isOutOfBounds, isSame, mostIn } from './canary-facts.ts';
import type { Known, Outing } from './checker-state.ts';

export type Guard = Exclude<Passing['guard'], 'opt_out'>;

/** A change of a class, as it reached the platform. */
export interface Noted extends Omit<Passing, 'done' | 'guard'> {
  guard: Guard;
  what: string;
  /** The contact or template. */
  id: string | undefined;
  /** What the platform made of it; undefined: that proves nothing any more. */
  is: 'done' | 'refused' | undefined;
  /** By the clock that never jumps. */
  at: number;
  outing: Outing;
}

export interface SliceSoFar {
  /** The mapping under which it began. */
  mapping: string | undefined;
  state: 'applying' | 'waiting' | 'failed' | 'passed';
  /** How many records its slice may have. */
  most: number;
  slice: readonly Noted[];
  /** When the slice was changed last, before it waited. */
  lastAt: number;
  /** The approvals that were in force when it was found out of bounds. */
  former: ReadonlySet<string>;
}

/** A run about all people, as far as one class is concerned. */
interface Run {
  guard: Guard;
  /** What it has changed. */
  own: readonly Noted[];
  /** What the snapshot says of the canary after it; `isApproved`: out of bounds, and approved. */
  now: (Pick<SliceSoFar, 'state'> & { isApproved: boolean }) | undefined;
  isOccasion: boolean;
  outing: Outing;
}

type Facts = Pick<Known, 'story' | 'witness' | 'judge'>;

/** By which the engine may see the last change of a slice earlier than we do. */
const doubtMs = 15_000;

/**
 * Judges what a run has changed by what was known of the canary before it; returns what is known
 * after it.
 */
export function afterRun(
  before: SliceSoFar | undefined,
  run: Run,
  known: Facts,
): SliceSoFar | undefined {
  if (!before) return begin(run, known);
  const { state } = before;
  if (state === 'applying') return fill(before, run, known);
  if (state === 'waiting') return wait(before, run, known);
  if (state === 'failed') return ask(before, run, known);
  return run.guard === 'template' && !run.now ? undefined : before;
}

function begin({ guard, own, now, isOccasion, outing }: Run, known: Facts): SliceSoFar | undefined {
  const { story, judge } = known;
  if (now) {
    const most = mostIn(guard, outing, known);
    judgeFull(own, most, known);
    const about = { mapping: outing.mapping, state: stateAfter(now), most };
    return { ...about, slice: own, lastAt: lastOf(own), former: new Set() };
  }
  const n = countOf(own);
  const isMany = isOccasion && n > (story.canary?.floor ?? 0);
  const wrong = isMany && `${own.at(-1)?.what}, one of ${n}, and no canary began`;
  judge('many changes of an occasion begin with the slice of a canary', wrong);
  return undefined;
}

function fill(before: SliceSoFar, { own, now }: Run, known: Facts): SliceSoFar | undefined {
  const slice = [...before.slice, ...own];
  judgeFull(slice, before.most, known);
  // Nothing of it was made, or is left: another slice has to show it.
  return now && { ...before, slice, lastAt: lastOf(slice), state: stateAfter(now) };
}

/** Only a run that begins after the wait can end it. */
function stateAfter({ state }: Pick<SliceSoFar, 'state'>): 'applying' | 'waiting' {
  return state === 'applying' ? state : 'waiting';
}

function wait(before: SliceSoFar, run: Run, known: Facts): SliceSoFar | undefined {
  const { guard, own, now, outing } = run;
  const { slice, lastAt } = before;
  if (now?.state === 'failed') {
    judgeOutside(own, 'is out of bounds', { run, known });
    return { ...before, state: 'failed', former: new Set(outing.approvals.map(nameOf)) };
  }
  const isEarly = outing.startedAt - lastAt < (known.story.canary?.waitMs ?? 0) - doubtMs;
  // A full run that finds the slice out of bounds and plans nothing of the class ends it at once.
  if (!now && !isEarly && outing.mode !== 'fast') {
    // One of templates that passes ends with the run that makes the rest of them.
    const isMade = guard === 'template' && !isOutOfBounds(before, outing, known);
    judgeOutside(isMade ? [] : own, 'is out of bounds', { run, known });
    return undefined;
  }
  // What is found in a run, no approval before it can answer.
  const isFound = now?.isApproved === true || isOutOfBounds(before, outing, known);
  const isOut = !isEarly && isFound;
  const isPassed = now?.state === 'passed' && !isEarly && !isOut;
  const others = own.filter((one) => !slice.some((other) => isSame(one, other)));
  judgeOutside(isPassed ? [] : others, isOut ? 'is out of bounds' : 'waits', { run, known });
  return isPassed ? { ...before, state: 'passed' } : { ...before, slice: [...slice, ...own] };
}

function ask(before: SliceSoFar, run: Run, known: Facts): SliceSoFar | undefined {
  const { guard, own, now, outing } = run;
  const fresh = outing.approvals.filter((one) => !before.former.has(nameOf(one)));
  const shown = fresh.flatMap((one) => one.shown.filter((other) => other.guard === guard));
  if (now?.state === 'passed' && shown.length > 0) return { ...before, state: 'passed' };
  const isIn =
    ({ keys, target }: Noted) =>
    (one: Shown) =>
      keys.includes(one.key) || one.target === target;
  const others = own.filter((one) => !shown.some(isIn(one)));
  judgeOutside(others, 'is out of bounds, and nobody has approved that', { run, known });
  // A full run that plans nothing of the class ends it.
  return now || outing.mode === 'fast' ? before : undefined;
}

const rule = 'nobody outside the slice is changed while a canary is open';

function judgeFull(slice: readonly Noted[], most: number, { judge }: Facts): void {
  const n = countOf(slice);
  judge(rule, n > most && `${slice.at(-1)?.what}, as number ${n} of a slice of ${most}`);
}

function judgeOutside(
  others: readonly Noted[],
  why: string,
  { run: { guard }, known }: { run: Run; known: Facts },
): void {
  const [one] = others;
  known.judge(rule, one !== undefined && `${one.what}, and the canary of ${guard} ${why}`);
}

export function nameOf({ plan, at }: Approval): string {
  return `${plan} ${at}`;
}

function lastOf(slice: readonly Noted[]): number {
  return Math.max(...slice.map(({ at }) => at));
}

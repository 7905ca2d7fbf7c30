/**
 * What guards are for: how many may pass, and what an approval lets pass beside them. And what a
 * run may do that is limited to some people.
 */
import { passes, type Passing } from './approvals.ts';
import { checkRejected } from './rejections.ts';
import { keyIn, wishFor } from '../world/crm.ts';
import { horizon, type Arrival, type Known, type Outing } from './checker-state.ts';
import type { Rule } from './rules.ts';

export function checkGuard(
  what: string,
  change: Omit<Passing, 'done'>,
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { outing, entry } = arrival;
  const { guard, keys } = change;
  const { judge, standing } = known;
  checkRejected(what, change, { arrival: { outing }, known });
  if (!isStated(change, { outing, known })) known.canaries.changed(what, change, arrival);
  // A first load may opt in anybody.
  if (guard === 'opt_in' && !outing.isLoaded) return;
  if (isApproved(change, { arrival: { outing, entry }, known })) return;
  if (standing.some(guard)) {
    const wrong = standing.holds(guard, keys) && `${what}, and was held before`;
    judge('held changes stay held until they are approved', wrong);
  }
  const through = outing.through[guard];
  // One person, who may have a contact under another address too.
  if (!keys.some((key) => through.has(key))) through.add(keys[0] ?? '');
  const many = through.size > mostOf(guard, known) && `${what}: more than a guard lets pass`;
  judge(
    outing.approvals.length > 0
      ? 'changes stay held that were not shown, or passed before'
      : rules[guard],
    many,
  );
}

/** Whether the CRM states it of one person: no canary withholds that. */
function isStated(
  { guard, keys }: Omit<Passing, 'done'>,
  { outing, known }: { outing: Outing; known: Known },
): boolean {
  const { absences, erasures } = known;
  const erasing = erasures.unsettled();
  const isGone = (key: string): boolean => absences.isFlagged(key, outing) || erasing.has(key);
  return guard === 'opt_out' || (guard === 'delete' && keys.some(isGone));
}

/** Notes that the approval has let it pass. */
function isApproved(
  change: Omit<Passing, 'done'>,
  {
    arrival: { outing, entry },
    known,
  }: { arrival: Pick<Arrival, 'outing' | 'entry'>; known: Known },
): boolean {
  const done = entry.status >= 200 && entry.status < 300;
  const { approvals, missed } = outing;
  // Whoever is gone from the platform meanwhile is made anew for the same wish.
  const gone = known.witness.people().filter((one) => one.gone && change.keys.includes(one.key));
  const isShown = [change.target, ...gone.map(({ id }) => id)].some((target) =>
    passes({ ...change, target, done }, { run: outing, approvals }, known.unanswered),
  );
  const isStated = change.guard === 'opt_out';
  const names = isStated ? change.keys.map((key) => `${key} ${change.part}`) : [];
  // Within the run it may still go to whoever has the address by now.
  if (isShown && entry.status === 404) for (const name of names) missed.add(name);
  const isIn = isShown || names.some((name) => missed.has(name));
  const made = outing.approved.get(change.guard) ?? [];
  if (isIn) outing.approved.set(change.guard, done ? [...made, ...change.keys] : made);
  return isIn;
}

function mostOf(guard: Passing['guard'], { story }: Known): number {
  const most = {
    delete: story.floor,
    opt_in: story.optIns,
    opt_out: story.optOuts,
    template: story.letterFloor,
  };
  return most[guard];
}

const rules = {
  delete: 'a run removes no more people than the guard allows',
  opt_in: 'a run opts in no more people than the guard allows',
  opt_out: 'a run sends no more stated opt-outs than the guard allows',
  template: 'a run changes no more templates than the guard allows',
} as const satisfies Record<Passing['guard'], Rule>;

/** An opt-out that the CRM states of an address: held until its time is over, no longer. */
export function checkStatedOptOut(
  what: string,
  change: Omit<Passing, 'done' | 'guard'>,
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { outing } = arrival;
  const { keys, part } = change;
  // An erasure that is not finished goes on.
  const erasing = known.erasures.unsettled();
  if (keys.some((key) => erasing.has(key))) return;
  const guarded = { ...change, guard: 'opt_out' } as const;
  const holds = keys.map((key) => known.standing.hold({ key, part }, momentOf(arrival, known)));
  // By a wrong time of the platform everything may be over.
  const isOver =
    holds.some((hold) => hold === 'over' || hold === 'maybe over') ||
    (known.story.dates === 'wrong' && holds.includes('held'));
  const isHeld = !isOver && holds.includes('held');
  if (isOver || isHeld) {
    const isShown = outing.approvals.some(({ shown }) =>
      shown.some((one) => one.guard === 'opt_out' && one.part === part && keys.includes(one.key)),
    );
    const wrong = isHeld && !isShown && `${what}, and that was held`;
    known.judge('a held opt-out waits for its time or an approval', wrong);
  }
  // What an earlier run has let through, and has not done, is not new; nor is it by being late.
  const isCounted = keys.some((key) => known.letThrough.has(`${key} ${part}`));
  if (isOver || isCounted) isApproved(guarded, { arrival, known });
  else checkGuard(what, guarded, { arrival, known });
}

/** Nobody is brought in while the opt-out of another channel is held, and still stated. */
export function checkHeldOut(
  what: string,
  { key, channel }: { key: string; channel: string },
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { standing, witness, judge } = known;
  const { outing } = arrival;
  const since = horizon(arrival);
  for (const part of standing.partsOf(key)) {
    if (part === channel || wishFor(outing.people, key, part) !== 'opt_out') continue;
    const isHeld = standing.hold({ key, part }, momentOf(arrival, known)) === 'held';
    const isIn = witness.present(key).some((person) => {
      const state = person.channels.get(part);
      return state?.is === 'opt_in' && state.at < since;
    });
    const isApproved = outing.approvals.length > 0;
    const wrong = isHeld && isIn && !isApproved && `${what}, and an opt-out of ${part} is held`;
    judge('people with a held opt-out are not opted in', wrong);
  }
}

/** A run that is limited to some people brings in nobody else. */
export function checkChosen(
  what: string,
  key: string,
  { outing: { chosen, people }, known }: { outing: Outing; known: Known },
): void {
  if (!chosen) return;
  const isNamed = people.records.some((record) => keyIn(record) === key);
  const wrong = !(isNamed && chosen.has(key)) && `${what} by a run that is limited to others`;
  known.judge('a limited run opts in the chosen people alone', wrong);
}

/** Nor does it take anybody for gone. */
export function checkLimited(
  what: string,
  isGone: boolean,
  { outing: { chosen }, known }: { outing: Outing; known: Known },
): void {
  const wrong = isGone && `${what} by a limited run`;
  if (chosen) known.judge('a limited run takes nobody for gone', wrong);
}

function momentOf({ sentAt, outing }: Arrival, { clock }: Known) {
  const ours = Math.max(outing.ourStart, outing.ourStart + clock.monotonic() - outing.startedAt);
  return { monotonic: sentAt, ours };
}

/**
 * Nobody is opted in whose opt-out the CRM has withdrawn together with most others, or with as many
 * who turn to no, unless somebody approves something. What the engine counts lies between what has
 * arrived and what can have turned.
 */
export function checkWithdrawn(
  what: string,
  { key, channel }: { key: string; channel: string },
  { outing, known }: { outing: Outing; known: Known },
): void {
  const { judge, statements } = known;
  if (outing.undoes || outing.approvals.length > 0 || !statements.wasOut(key, channel)) return;
  outing.withdrawn.add(key);
  const n = outing.withdrawn.size;
  const { outs, all, toYes, toNo } = statements.compared(outing.people);
  const isMass = n >= 4 && 2 * n > outs && `${what}, and most opt-outs were withdrawn`;
  judge('most stated opt-outs are not withdrawn at once', isMass);
  const isAbout = (no: number) =>
    [n, toYes].every((yes) => 2 * Math.min(yes, no) >= Math.max(yes, no));
  const isSwap = n >= 10 && 10 * n > all && toNo !== undefined && isAbout(toNo);
  judge('answers that change places wait', isSwap && `${what}, and others turned to no`);
}

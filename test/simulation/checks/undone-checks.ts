/** What a run may take back that undoes another, and what later runs may not do again. */
import { pastOf, type Person } from '../world/platform-history.ts';
import { checkGuard } from './guard-checks.ts';
import type { About, Arrival, Known } from './checker-state.ts';

/** What was undone is not done again because the CRM still states what it stated. */
export function checkUndone(
  what: string,
  { about: { key, channel, since }, there }: { about: About; there: readonly Person[] },
  { arrival: { outing }, known }: { arrival: Arrival; known: Known },
): void {
  const { undone, judge } = known;
  if (outing.undoes) return undone.optedIn(key, channel);
  if (!undone.has(key, channel)) return;
  const at = undone.since(key, channel, outing.people);
  const isOut = there.some((one) => {
    const state = one.channels.get(channel);
    const isOurs = state?.is === 'opt_out' && state.by === 'us';
    const past = pastOf(state).filter((other) => other.at >= (at ?? 0));
    // A person who signs up ends what was undone: an opt-out of ours after that is another one.
    const signedUp = past.some(({ is, by }) => is === 'opt_in' && by === 'others');
    return isOurs && !signedUp && state.at >= (at ?? 0) && state.at < since;
  });
  const wrong = at !== undefined && isOut && `${what}, that was undone, and the CRM is as it was`;
  judge('what was undone stays so until the CRM states something else', wrong);
  // They are in again, and rightly: what follows is another story.
  undone.optedIn(key, channel);
}

/** An opt-out by a run that undoes another takes back an opt-in of ours. */
export function checkTakenBack(
  what: string,
  {
    about: { key, channel },
    keys,
    person,
  }: { about: About; keys: readonly string[]; person: Person | undefined },
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { outing, sentAt } = arrival;
  const isOurs = keys.some((one) => known.witness.wasMadeByUs(one, channel, 'opt_in'));
  const mayBeOurs = keys.some((one) => known.unanswered.has(`${one} ${channel} opt_in`));
  const wrong = !isOurs && !mayBeOurs && `${what}, and we never opted them in`;
  known.judge('only what a run opted in is taken back', wrong);
  known.undone.optedOut(key, channel, { reading: outing.people, at: sentAt });
  const target = person?.id;
  const change = { guard: 'delete', op: 'opt_out', keys, part: channel, target } as const;
  checkGuard(what, change, { arrival, known });
}

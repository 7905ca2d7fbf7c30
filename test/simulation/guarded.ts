/** What guards are for: how many may pass, and what an approval lets pass beside them. */
import { passes, type Passing } from './approvals.ts';
import type { Arrival, Known } from './known.ts';
import type { Rule } from './rules.ts';

export function checkGuard(
  what: string,
  change: Omit<Passing, 'done'>,
  { arrival: { outing, entry }, known }: { arrival: Arrival; known: Known },
): void {
  const { guard, keys } = change;
  const { story, judge, unanswered, standing } = known;
  // A first load brings in whom it likes.
  if (guard === 'opt_in' && !outing.isLoaded) return;
  const done = entry.status >= 200 && entry.status < 300;
  const { approvals } = outing;
  if (passes({ ...change, done }, { run: outing, approvals }, unanswered)) {
    outing.approved.add(guard);
    return;
  }
  if (standing.some(guard)) {
    const wrong = standing.holds(guard, keys) && `${what}, and was held before`;
    judge('whom a run held stays held until that is approved', wrong);
  }
  const through = outing.through[guard].add(keys[0] ?? '');
  const most = guard === 'delete' ? story.floor : story.optIns;
  const many = through.size > most && `${what}: more than a guard lets pass`;
  judge(
    approvals.length > 0 ? 'who was not shown stays held, and who passed once' : rules[guard],
    many,
  );
}

const rules = {
  delete: 'no more leave in a run than a guard lets pass',
  opt_in: 'no more are brought in in a run than a guard lets pass',
} as const satisfies Record<Passing['guard'], Rule>;

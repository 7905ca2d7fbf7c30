/** What guards did in a run; of stated opt-outs also whether any is held for too long. */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { wishesIn, wishFor } from '../world/crm.ts';
import type { Traces } from '../world/snapshot-files.ts';
import type { Outing } from './checker-state.ts';
import type { Ground, Lived } from '../world/process.ts';
import type { Ending } from './run-completeness.ts';

/**
 * Which stated opt-outs are held from now on, and which an earlier run has read that are not. Of a
 * run that was killed nobody knows what it came to hold.
 */
export function rememberStated(
  { known, world, aheadMs, reached }: Ground,
  outing: Outing,
  { files, summary }: { files: Traces; summary: Summary | undefined },
): void {
  const { standing, letThrough, judge } = known;
  const began = { monotonic: outing.startedAt, ours: outing.ourStart };
  const ended = { monotonic: world.clock.monotonic(), ours: world.clock.now() + aheadMs };
  if (summary && outing.only !== 'templates') {
    for (const one of files.standing) {
      const isOver = standing.hold(one, began) === 'over' && summary.contacts.held.opt_out > 0;
      const isStated = wishFor(outing.people, one.key, one.part) === 'opt_out';
      const isRefused = known.refusals.has(`${one.key} ${one.part} opt_out`);
      const isThere = known.witness.present(one.key).length > 0;
      const wrong = isOver && isStated && isThere && !isRefused && isQuiet(summary);
      const what = `the opt-out of ${one.key} in ${one.part} is held for too long`;
      judge('an opt-out is not held longer than its time', wrong && what);
    }
  }
  const now = new Set(files.standing.map(({ key, part }) => `${key} ${part}`));
  const before = known.standing;
  const isOver = ({ key, channel }: { key: string; channel: string }): boolean =>
    before.hold({ key, part: channel }, began) === 'over' && !now.has(`${key} ${channel}`);
  for (const { key, channel, wish } of wishesIn(outing.people)) {
    if (isOver({ key, channel })) reached.note('run', 'a hold ends by itself');
    const isResolved = known.settlements.mayBeOut(key, channel, outing.people);
    if ((wish === 'opt_out' || isResolved) && !now.has(`${key} ${channel}`))
      letThrough.add(`${key} ${channel}`);
    else letThrough.delete(`${key} ${channel}`);
  }
  // These are not counted again, though the CRM took them back meanwhile.
  for (const { key, part } of files.undone) letThrough.add(`${key} ${part}`);
  const idsOf = (key: string): string[] => known.memories.everIdsOf(key);
  const isSame = (key: string, other: string): boolean =>
    idsOf(key).some((id) => idsOf(other).includes(id)) ||
    known.witness.present(other).some(({ former }) => former?.key === key);
  standing.stated(files.standing, { began, ended, isSame });
}

/** It has met nothing that could keep it from its work. */
function isQuiet({ status, reasons }: Summary): boolean {
  return status === 'held' && reasons.length === 0;
}

/** What guards did in a run. */
export function noteGuards({ known, reached }: Ground, { done: summary, outing }: Lived): void {
  const held = {
    ...(summary?.contacts.held ?? { delete: 0, opt_in: 0, opt_out: 0 }),
    template: summary?.templates.held ?? 0,
  };
  const isHolding = Object.values(held).some((n) => n > 0);
  const happened = {
    'a guard holds stated opt-outs': held.opt_out > 0,
    'a guard holds templates': held.template > 0,
    'an approval releases an opt-out': outing.approved.has('opt_out'),
    'an approval releases a template': outing.approved.has('template'),
    'a guard holds removals': held.delete > 0,
    'a guard holds opt-ins': held.opt_in > 0,
    'an approval releases something': outing.approved.has('opt_in'),
    'an approval releases a removal': outing.approved.has('delete'),
    'a change is held besides the approved ones': isHolding && outing.approved.size > 0,
    'an approval expires': known.approvals.countOld(outing.ourStart) > 0,
    'somebody waits for a canary': Object.values(summary?.deferred ?? {}).some((n) => n > 0),
    'a canary is out of bounds':
      summary?.canaries?.some(({ state }) => state === 'failed') === true,
  };
  for (const [what, is] of Object.entries(happened)) if (is) reached.note('run', what);
}

/** What a full run makes of approvals; `named`: how many people its source had. */
export function endApprovals(
  { known, reached }: Ground,
  ends: Ending,
  full: Pick<Outing, 'only'> & { named: number },
): void {
  const { approvals } = known;
  if (ends === 'perhaps') approvals.doubt();
  if (ends !== 'all' && ends !== 'people') return;
  // What is about templates ends only with a run that reads them.
  const concluded: typeof full = ends === 'people' ? { ...full, only: 'contacts' } : full;
  if (approvals.concluded(concluded)) reached.note('run', 'an approval ends with a full run');
}

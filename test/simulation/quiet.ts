/** What a run says of itself: whether it could do all of its work, and has none left. */
import type { Summary } from '../../src/plan/summary.ts';
import type { Reading } from './crm.ts';
import type { Known, Outing } from './known.ts';

/** An empty source is taken for a failed export: its kind is left out, and the run fails. */
export function checkQuiet(
  { contacts, templates, reasons }: Summary,
  outing: Outing,
  { judge }: Known,
): void {
  const changes = [
    ...(isEmpty(outing.people) ? [] : Object.entries(contacts.changes)),
    ...(isEmpty(outing.templates) ? [] : Object.entries(templates.changes)),
  ];
  // A guard may hold them for as long as nobody approves.
  const held = [
    ...(contacts.held.delete > 0 ? ['delete', 'opt_out'] : []),
    ...(contacts.held.opt_in > 0 ? ['create', 'opt_in'] : []),
  ];
  const left = changes
    .filter(([op, n]) => n > 0 && op !== 'adopt' && !held.includes(op))
    .map(([op, n]) => `${n} ${op}`);
  const undone = left.length > 0 && `two calm runs later still to do: ${left.join(', ')}`;
  judge('in the end nothing is left to do', undone);
  const failing = reasons.filter(
    (reason) => !isOfErasures(reason) && !/source of \w+s is empty/.test(reason),
  );
  const fails = failing.length > 0 && `two calm runs later still failing: ${failing.join()}`;
  judge('in the end no run fails', fails);
}

/** Both sides were read to their ends, and nothing went wrong. */
export function isWhole({ status, reasons, certificate }: Summary): boolean {
  const listed = certificate.source === true && certificate.platform === true;
  return listed && reasons.every(isOfErasures) && status !== 'interrupted';
}

/** What was not wholly forgotten every run says, whatever else it does. */
function isOfErasures(reason: string): boolean {
  return /^(?:an erasure is|\d+ erasures are) not finished/.test(reason);
}

export function isEmpty({ records }: Reading): boolean {
  return records.length === 0;
}

/** What a run says of itself: whether it could do all of its work, and has none left. */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Reading } from '../world/crm.ts';
import type { Known, Outing } from './checker-state.ts';
import type { RunStep } from '../story/steps.ts';

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
    ...(templates.held > 0 ? ['update', 'archive'] : []),
  ];
  const left = changes
    .filter(([op, n]) => n > 0 && op !== 'adopt' && !held.includes(op))
    .map(([op, n]) => `${n} ${op}`);
  const undone = left.length > 0 && `two calm runs later still to do: ${left.join(', ')}`;
  judge('in the end nothing remains to do', undone);
  const failing = reasons.filter(
    (reason) =>
      !isOfErasures(reason) &&
      !/source of \w+s is empty|^the clock of this machine is |^the platform counts /.test(reason),
  );
  const fails = failing.length > 0 && `two calm runs later still failing: ${failing.join()}`;
  judge('in the end no run fails', fails);
}

/** Both sides were read to their ends, and nothing went wrong. */
function isWhole({ status, reasons, certificate }: Summary): boolean {
  const listed = certificate.source === true && certificate.platform === true;
  return listed && reasons.every(isAside) && status !== 'interrupted';
}

/**
 * What a full run makes of approvals, by what it says of itself. all: it could do all of it, so
 * what was approved is done, and they have ended; limited: so it could for some people, and they
 * go on; people: they have ended, whatever a single
 * channel or change lacked; perhaps: nobody can tell from what it says; none: they go on.
 */
export type Ending = 'all' | 'limited' | 'people' | 'perhaps' | 'none';

export function endingOf(
  summary: Summary,
  { only, stopped, chosen }: RunStep,
  { witness }: Pick<Known, 'witness'>,
): Ending {
  if (summary.mode !== 'full' || only === 'templates') return 'none';
  if (chosen) return isWhole(summary) ? 'limited' : 'none';
  if (isWhole(summary)) return 'all';
  const { status, reasons, certificate } = summary;
  if (certificate.source !== true || status === 'interrupted') return 'none';
  if (!reasons.every((one) => isAside(one) || lacking.test(one) || isQuarantine(one)))
    return 'none';
  // It may be the templates alone that are not certified.
  const isListed = certificate.platform === true;
  if (!isListed && (only !== undefined || witness.letters().length === 0)) return 'none';
  // Where something is lacking nothing says that it was interrupted, nor when the quarantine began.
  const isPlain = isListed && stopped === undefined && !reasons.some(isQuarantine);
  return isPlain ? 'people' : 'perhaps';
}

/** A channel that is not there or is lost, changes that did not get through, the templates. */
const lacking = new RegExp(
  [
    String.raw`^the platform answered 404 to \d+ people in `,
    '^the platform knows no channel ',
    '^ch_[a-z]+: more than half of the people recorded in this channel ',
    String.raw`^[\d,]+ changes? (?:was not sent|were not sent|could not be made)`,
    String.raw`^the outcome of [\d,]+ changes? is not known`,
    '^templates are left out: ',
  ].join('|'),
);

function isQuarantine(reason: string): boolean {
  return reason.startsWith('quarantined since ');
}

/** What a run says that could do all of its work as well. */
function isAside(reason: string): boolean {
  const isNote = asides.some((one) => reason.startsWith(one)) || manyMissing.test(reason);
  return isNote || isOfErasures(reason);
}

const asides = [
  'platform.apiKey is not the one before, but of the same organization',
  'the quarantine is over: ',
  'the clock of this machine is ',
  'Only ',
];

/** It asks to look at the export, and is as complete as the export. */
const manyMissing = / recorded people are missing since the last reading/;

/** What was not wholly forgotten every run says, whatever else it does. */
function isOfErasures(reason: string): boolean {
  return /^(?:an erasure is|\d+ erasures are) not finished/.test(reason);
}

export function isEmpty({ records }: Reading): boolean {
  return records.length === 0;
}

/** What must hold when a run has ended, and when everything has calmed down. */
import { guardRows } from '../../../src/domain/guard-classes.ts';
import { channels } from '../../support/engine/engine-stage.ts';
import type { Known, Outing } from './checker-state.ts';
import { keyIn, wishesIn, type Reading } from '../world/crm.ts';
import type { Traces } from '../world/snapshot-files.ts';
import { leftBehind } from './changed-address.ts';
import type { Shown } from './approvals.ts';
import type { RunStep } from '../story/steps.ts';
import { fallbackOf } from '../story/story.ts';
import type { Counted } from '../world/traffic.ts';
import type { Person, Since } from '../world/platform-history.ts';

/**
 * Recorded = acknowledged: what the files say was once so on the platform, and its author. What
 * left and was not answered (`unanswered`) may count as done.
 */
export function checkFiles(
  files: Traces,
  { story, witness, unanswered, judge }: Known,
  ended: false | { only: RunStep['only'] },
): void {
  const fallback = fallbackOf(story);
  for (const { key, channel, is, by } of files.recorded) {
    const what = `${key} is recorded as ${is} of ${channel} by ${by}`;
    if (by === 'us') {
      const done =
        witness.wasMadeByUs(key, channel, is) || unanswered.has(`${key} ${channel} ${is}`);
      const wrong = !done && `${what}, and we never made that so`;
      judge('changes recorded as ours were ours', wrong);
    } else {
      const taken = is === 'opt_out' && witness.wasEver(key, channel, 'opt_in');
      const seen = witness.wasEver(key, channel, is) || taken || fallback === is;
      judge('recorded observations were true when observed', !seen && `${what}, and was never so`);
    }
  }
  for (const { key, part, op } of files.acked) {
    const is = op === 'opt_out' ? 'opt_out' : 'opt_in';
    if (part === '' || unanswered.has(`${key} ${part} ${is}`)) continue;
    const done = witness.wasEver(key, part, is) || fallback === is;
    const what = `${op} of ${key} in ${part} is acknowledged, and was never so`;
    judge('acknowledged changes were done', !done && what);
  }
  if (!ended) return;
  const { contact, template } = files.sent;
  const sent =
    (ended.only === 'templates' ? 0 : contact) + (ended.only === 'contacts' ? 0 : template);
  const open = sent > 0 && `${sent} changes are still marked as sent`;
  judge('no run ends with a change marked as sent', open);
}

/** What must hold of a run however it ends. */
export function checkOuting(outing: Outing, counts: Counted, { judge }: Known): void {
  // The next request may be somebody else's.
  const { refused, leftRefused, only } = outing;
  const late = leftRefused > 0 && `${leftRefused} requests left after the key had been refused`;
  if (refused) judge('nothing is sent after the key was refused', late);
  const { strays, brakedAt, pastBrake } = counts;
  const stray = strays > 0 && `a run of ${only} only asked for something else`;
  if (only !== undefined) judge('a run of one record type requests nothing of the other', stray);
  const braked = pastBrake > 0 && `${pastBrake} changes left after too many had been refused`;
  if (brakedAt !== undefined)
    judge('when too many changes are refused only opt-outs continue', braked);
}

const kindOf = (guard: Shown['guard']) => guardRows[guard].recordType;

/** Of a full run that could do all of it: what was approved before it, and is still wanted. */
export function checkReleased(
  { approvals, only }: Pick<Outing, 'approvals' | 'only'>,
  { held }: Pick<Traces, 'held'>,
  { refusals, unanswered, canaries, judge }: Known,
): void {
  // Of the same class: an absence that was approved is no statement. And the same text.
  const isSame = (one: Shown, other: Shown): boolean =>
    one.guard === other.guard &&
    one.key === other.key &&
    one.op === other.op &&
    (one.guard !== 'template' || one.body === other.body) &&
    one.part === other.part &&
    one.target === other.target;
  const isOpen = ({ key, op, part }: Shown): boolean => {
    const enrolment = `${key} ${part} ${op === 'opt_out' ? op : 'opt_in'}`;
    // What builds on a creation that was refused waits with it.
    const asked = [enrolment, ...channels.map((channel) => `${key} ${channel} opt_in`)];
    return asked.every((one) => !refusals.has(one)) && !unanswered.has(enrolment);
  };
  for (const approval of approvals) {
    const { plan, used, unstated, isDoubtful } = approval;
    if (isDoubtful) continue;
    // Whoever approved something before did not know that a canary would be out of bounds.
    const shown = approval.shown.filter(({ guard }) => !canaries.outdates(guard, approval));
    const asked = shown.filter(({ guard }) => only === undefined || only === `${kindOf(guard)}s`);
    const due = asked.filter((one) => !used.has(one) && !unstated.has(one) && isOpen(one));
    const left = due.find((one) =>
      held.some((now) => now.current && !now.undoes && isSame(now, one)),
    );
    const wrong = left && `${left.op} of ${left.key} ${left.part} is held, and approved in ${plan}`;
    judge('approved and shown changes are not held any more', wrong ?? false);
  }
}

/** Checks, after a complete full run, the opt-outs that the CRM stated. */
export function checkForbidden(
  { people, startedAt }: Pick<Outing, 'people' | 'startedAt'>,
  { standing }: Pick<Traces, 'standing'>,
  { story, witness, refusals, rejections, judge }: Known,
): void {
  const wasIn = ({ channels: all, made, former }: Person, channel: string): boolean => {
    const state = all.get(channel);
    const times = [state?.at ?? made.at, made.at, former?.until ?? made.at];
    return (state?.is ?? fallbackOf(story)) === 'opt_in' && Math.max(...times) < startedAt;
  };
  for (const { key, channel, wish } of wishesIn(people)) {
    if (wish !== 'opt_out' || refusals.has(`${key} ${channel} opt_out`)) continue;
    if (standing.some((one) => one.key === key && one.part === channel)) continue;
    const isIn = witness.present(key).some((person) => wasIn(person, channel));
    const wrong = isIn && `${key} is in ${channel} after a full run, and the CRM forbids it`;
    judge('opt-outs stated by the CRM hold after a full run', wrong);
    if (rejections.of(key)) judge('a rejection holds no stated opt-out back', wrong);
  }
}

interface Spent {
  left: number;
  disturbed: number;
  files: Traces;
  /** Changes whose outcome was open when the run began. */
  opened: number;
  step: RunStep;
}

/**
 * A run asks for the pages of two passes, and for a change at most a look, its sending and what
 * reads it back; a disturbance costs what is sent again and looked at again.
 */
export function checkRequests(spent: Spent, { witness, judge }: Known): void {
  const { left, disturbed, files, opened, step } = spent;
  const people = witness.people().length;
  const pages = 2 * people + witness.letters().length + 8;
  const odd = disturbed + step.meanwhile.length + (step.eaten === undefined ? 0 : 10);
  const most = pages + 6 * files.newest + 8 * odd + 6 * opened;
  const wrong = left > most && `${left} requests left in one run, and ${most} are enough`;
  judge('no unneeded request is sent', wrong);
}

interface Ending {
  told: ReadonlySet<string>;
  files: Pick<Traces, 'held' | 'hashOf'>;
  /** Whether a guard holds who is to be deleted or opted out. */
  isLeaving: boolean;
}

/** In the end everything is as the CRM wants it, or a person's own act explains why not. */
export function checkEnd(reading: Reading, known: Known, { told, files, isLeaving }: Ending): void {
  const held = files.held.filter(({ current }) => current);
  const { story, witness, refusals, erasures, rejections, settlements, judge } = known;
  const unsettled = erasures.unsettled();
  const isStaying = isLeaving || rejections.some({ guard: 'delete' });
  // Nobody brings in who is held, rejected, or out by an operator's word.
  const isKept = (key: string, parts: readonly string[], channel: string): boolean =>
    held.some((one) => one.key === key && parts.includes(one.part)) ||
    rejections.some({ guard: 'opt_in', key, parts }) ||
    settlements.mayBeOut(key, channel, reading);
  for (const { key, channel, wish } of wishesIn(reading)) {
    const there = witness.present(key);
    const states = there.map((one) => one.channels.get(channel)?.is ?? fallbackOf(story));
    const what = `in the end ${key} is ${states.join(' and ') || 'nowhere'} in ${channel}`;
    // Who could not be made is refused and named once, not for each channel.
    const parts = there.length === 0 ? channels : [channel];
    const names = [key, files.hashOf(key)];
    const isTold = ['', ...parts].some((part) =>
      names.some((name) => told.has(`contact ${name} ${part}`)),
    );
    const isIn = states.includes('opt_in');
    if (wish === 'opt_out') {
      const wrong =
        isIn && !refusals.has(`${key} ${channel} opt_out`) && `${what}, and the CRM forbids it`;
      judge('in the end every opt-out of the CRM holds', wrong);
      const silent = !isTold && `${what}, the CRM forbids it, and nobody was told`;
      if (isIn) judge('in the end people who cannot be opted out are reported', silent);
    }
    // Of an address that was erased nothing is known that could stand for another one.
    const isErased = unsettled.has(key) || erasures.against(key, reading).length > 0;
    if (wish === 'opt_in' && isIn && !isStaying && !isErased) {
      for (const former of leftBehind(reading, { key, channel }, known))
        checkLeftBehind(former, channel, known);
    }
    if (wish !== 'opt_in' || isIn || isKept(key, parts, channel)) continue;
    const silent = !isTold && `${what}, the CRM wants it, and nobody was told why not`;
    judge('in the end people who are not subscribed are reported', silent);
    const asked = parts.map((part) => `${key} ${part} opt_in`);
    const refused = asked.some((one) => refusals.has(one));
    const excused = refused || isExcused(reading, known, { key, channel });
    const wrong = !excused && `${what}, the CRM wants it, and nothing speaks against it`;
    judge('in the end people who are not subscribed have a reason', wrong);
  }
}

function checkLeftBehind(key: string, channel: string, known: Known): void {
  const { witness, story, memories, refusals, judge } = known;
  // A contact made there after the CRM had left the address is another person.
  const isMade = ({ by, at }: Since): boolean => by === 'us' && at > memories.lostAt();
  const ours = witness
    .present(key)
    .filter(({ id, made }) => isMade(made) || memories.of(key)?.ids.has(id) === true);
  const [only] = ours;
  // Of several contacts of one address only the recorded one is ours, be it there or gone.
  const several = ours.length > 1 || (memories.of(key)?.ids.size ?? 0) > 1;
  if (!only || several) return;
  const is = only.channels.get(channel)?.is ?? fallbackOf(story);
  const wrong =
    is === 'opt_in' &&
    !refusals.has(`${key} ${channel} opt_out`) &&
    `in the end ${key} is in ${channel}, and the CRM has another address for the person`;
  judge('in the end nobody is subscribed under a former address', wrong);
}

/** Less than the engine allows, which goes by whole seconds. */
const soonMs = 8_000;

/** Whether anything that happened speaks against opting this address in. */
function isExcused(
  reading: Reading,
  {
    story,
    witness,
    memories,
    unanswered,
    erasures,
    readBacks,
    statements,
    settlements,
    undone,
  }: Known,
  { key, channel }: { key: string; channel: string },
): boolean {
  const there = witness.present(key);
  // It may be the person's record, and cannot be read.
  const isBlocked = reading.records.some(
    (record) => keyIn(record) === undefined && memories.everOf(String(record['id'])).has(key),
  );
  if (isBlocked || erasures.against(key, reading).length > 0) return true;
  // The list is asked by every id that the CRM has given the person.
  if (erasures.mayStand(memories.everIdsOf(key))) return true;
  const keys = memories.kinOf(key);
  // Another record may not take back an opt-out that one has stated.
  if ([key, ...keys].some((one) => statements.has(one, channel))) return true;
  if ([key, ...keys].some((one) => settlements.wasSettled(one, channel))) return true;
  if ([key, ...keys].some((one) => undone.has(one, channel))) return true;
  if (there.length > 1 || keys.some((one) => witness.wasTouched(one, channel))) return true;
  const unsettled = erasures.unsettled();
  if ([key, ...keys].some((one) => unsettled.has(one))) return true;
  // Nobody can tell the platform's own default from what a person said elsewhere, unless the answer
  // to the creation shows it.
  const isDefault = fallbackOf(story) === 'opt_out';
  const isUnheard = (address: string): boolean =>
    channels.some((one) => unanswered.has(`${address} ${one} opt_in`));
  if (isDefault && [key, ...keys].some(isUnheard)) return true;
  // The ledger remembers those who are gone as well.
  const addresses = new Set([key, ...keys]);
  const everywhere = witness.people().filter((one) => addresses.has(one.key));
  const lostAt = memories.lostAt();
  // Where that answer lists no channels, the first reading has to show it, and soon.
  const isHidden = ({ id, made }: Person): boolean => {
    const back = readBacks.get(id);
    const isSoon = story.dates !== 'wrong' && back !== undefined && back.at - made.at < soonMs;
    const isSeen = back?.isAnswered === true && isSoon;
    return story.quirks.includes('enrol-raw') && !isSeen;
  };
  const isUnclear = (one: Person): boolean =>
    isHidden(one) || one.made.by === 'others' || one.made.at <= lostAt;
  if (isDefault && everywhere.some(isUnclear)) return true;
  // Whose word it was went with the snapshot.
  const wasOut = (one: Person): boolean => {
    const state = one.channels.get(channel);
    return state?.is === 'opt_out' && state.at <= lostAt;
  };
  if (everywhere.some(wasOut)) return true;
  // An unanswered opt-out of a former address counts as the person's own there.
  const former = keys.filter((one) => one !== key);
  if (former.some((one) => unanswered.has(`${one} ${channel} opt_out`))) return true;
  // An opt-out that had no answer is remembered as a doubtful one where its contact is gone since.
  const wasLost = (one: Person): boolean =>
    one.key === key && one.gone !== undefined && one.channels.get(channel)?.is === 'opt_out';
  if (unanswered.has(`${key} ${channel} opt_out`) && everywhere.some(wasLost)) return true;
  // What had no answer may have been done, and taken back by the person.
  const isOut = there.some(
    (one) => (one.channels.get(channel)?.is ?? fallbackOf(story)) === 'opt_out',
  );
  const ways = ['opt_in', 'opt_out'];
  return isOut && ways.some((way) => unanswered.has(`${key} ${channel} ${way}`));
}

/** In the end what is recorded of a contact is what the platform shows of it. */
export function checkRecorded(
  { recorded }: Traces,
  { story, witness, erasures, judge }: Known,
): void {
  const unsettled = erasures.unsettled();
  for (const { key, channel, is } of recorded) {
    // Nothing more is recorded of a person that an erasure left in the snapshot.
    if (unsettled.has(key)) continue;
    const there = witness.present(key);
    const [only] = there;
    if (!only || there.length > 1) continue;
    const shown = only.channels.get(channel)?.is ?? fallbackOf(story);
    const what = `in the end ${key} is ${shown ?? 'nowhere'} in ${channel}, and recorded as ${is}`;
    const wrong = (shown === 'opt_in') !== (is === 'opt_in') && what;
    judge('in the end the platform shows what is recorded', wrong);
  }
}

/**
 * Interprets the response to a creation: who made the contact, which channels came with it, and
 * therefore what the platform shows for channels in which the contact was never enrolled.
 *
 *   the response          known about the platform      result
 *   lists channels        anything                      its opt-outs in other channels are defaults
 *   lists none            it shows no defaults, or      no further request, unless the CRM forbids
 *                         opt_in on all the others      a channel, or others made the contact
 *   lists none            anything else                 it is read back immediately: its opt-outs
 *                                                       are defaults, if the contact is new and the
 *                                                       first request was answered quickly
 */
import { isExpected } from '../../../domain/errors.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { Enrolled } from '../../../platform/api-client.ts';
import { acked, type SendOutcome } from '../../change-outcome.ts';
import { type Evidence, mayBeDefault, type PlatformFacts } from '../../platform-facts.ts';
import { type ReadAccess, search } from '../observe/contact-read.ts';
import type { ContactChange, ObservedContactRow } from '../observe/contact-state.ts';
import { observe, timeOf } from '../observe/observed-contact.ts';

interface Made {
  change: ContactChange;
  answer: Enrolled;
  facts: PlatformFacts;
}

/** The age to which a contact counts as ours: a request's duration, and the clocks' difference. */
const madeWithinMs = 60_000;
/** How long nobody is assumed to have noticed and changed a new contact, in milliseconds. */
const atOnceMs = 10_000;

/** Returns the outcome of a creation based on its response. Throws the errors of the requests. */
export async function made(
  access: ReadAccess,
  of: Made,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { change, answer } = of;
  const { contact, date } = answer;
  if (!contact) {
    const [found] = await search(access, change.key, signal);
    // The search may have happened much later than the creation.
    const late = { late: true, ...whose(found?.createdAt, date) };
    if (found) return acked({ id: found.id, observed: found, ...late });
    return { is: 'unknown', why: 'the answer names no contact' };
  }
  const { id, status, channels } = contact;
  const theirs = whose(timeOf(contact.createdAt), date);
  if (status && channels) {
    const whole = { ...contact, email: change.key, status, channels };
    const observed = observe(whole, access.channels);
    const evidence = theirs.found ? undefined : evidenceOf(access, change, observed);
    return acked({ id, observed, evidence, ...theirs });
  }
  return acked({ id, ...theirs, ...(await readBack(access, { ...of, id }, signal)) });
}

/**
 * Returns `found` and `late` if the contact is older than our creation by the platform's clocks: in
 * that case others made it, none of its subscriptions is a default, and it is not deleted as one
 * that we made. Times are in milliseconds since the epoch; if one is unknown, the contact counts as
 * ours.
 */
function whose(createdAt: number | undefined, date: number | undefined) {
  const age = createdAt === undefined || date === undefined ? 0 : date - createdAt;
  return age > madeWithinMs ? { found: true, late: true } : {};
}

/** Reads the contact if its channels are needed and not in the response. Returns what it adds. */
async function readBack(
  access: ReadAccess,
  { change, answer, facts, id }: Made & { id: string },
  signal: AbortSignal,
): Promise<Partial<Parameters<typeof acked>[0]>> {
  const { contact, date } = answer;
  const isOthers = whose(timeOf(contact?.createdAt), date).found === true;
  const isNeeded = change.value.forbids || isOthers;
  const others = [...access.channels].filter((channel) => channel !== change.part);
  if (!isNeeded && !others.some((channel) => mayBeDefault(facts, channel))) return {};
  // After a later attempt than the first, the contact may show what the person did.
  let attempts = 0;
  const leaves = async (): Promise<void> => void (attempts += 1);
  const how = { signal, leaves, person: change.key };
  const back = await access.platform.retrieve(id, how).catch((error: unknown) => {
    // The creation was acknowledged even if this read fails.
    if (!isNeeded && isExpected(error)) return undefined;
    throw error;
  });
  if (!back || contactKey(back.email) !== change.key) return {};
  const observed = observe(back, access.channels);
  const theirs = whose(observed.createdAt, date);
  const apart = back.date === undefined || date === undefined ? 0 : Math.abs(back.date - date);
  const before = contact?.updatedAt;
  const isUnmoved = !before || !back.updatedAt || before === back.updatedAt;
  const isAtOnce = attempts === 1 && apart <= atOnceMs && isUnmoved;
  // An opt-out in a channel that is known to have another default, or none, is no default.
  const contradicts = Object.entries(othersIn(observed, change)).some(
    ([channel, is]) => is === 'opt_out' && !mayBeDefault(facts, channel),
  );
  if (!isAtOnce || isOthers || theirs.found || contradicts) {
    return { observed, late: true, ...theirs };
  }
  return { observed, evidence: evidenceOf(access, change, observed) };
}

/** Returns evidence about defaults; undefined if there is no other channel to show any. */
function evidenceOf(
  access: ReadAccess,
  change: ContactChange,
  row: ObservedContactRow,
): Evidence | undefined {
  if (access.channels.size < 2) return undefined;
  return { of: 'creation', others: othersIn(row, change) };
}

function othersIn({ value }: ObservedContactRow, { part }: ContactChange) {
  return Object.fromEntries(Object.entries(value.channels).filter(([channel]) => channel !== part));
}

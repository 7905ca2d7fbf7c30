/**
 * What the answer to a creation tells: who was made, which channels came along, and by that what
 * the platform shows of channels in which nobody was ever enrolled.
 *
 *   the answer            known of the platform         then
 *   lists channels        anything                      its opt-outs on other channels are defaults
 *   lists none            it shows no defaults, or      nothing more is asked, unless the CRM
 *                         opt_in on all the others      forbids a channel, or others made it
 *   lists none            anything else                 it is read back at once: its opt-outs are
 *                                                       defaults, if the contact is new and the
 *                                                       first request was answered soon
 */
import { isExpected } from '../../../domain/errors.ts';
import type { Enrolled } from '../../../platform/contacts.ts';
import { acked, type SendOutcome } from '../../record-type.ts';
import { mayBeDefault, type Evidence, type PlatformFacts } from '../../platform-facts.ts';
import { contactKey, observe, timeOf } from '../observe/observed-contact.ts';
import { search, type ReadAccess } from '../observe/contact-read.ts';
import type { ContactChange, ObservedContactRow } from '../observe/contact-rows.ts';

interface Made {
  change: ContactChange;
  answer: Enrolled;
  facts: PlatformFacts;
}

/** Longer than one request takes, and than the platform's own clocks may differ. */
const madeWithinMs = 60_000;
/** Nobody hears of a new contact, and acts on it, within this time. */
const atOnceMs = 10_000;

export async function made(
  access: ReadAccess,
  of: Made,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { change, answer } = of;
  const { contact, date } = answer;
  if (!contact) {
    const [found] = await search(access, change.key, signal);
    // Nobody can tell how soon that was.
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
 * Who was created longer before the answer to our creation, by the platform's clocks, was made by
 * others: nothing of the contact is a default, and it is not deleted as one that we created. In
 * milliseconds since the epoch; where one is not known, we made it.
 */
function whose(createdAt: number | undefined, date: number | undefined) {
  const age = createdAt === undefined || date === undefined ? 0 : date - createdAt;
  return age > madeWithinMs ? { found: true, late: true } : {};
}

/** What a reading adds to an answer without channels, where one is needed. */
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
  const back = await retrieveNew(access, { key: change.key, id }, signal).catch(
    (error: unknown) => {
      // The creation itself was acknowledged, whatever became of the reading.
      if (!isNeeded && isExpected(error)) return undefined;
      throw error;
    },
  );
  if (!back) return {};
  const { row: observed } = back;
  const theirs = whose(observed.createdAt, date);
  const apart = back.date === undefined || date === undefined ? 0 : Math.abs(back.date - date);
  const isSoon = apart <= atOnceMs;
  const before = contact?.updatedAt;
  const isUnmoved = !before || !back.changed || before === back.changed;
  const isAtOnce = back.isFirst && isSoon && isUnmoved;
  if (!isAtOnce || isOthers || theirs.found || contradicts(observed, change, facts)) {
    return { observed, late: true, ...theirs };
  }
  return { observed, evidence: evidenceOf(access, change, observed) };
}

/** Whether it shows an opt-out where the platform is known to have another default, or none. */
function contradicts(
  row: ObservedContactRow,
  change: ContactChange,
  facts: PlatformFacts,
): boolean {
  const others = Object.entries(othersIn(row, change));
  return others.some(([channel, is]) => is === 'opt_out' && !mayBeDefault(facts, channel));
}

/** Of one channel alone nothing can be told. */
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

/** A contact that was just made, and how it was asked for. */
interface ReadBack {
  row: ObservedContactRow;
  /** Whether the first request was answered: what came later may be what the person did. */
  isFirst: boolean;
  /** The platform's clock at the answer; milliseconds since the epoch. */
  date: number | undefined;
  changed: string | undefined;
}

/** Reads a contact that was just made; undefined where it is not there under this address. */
async function retrieveNew(
  access: ReadAccess,
  { key, id }: { key: string; id: string },
  signal: AbortSignal,
): Promise<ReadBack | undefined> {
  let attempts = 0;
  const leaves = async (): Promise<void> => void (attempts += 1);
  const contact = await access.platform.retrieve(id, { signal, leaves });
  if (!contact || contactKey(contact.email) !== key) return undefined;
  const { date, updatedAt } = contact;
  const row = observe(contact, access.channels);
  return { row, isFirst: attempts === 1, date, changed: updatedAt ?? undefined };
}

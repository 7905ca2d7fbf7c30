/** Connects the contacts of a mirror (contacts.ts) to the platform, with its settings. */
import { type BothTimes, certainFuture, passedByBoth } from '../../domain/clock.ts';
import type { Change } from '../../domain/change.ts';
import { Rejected, isExpected } from '../../domain/errors.ts';
import { type RecordedRow, canonicalJson, fingerprint } from '../../domain/record.ts';
import type { Enrolled, Platform } from '../../platform/api-client.ts';
import { acked, type SendOutcome, afterwards, settled, stale } from '../change-outcome.ts';
import { type Evidence, mayBeDefault, type PlatformFacts } from '../platform-facts.ts';
import type { AbsenceRules } from './consent/absent-people.ts';
import type {
  Contacts,
  Departures,
  FoundRecord,
  KnownRecord,
  Recovery,
  SendContext,
} from './contacts.ts';
import { erase } from './contact-erasure.ts';
import { contactDesire, type ContactFields, fieldNames } from './observe/desired-contact.ts';
import { decidePerson } from './consent/decide.ts';
import { rulesOf } from './consent/facts.ts';
import type { PersonRules } from './consent/person-facts.ts';
import { settle } from './settle-conflict.ts';
import { ruleNamed } from './consent/gates.ts';
import {
  anew,
  read,
  type ReadAccess,
  readAll,
  readById,
  retrieve,
  search,
} from './observe/contact-read.ts';
import { outsOf } from './consent/platform-opt-outs.ts';
import { listed } from './consent/do-not-contact-entries.ts';
import { namedIn, observe, timeOf, othersIn, fingerprintOf } from './observe/observed-contact.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import {
  type ContactChange,
  decodeContact,
  type ObservedContactRow,
  enrolment,
  silentBody,
} from './observe/contact-state.ts';
import { undoPerson } from './undo-person.ts';

/** Connects the contacts of a mirror to the platform, with its settings. */
export function connectContacts({
  fields,
  policy,
  absence,
  platform,
  times,
}: {
  fields: ContactFields;
  policy: PersonRules['policy'];
  absence: AbsenceRules;
  platform: Platform['contacts'];
  times: () => BothTimes;
}): Contacts {
  const rules = rulesOf(fields, policy, absence);
  const { channels, replaces } = rules;
  const access: ReadAccess = { platform, channels: new Set([...channels, ...replaces.values()]) };
  return {
    fields: fieldNames(fields),
    channels,
    absence,
    countsLaterConsent: fields.consentAt !== undefined && policy.resubscribe === 'newer',
    decidesAbsent: policy.absent === 'opt_out' || absence.deletes !== 'off',
    optOuts: outsOf(channels, policy),
    departures: listDepartures(access),
    desire: contactDesire(
      fields,
      () => times().at,
      () => passedByBoth(times()),
      () => certainFuture(times()),
    ),
    async list(query, signal) {
      const page = await platform.list({ ...query, brief: true }, { signal });
      const { contacts, totalContacts = 0, date } = page;
      const rows = contacts.map((contact) => observe(contact, access.channels));
      const others = othersIn(contacts, access.channels);
      // Both count all contacts here, and a list that shows fewer than either is not complete.
      const total = Math.max(page.total, totalContacts);
      return { rows, total, date, parts: namedIn(contacts), others };
    },
    read: (known, signal) => readAll(access, known, signal),
    find: (row, signal) => find(access, row, signal),
    erase: async (what, deadlines) => erase(platform, what, deadlines),
    forbids(change, entries) {
      const { op, part, value } = decodeContact.change(change);
      return listed(entries, { ...value, op, part }, policy) !== undefined;
    },
    decide: (states) => decidePerson(states, rules),
    undo: (states, undoing) => undoPerson(states, rules, undoing),
    settle: (states, asked) => settle(states, rules, asked),
    reasonFor: (rule) => ruleNamed(rule)?.asks ?? '',
    look: async (change, known) =>
      settled(() => precheck(access, decodeContact.change(change), known)),
    send: async (change, sendContext) =>
      settled(() => send(access, decodeContact.change(change), sendContext)),
    recover: async (change, asked) => recover(access, change, asked),
  };
}

/**
 * Returns the outcome of a change that must not be sent, because the plan's assumptions do not hold
 * any more. Throws the errors of the requests. A creation needs proof that the contact does not
 * exist, an opt_in a recent reading, a delete a reading just before it. An opt-out needs none, as
 * it can do no harm, unless it is for an old address and the contact may now have the new one.
 */
async function precheck(
  access: ReadAccess,
  change: ContactChange,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  const { op, value } = change;
  if (op === 'opt_out' && !value.moved) return undefined;
  if (known.fresh && op !== 'delete') {
    return known.listed ? undefined : lookBack(access, change, known.signal);
  }
  if (op === 'create') {
    const found = await search(access, change.key, known.signal);
    if (found.length > 0) return stale(found, 'found on the platform');
    return lookBack(access, change, known.signal);
  }
  // Read before the request: the plan does not know what is recorded during it.
  const recorded = known.recorded && decodeContact.recorded(known.recorded);
  const target = change.target ?? recorded?.id;
  if (target === undefined) return undefined;
  const rows = await readById(access, { key: change.key, id: target }, known.signal);
  const now = rows.find(({ alias }) => alias === change.key);
  // Each of several contacts with one address has its own fingerprint.
  const before = recorded?.value.contacts.find(({ id }) => id === change.target);
  const own = value.shown ?? (before && fingerprintOf(before));
  const shown = op === 'delete' && recorded ? own : recorded?.shown;
  const same = now?.fingerprint === shown;
  // Any change since an opt-in was found to be newer than the opt-out may be a later opt-out.
  const isUnchanged = value.changed === undefined || now?.value.changed === value.changed;
  // The contact is in a channel that the configuration does not name, or unsubscribed from one.
  const isElsewhere = now?.value.others === true;
  const isNew = value.undone !== undefined || before?.others !== true;
  const isKept = op === 'delete' && isElsewhere && isNew;
  if (now && same && isUnchanged && !isKept) {
    const all = known.partial ? await search(access, change.key, known.signal) : [now];
    if (all.length !== 1) return stale(all, 'several contacts of this address');
    return lookBack(access, change, known.signal);
  }
  const why = 'changed since it was last seen';
  return anew(access, change, { why, signal: known.signal, known: rows });
}

/**
 * Returns `stale` if a contact under a former address has changed since it was last observed: a
 * person who unsubscribed there is not opted in under the new address. It searches for the address,
 * because the address may belong to another contact by now.
 */
async function lookBack(
  access: ReadAccess,
  change: ContactChange,
  signal: AbortSignal,
): Promise<SendOutcome | undefined> {
  for (const { key, shown } of change.value.former) {
    const rows = await search(access, key, signal);
    const found = rows.map((row) => row.fingerprint).toSorted();
    if (canonicalJson(found) === canonicalJson(shown)) continue;
    return { is: 'stale', about: key, observed: rows, why: 'a former contact changed' };
  }
  return undefined;
}

async function send(
  access: ReadAccess,
  change: ContactChange,
  sendContext: SendContext,
): Promise<SendOutcome> {
  const { op, key, target } = change;
  const { abort } = sendContext;
  if (op === 'delete') return remove(access, change, sendContext);
  const { channel, subscription } = enrolment(change);
  const to = target === undefined ? { email: change.value.spelling ?? key } : { contactId: target };
  const priority = subscription === 'opt_out' ? 'opt_out' : 'other';
  const how = { ...sendContext, priority, person: key } as const;
  try {
    const answer = await access.platform.enrol(channel, { ...to, subscription }, how);
    if (target === undefined) {
      const facts = sendContext.facts();
      return await afterwards(() => made(access, { change, answer, facts }, abort));
    }
    // An opt-out by id may reach the contact under a new address.
    const isRenamed = op === 'opt_out' && contactKey(answer.contact?.email ?? key) !== key;
    const evidence = movedBy(change, answer, sendContext.recorded());
    return acked({ id: target, evidence, ...(isRenamed && { renamed: true }) });
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    const mayBeOurs = error.acted === 'maybe';
    if (error.status === 409) {
      const found = !mayBeOurs || isAnybodys(change, { late: !sendContext.seen });
      const doubtful = mayBeOurs && found && op === 'opt_out';
      const theirs = { change, found, doubtful, wasThere: !mayBeOurs };
      const reading = () => readBack(access, theirs, abort);
      // If the read fails, nothing is sent again: a second 409 would not show whose opt-out it was.
      return mayBeOurs ? afterwards(reading) : reading();
    }
    if (error.status !== 404 || target === undefined) throw error;
    // The contact is gone, or the channel does not exist.
    const rows = await read(access, change, abort);
    if (rows.length === 0) {
      return anew(access, change, { why: 'gone from the platform', signal: abort, known: rows });
    }
    return { is: 'stopped', scope: 'part', why: `the platform knows no channel ${channel}` };
  }
}

/** Returns whether it may be others' doing: their contact, or an opt-out that nobody noticed. */
function isAnybodys({ op }: Change, { late }: { late: boolean }): boolean {
  return op === 'create' || (op === 'opt_out' && late);
}

/** Reads the contact after a 409. Acknowledges the change if the subscription is as wanted. */
async function readBack(
  access: ReadAccess,
  { change, ...theirs }: { change: Change; found: boolean; doubtful: boolean; wasThere: boolean },
  signal: AbortSignal,
): Promise<SendOutcome> {
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (!row) return anew(access, change, { why: 'gone from the platform', signal, known: rows });
  if (rows.length > 1) return stale(rows, 'several contacts of this address');
  // `late`: anything else that the contact shows may not come from the creation.
  const renamed = row.alias === change.key ? {} : { renamed: true };
  if (holds(row, change)) {
    return acked({ id: row.id, observed: row, ...theirs, late: true, ...renamed });
  }
  if (!theirs.wasThere) return { is: 'unknown', why: 'an earlier attempt may have acted' };
  return {
    is: 'rejected',
    status: 409,
    reason: `${change.part}: the platform does not change an existing subscription`,
    // Otherwise the advice would write a yes into the CRM for somebody who said no there.
    fix:
      change.op === 'opt_out'
        ? 'opt them out on the platform'
        : 'change it on the platform, or bring the CRM in line with it',
  };
}

async function remove(
  access: ReadAccess,
  change: Change,
  sendContext: SendContext,
): Promise<SendOutcome> {
  const id = change.target ?? '';
  const how = { ...sendContext, person: change.key };
  if ((await access.platform.remove(id, how)) === 'removed') return acked({ id });
  return afterwards(async () => {
    if (!(await retrieve(access, { ...change, target: id }, how.abort))) return acked({ id });
    return {
      is: 'rejected',
      status: 200,
      reason: 'the platform did not delete the contact, and did not say why',
      fix: 'delete it on the platform',
    };
  });
}

/**
 * Finds the outcome of an unanswered change from what the platform shows. An opt_in that is not
 * shown may have been undone by the person: the opt_in is sent again only if the contact has not
 * changed, although enrolments change it. An opt-out that may be older, or the channel's default,
 * is not counted as the person's.
 */
async function recover(access: ReadAccess, change: Change, asked: Recovery): Promise<SendOutcome> {
  const { late, signal, recorded, facts } = asked;
  const { op, part, target, key } = change;
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (op === 'delete') return row ? stale(rows, 'still there') : acked({ id: target });
  const alone = rows.length === 1 ? row : undefined;
  if (alone && op === 'opt_in' && alone.value.channels[part] === 'opt_out') {
    const shown = before(change, recorded);
    const { changed } = alone.value;
    // What is recorded of it may be newer than the request.
    const isSame = changed !== undefined && change.before === JSON.stringify(changed);
    if (isSame && facts.enrolmentMoves === true) return stale(rows, 'did not happen');
    const doubtful = facts.namesAll !== false || shown?.channels[part] === 'opt_out';
    return acked({ id: alone.id, observed: alone, undone: true, doubtful });
  }
  const found = isAnybodys(change, { late });
  const renamed = alone && alone.alias !== key ? { renamed: true } : {};
  if (alone && holds(alone, change)) {
    const doubtful = found && op === 'opt_out';
    // `late`: other channels may already show later actions of the person.
    const isLate = late || op === 'create';
    return acked({ id: alone.id, observed: alone, found, late: isLate, doubtful, ...renamed });
  }
  // Somebody may have left the channel since.
  const undone = op === 'create' && rows.length > 0;
  const why = undone ? 'not shown any more' : 'did not happen';
  return { ...(await anew(access, change, { why, signal, known: rows })), undone };
}

function before({ target }: Change, recorded: RecordedRow | undefined) {
  const { contacts = [] } = recorded ? decodeContact.recorded(recorded).value : {};
  return contacts.find(({ id }) => id === target);
}

/** The maximum difference between the platform's clocks, in milliseconds. */
const sameMomentMs = 2_000;

/** Returns whether an enrolment changed the contact's `updatedAt`; undefined if unclear. */
function movedBy(
  change: Change,
  { contact, date }: Enrolled,
  recorded: RecordedRow | undefined,
): Evidence | undefined {
  const changed = before(change, recorded)?.changed;
  const now = contact?.updatedAt;
  if (changed === undefined || !now) return undefined;
  if (now === changed) return { of: 'enrolment', moved: false };
  const at = timeOf(now);
  if (at === undefined || date === undefined || Math.abs(date - at) > sameMomentMs)
    return undefined;
  return { of: 'enrolment', moved: true };
}

function holds({ value }: ObservedContactRow, change: Change): boolean {
  return value.channels[change.part] === enrolment(change).subscription;
}

/** Looks for a recorded contact. Only a 404 by its id proves it gone; then a search follows. */
async function find(
  access: ReadAccess,
  { key, id = '' }: RecordedRow,
  signal: AbortSignal,
): Promise<FoundRecord> {
  const contact = await access.platform.retrieve(id, { signal, person: key });
  if (contact) return { is: 'alone', rows: [observe(contact, access.channels)] };
  return { is: 'whole', rows: await search(access, key, signal) };
}

/** The ways in which people unsubscribe from all mail on their own. */
const statuses = ['unsubscribed', 'blocked'] as const;

/** Counts with the totals on every page, which tell blocked contacts only as not subscribed. */
function listDepartures({ platform, channels }: ReadAccess): Departures {
  return {
    route: 'contacts.list',
    async counts(how) {
      const listed = await platform.list({ page: 1, limit: 1 }, { ...how, priority: 'event' });
      const { totalContacts, subscribedContacts, unsubscribedContacts } = listed;
      if (totalContacts === undefined || subscribedContacts === undefined) return undefined;
      if (unsubscribedContacts === undefined) return undefined;
      return { unsubscribed: unsubscribedContacts, blocked: totalContacts - subscribedContacts };
    },
    async list({ way, ...page }, how) {
      const status = statuses.find((one) => one === way);
      const listed = await platform.list({ ...page, status }, { ...how, priority: 'event' });
      const rows = listed.contacts.map((contact) => observe(contact, channels));
      const left = rows.filter(({ value }) => value.left);
      return { rows: left, listed: rows.length, total: listed.total };
    },
    named: (key) => ({
      kind: 'contact',
      id: '',
      key,
      alias: key,
      place: '',
      body: silentBody,
      fingerprint: fingerprint(silentBody),
      wants: false,
      presence: 'present',
      invalid: undefined,
    }),
  };
}

// Interprets the response to a creation: who made the contact, which channels came with it, and
// therefore what the platform shows for channels in which the contact was never enrolled.
//
//   the response          known about the platform      result
//   lists channels        anything                      its opt-outs in other channels are defaults
//   lists none            it shows no defaults, or      no further request, unless the CRM forbids
//                         opt_in on all the others      a channel, or others made the contact
//   lists none            anything else                 it is read back immediately: its opt-outs
//                                                       are defaults, if the contact is new and the
//                                                       first request was answered quickly

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
async function made(access: ReadAccess, of: Made, signal: AbortSignal): Promise<SendOutcome> {
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
  return acked({ id, ...theirs, ...(await readCreated(access, { ...of, id }, signal)) });
}

/**
 * Returns `found` and `late` if the contact is older than our creation by the platform's clocks: so
 * others made it, none of its subscriptions is a default, and it is not deleted as ours. Times are
 * in milliseconds since the epoch; if one is unknown, the contact counts as ours.
 */
function whose(createdAt: number | undefined, date: number | undefined) {
  const age = createdAt === undefined || date === undefined ? 0 : date - createdAt;
  return age > madeWithinMs ? { found: true, late: true } : {};
}

/** Reads the contact if its channels are needed and not in the response. Returns what it adds. */
async function readCreated(
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
  const contradicts = Object.entries(otherSubscriptions(observed, change)).some(
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
  return { of: 'creation', others: otherSubscriptions(row, change) };
}

function otherSubscriptions({ value }: ObservedContactRow, { part }: ContactChange) {
  return Object.fromEntries(Object.entries(value.channels).filter(([channel]) => channel !== part));
}

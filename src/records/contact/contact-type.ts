/** The record type of contacts: lists and sends them, and finds the outcome of a change. */
import type { Change } from '../../domain/change.ts';
import { Rejected } from '../../domain/errors.ts';
import type { RecordedRow } from '../../domain/record.ts';
import type { Enrolled } from '../../platform/contacts.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Capabilities } from '../capabilities.ts';
import { acked, type RecordType, type Recovery, type SendOutcome } from '../record-type.ts';
import type { SendContext } from '../send-context.ts';
import { decodedStates } from '../decoded-rows.ts';
import type { Evidence } from '../platform-facts.ts';
import { afterwards, settled, stale } from '../send-outcome.ts';
import type { AbsenceRules } from './consent/our-contacts.ts';
import { acknowledge } from './send/acknowledged-change.ts';
import { erase } from './send/contact-erasure.ts';
import { made } from './send/creation-answer.ts';
import { contactDesire, type ContactFields, fieldNames } from './observe/desired-contact.ts';
import { decidePerson, phase, reasonFor } from './consent/decide.ts';
import { rulesOf } from './consent/facts.ts';
import type { PersonRules } from './consent/person-facts.ts';
import { settle } from './settle-conflict.ts';
import { release, unerased } from './consent/recorded-note.ts';
import { leavingOf } from './observe/unsubscribe-listing.ts';
import { outsOf } from './consent/platform-opt-outs.ts';
import { precheck } from './send/send-precheck.ts';
import { listed, memoriesOf, newsOfChange } from './consent/do-not-contact-entries.ts';
import { namedIn, observe, timeOf } from './observe/observed-contact.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { anew, find, read, type ReadAccess, readAll, retrieve } from './observe/contact-read.ts';
import {
  type ContactChange,
  decodeContact,
  type ObservedContactRow,
} from './observe/contact-rows.ts';
import { enrolment, silentBody } from './observe/contact-state.ts';
import { idsOf } from './consent/renamed-contact.ts';
import { othersIn } from './observe/channel-observation.ts';
import { partsOf } from './observe/last-observed.ts';
import { readBackContact } from './read-back.ts';
import { undoPerson } from './undo-person.ts';

/** The settings of contacts, the client of the platform, and the clock. */
export interface ContactOptions {
  fields: ContactFields;
  policy: PersonRules['policy'];
  absence: AbsenceRules;
  platform: Platform['contacts'];
  /** Returns the time in milliseconds since the epoch. */
  now: () => number;
}

/** Returns the record type of contacts. It has all capabilities. */
export function contactType(options: ContactOptions): RecordType {
  const { fields, policy, absence, platform } = options;
  const rules = rulesOf(fields, policy, absence);
  const { channels, replaces } = rules;
  const access: ReadAccess = { platform, channels: new Set([...channels, ...replaces.values()]) };
  return {
    name: 'contact',
    fields: fieldNames(fields),
    phases: [phase.optOut, phase.optIn, phase.delete],
    needsCertificate: true,
    decidesAbsent: { full: policy.absent === 'opt_out' || absence.deletes !== 'off', fast: false },
    keyedById: false,
    capabilities: capabilitiesOf(options, rules, access),
    unreadBody: silentBody,
    desire: contactDesire(fields, options.now),
    list: async (query, signal) => {
      const { contacts, total, date } = await platform.list({ ...query, brief: true }, { signal });
      const rows = contacts.map((contact) => observe(contact, access.channels));
      const others = othersIn(contacts, access.channels);
      return { rows, total, date, organization: undefined, parts: namedIn(contacts), others };
    },
    decide: (states) => decidePerson(decodedStates(states, decodeContact), rules),
    undo: (states, undoing) => undoPerson(decodedStates(states, decodeContact), rules, undoing),
    settle: (states, asked) => settle(decodedStates(states, decodeContact), rules, asked),
    reason: (change, states) => reasonFor(change, states, rules),
    route: (op) => (op === 'delete' ? 'contacts.delete' : 'contacts.enrol'),
    lookRoute: (op) => (op === 'create' ? 'contacts.list' : 'contacts.retrieve'),
    look: (change, known) => settled(() => precheck(access, decodeContact.change(change), known)),
    send: (change, sendContext) =>
      settled(() => send(access, decodeContact.change(change), sendContext)),
    recover: (change, asked) => recover(access, change, asked),
    acknowledge: (before, change, ack) => acknowledge(before, decodeContact.change(change), ack),
    readBack: readBackContact,
  };
}

function capabilitiesOf(
  { policy, absence, platform }: ContactOptions,
  rules: PersonRules,
  access: ReadAccess,
): Capabilities {
  return {
    channels: partsOf(rules.channels),
    personRead: {
      read: (known, signal) => readAll(access, known, signal),
      find: (row, signal) => find(access, row, signal),
      idsOf: (row) => idsOf(decodeContact.recorded(row)),
    },
    doNotContact: {
      memories: (row) => memoriesOf(decodeContact.recorded(row)),
      learn: (change, after, entries) =>
        newsOfChange(decodeContact.change(change), after && decodeContact.recorded(after), entries),
      forbids(change, entries) {
        const { op, part, value } = decodeContact.change(change);
        return listed(entries, { ...value, op, part }, policy) !== undefined;
      },
    },
    erasure: {
      erase: async (what, deadlines) => erase(platform, what, deadlines),
      release: (row) => release(decodeContact.recorded(row)),
      unerased: (key, row) => unerased(key, row && decodeContact.recorded(row)),
    },
    optOuts: outsOf(rules.channels, policy),
    departures: leavingOf(access),
    absence,
  };
}

/** Sends one change, and reads the contact back if the response says too little. */
async function send(
  access: ReadAccess,
  change: ContactChange,
  sendContext: SendContext,
): Promise<SendOutcome> {
  if (change.op === 'delete') return remove(access, change, sendContext);
  const { channel, subscription } = enrolment(change);
  const to =
    change.target === undefined
      ? { email: change.value.spelling ?? change.key }
      : { contactId: change.target };
  const priority = subscription === 'opt_out' ? 'opt_out' : 'other';
  const how = { ...sendContext, priority, person: change.key } as const;
  try {
    const answer = await access.platform.enrol(channel, { ...to, subscription }, how);
    if (change.target !== undefined) return answeredById(change, answer, sendContext);
    const facts = sendContext.facts();
    return await afterwards(() => made(access, { change, answer, facts }, sendContext.abort));
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    const mayBeOurs = error.acted === 'maybe';
    if (error.status === 409) {
      const found = !mayBeOurs || isAnybodys(change, { late: !sendContext.seen });
      const doubtful = mayBeOurs && found && change.op === 'opt_out';
      const theirs = { change, found, doubtful, wasThere: !mayBeOurs };
      const reading = () => readBack(access, theirs, sendContext.abort);
      // If the read fails, nothing is sent again: a second 409 would not show whose opt-out it was.
      return mayBeOurs ? afterwards(reading) : reading();
    }
    if (error.status !== 404 || change.target === undefined) throw error;
    return missing(access, change, sendContext.abort);
  }
}

/** Acknowledges a change sent by id. An opt-out may reach the contact under a new address. */
function answeredById(change: Change, answer: Enrolled, sendContext: SendContext): SendOutcome {
  const { op, key, target } = change;
  const isRenamed = op === 'opt_out' && contactKey(answer.contact?.email ?? key) !== key;
  const evidence = movedBy(change, answer, sendContext.recorded());
  return acked({ id: target, evidence, ...(isRenamed && { renamed: true }) });
}

/**
 * Returns whether a state that no response explains may not be our doing: others may have made the
 * contact, or the person may have unsubscribed unnoticed.
 */
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
    fix: 'change it on the platform, or bring the CRM in line with it',
  };
}

/** Returns the outcome of a 404 by id: the contact is gone, or the channel does not exist. */
async function missing(
  access: ReadAccess,
  change: Change,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const rows = await read(access, change, signal);
  if (rows.length === 0)
    return anew(access, change, { why: 'gone from the platform', signal, known: rows });
  return { is: 'stopped', scope: 'part', why: `the platform knows no channel ${change.part}` };
}

/** Deletes the contact. If the response does not confirm that, checks whether it is gone. */
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
 * shown may have been undone by the person: the opt_in is sent again only if it certainly was not
 * made. An opt-out that may be older, or the channel's default, is not counted as the person's.
 */
async function recover(access: ReadAccess, change: Change, asked: Recovery): Promise<SendOutcome> {
  const { late, signal } = asked;
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (change.op === 'delete')
    return row ? stale(rows, 'still there') : acked({ id: change.target });
  const alone = rows.length === 1 ? row : undefined;
  const is = alone && subscriptionIn(alone, change);
  if (alone && change.op === 'opt_in' && is === 'opt_out') {
    if (isUntouched(alone, change, asked)) return stale(rows, 'did not happen');
    const shown = before(change, asked.recorded)?.channels[change.part];
    const doubtful = asked.facts.namesAll !== false || shown === 'opt_out';
    return acked({ id: alone.id, observed: alone, undone: true, doubtful });
  }
  const found = isAnybodys(change, { late });
  const renamed = alone && alone.alias !== change.key ? { renamed: true } : {};
  if (alone && holds(alone, change)) {
    const doubtful = found && change.op === 'opt_out';
    // `late`: other channels may already show later actions of the person.
    const isLate = late || change.op === 'create';
    return acked({ id: alone.id, observed: alone, found, late: isLate, doubtful, ...renamed });
  }
  // Somebody may have left the channel since.
  const undone = change.op === 'create' && rows.length > 0;
  const why = undone ? 'not shown any more' : 'did not happen';
  return { ...(await anew(access, change, { why, signal, known: rows })), undone };
}

/** Returns the contact as last recorded, if it was. */
function before({ target }: Change, recorded: RecordedRow | undefined) {
  const { contacts = [] } = recorded ? decodeContact.recorded(recorded).value : {};
  return contacts.find(({ id }) => id === target);
}

/** Returns whether an opt_in was certainly not made: the contact is unchanged, with its default. */
function isUntouched(
  row: ObservedContactRow,
  change: Change,
  { recorded, facts }: Pick<Recovery, 'recorded' | 'facts'>,
): boolean {
  if (!recorded || facts.enrolmentMoves !== true || facts.namesAll !== true) return false;
  const isDefault = decodeContact.recorded(recorded).value.defaults.includes(change.part);
  const { changed } = row.value;
  return isDefault && changed !== undefined && before(change, recorded)?.changed === changed;
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

function holds(row: ObservedContactRow, change: Change): boolean {
  return subscriptionIn(row, change) === enrolment(change).subscription;
}

/** Returns the contact's subscription in the channel of the change; undefined if there is none. */
function subscriptionIn(row: ObservedContactRow, { part }: Change): Subscription | undefined {
  return row.value.channels[part];
}

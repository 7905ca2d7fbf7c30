/** Contacts: how they are listed, how a change of one is sent, and how its outcome is found. */
import type { Change } from '../../model/change.ts';
import { Rejected } from '../../model/errors.ts';
import type { ObservedRow } from '../../model/record.ts';
import type { Enrolled } from '../../platform/contacts.ts';
import type { Platform } from '../../platform/client.ts';
import type { Subscription } from '../../platform/request.ts';
import { acked, type Kind, type Outcome, type Passage, type Recovery } from '../kind.ts';
import { afterwards, settled, stale } from '../outcome.ts';
import type { AbsenceRules } from './absence.ts';
import { acknowledge } from './acknowledge.ts';
import { erase } from './erase.ts';
import { phase } from './act.ts';
import { contactDesire, fieldNames, type ContactFields } from './desire.ts';
import type { PersonRules } from './facts.ts';
import { decidePerson } from './person.ts';
import { leavingOf } from './leaving.ts';
import { outsOf } from './left.ts';
import { look } from './look.ts';
import { forbids, memoriesOf, newsOfChange } from './remember.ts';
import { contactKey, observe, timeOf } from './observe.ts';
import { release } from './own-opt-out.ts';
import { partsOf } from './parts.ts';
import { anew, find, read, readAll, retrieve, search, type Access } from './reading.ts';
import { enrolmentBody, enrolment, observedBody } from './record.ts';
import { idsOf } from './renamed.ts';

export interface ContactOptions {
  fields: ContactFields;
  policy: PersonRules['policy'];
  absence: AbsenceRules;
  platform: Platform['contacts'];
}

export function contactKind({ fields, policy, absence, platform }: ContactOptions): Kind {
  const rules = rulesOf(fields, policy, absence);
  const { channels, replaces } = rules;
  const access: Access = { platform, channels: new Set([...channels, ...replaces.values()]) };
  const actsOnAbsence = policy.absent === 'opt_out' || absence.deletes !== 'off';
  return {
    name: 'contact',
    fields: fieldNames(fields),
    phases: [phase.optOut, phase.optIn, phase.delete],
    needsCertificate: true,
    decidesAbsent: { full: actsOnAbsence, fast: false },
    absence,
    keyedById: false,
    parts: partsOf(channels),
    leaving: leavingOf(access),
    outs: outsOf(channels, policy),
    desire: contactDesire(fields),
    list: async (query, signal) => {
      const page = await platform.list({ ...query, brief: true }, { signal });
      const rows = page.contacts.map((contact) => observe(contact, access.channels));
      return { rows, total: page.total, date: page.date, organization: undefined };
    },
    find: (row, signal) => find(access, row, signal),
    read: (known, signal) => readAll(access, known, signal),
    idsOf,
    decide: (states) => decidePerson(states, rules),
    route: (op) => (op === 'delete' ? 'contacts.delete' : 'contacts.enrol'),
    lookRoute: (op) => (op === 'create' ? 'contacts.list' : 'contacts.retrieve'),
    look: (change, known) => settled(() => look(access, change, known)),
    send: (change, passage) => settled(() => send(access, change, passage)),
    recover: (change, asked) => recover(access, change, asked),
    acknowledge,
    release,
    erase: async (what, leave) => erase(platform, what, leave),
    ledger: {
      memories: memoriesOf,
      learn: newsOfChange,
      forbids({ op, part, body }, entries) {
        if (entries.length === 0) return false;
        const { newer } = enrolmentBody.parse(JSON.parse(body));
        return forbids(entries, { op, part, newer }, policy) !== undefined;
      },
    },
  };
}

/** By what people are decided upon, as the configuration has it. */
export function rulesOf(
  { channels, protect = [] }: Pick<ContactFields, 'channels' | 'protect'>,
  policy: PersonRules['policy'],
  absence: AbsenceRules,
): PersonRules {
  const replaced = channels.flatMap(({ id, replaces }): [string, string][] =>
    replaces === undefined ? [] : [[id, replaces]],
  );
  const protects = protect.flatMap((one) => (typeof one === 'string' ? [contactKey(one)] : []));
  return {
    channels: channels.map(({ id }) => id),
    replaces: new Map(replaced),
    protects: new Set(protects),
    policy,
    absence,
  };
}

async function send(access: Access, change: Change, passage: Passage): Promise<Outcome> {
  if (change.op === 'delete') return remove(access, change, passage);
  const { channel, subscription } = enrolment(change);
  const to = change.target === undefined ? { email: change.key } : { contactId: change.target };
  const priority = subscription === 'opt_out' ? 'opt_out' : 'other';
  try {
    const body = { ...to, subscription };
    const answer = await access.platform.enrol(channel, body, { ...passage, priority });
    if (change.target !== undefined) return answeredById(change, answer);
    return await afterwards(() => made(access, { change, answer }, passage.abort));
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    const mayBeOurs = error.acted === 'maybe';
    if (error.status === 409) {
      const found = !mayBeOurs || isAnybodys(change, { late: !passage.seen });
      const reading = () => readBack(access, { change, found }, passage.abort);
      // What may be ours is not sent again: a second 409 would no longer know.
      return mayBeOurs ? afterwards(reading) : reading();
    }
    if (error.status !== 404 || change.target === undefined) throw error;
    return missing(access, change, passage.abort);
  }
}

/** An opt-out by id goes to the contact whatever address it has by now; the answer may show it. */
function answeredById({ op, key, target }: Change, { contact }: Enrolled): Outcome {
  const email = contact?.email ?? key;
  const isRenamed = op === 'opt_out' && contactKey(email) !== key;
  return acked({ id: target, ...(isRenamed && { renamed: true }) });
}

/**
 * The answer to a creation may be a raw row: then the contact is read where the CRM forbids a
 * channel that the creation may have brought along, and else learnt by the next listing.
 */
async function made(
  access: Access,
  { change, answer }: { change: Change; answer: Enrolled },
  signal: AbortSignal,
): Promise<Outcome> {
  const { contact, date } = answer;
  if (!contact) {
    const [found] = await search(access, change.key, signal);
    if (found) return acked({ id: found.id, observed: found, ...whose(found.createdAt, date) });
    return { is: 'unknown', why: 'the answer names no contact' };
  }
  const { id, status, channels } = contact;
  const theirs = whose(timeOf(contact.createdAt), date);
  if (status && channels) {
    const whole = { ...contact, email: change.key, status, channels };
    return acked({ id, observed: observe(whole, access.channels), ...theirs });
  }
  const { forbids } = enrolmentBody.parse(JSON.parse(change.body));
  const isRead = forbids || theirs.found;
  const whole = isRead ? await retrieve(access, { ...change, target: id }, signal) : undefined;
  return acked({ id, observed: whole, ...theirs });
}

/** Longer than one request takes, and than the platform's own clocks may differ. */
const madeWithinMs = 60_000;

/**
 * Who was created longer before the answer to our creation, by the platform's clocks, was made by
 * others: nothing of her is a default, and she is not deleted as one that we created. In
 * milliseconds since the epoch; where one is not known, we made her.
 */
function whose(createdAt: number | undefined, date: number | undefined) {
  const age = createdAt === undefined || date === undefined ? 0 : date - createdAt;
  return age > madeWithinMs ? { found: true, late: true } : {};
}

/**
 * What nobody has answered is not taken for our doing where that could harm: a contact that anybody
 * may have made is not deleted as one that we created, and an opt-out of whom this run did not see
 * in may be hers.
 */
function isAnybodys({ op }: Change, { late }: { late: boolean }): boolean {
  return op === 'create' || (op === 'opt_out' && late);
}

/** 409: equal to what we want is done. Anything else the platform does not change. */
async function readBack(
  access: Access,
  { change, found }: { change: Change; found: boolean },
  signal: AbortSignal,
): Promise<Outcome> {
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (!row) return anew(access, change, { why: 'gone from the platform', signal, known: rows });
  if (rows.length > 1) return stale(rows, 'several contacts of this address');
  // Read this late, what else it shows need not be the creation's doing.
  const renamed = row.alias === change.key ? {} : { renamed: true };
  if (holds(row, change)) {
    return acked({ id: row.id, observed: row, found, late: true, ...renamed });
  }
  return {
    is: 'rejected',
    status: 409,
    reason: `${change.part}: the platform does not change an existing subscription`,
    fix: 'change it on the platform, or bring the CRM in line with it',
  };
}

/** 404 for somebody known by id: the contact is gone, or else the channel does not exist. */
async function missing(access: Access, change: Change, signal: AbortSignal): Promise<Outcome> {
  const rows = await read(access, change, signal);
  if (rows.length === 0)
    return anew(access, change, { why: 'gone from the platform', signal, known: rows });
  return { is: 'stopped', scope: 'part', why: `the platform knows no channel ${change.part}` };
}

async function remove(access: Access, change: Change, passage: Passage): Promise<Outcome> {
  const id = change.target ?? '';
  if ((await access.platform.remove(id, passage)) === 'removed') return acked({ id });
  return afterwards(async () => {
    const left = await retrieve(access, { ...change, target: id }, passage.abort);
    if (left === undefined) return acked({ id });
    return {
      is: 'rejected',
      status: 200,
      reason: 'the platform did not delete the contact, and did not say why',
      fix: 'delete it on the platform',
    };
  });
}

/**
 * Sent, and no answer: what the platform shows decides. An opt_in that it does not show may have
 * been carried out and taken back by the person since: the opt-out is hers, and she is not brought
 * back.
 */
async function recover(
  access: Access,
  change: Change,
  { late, signal }: Recovery,
): Promise<Outcome> {
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (change.op === 'delete')
    return row ? stale(rows, 'still there') : acked({ id: change.target });
  const alone = rows.length === 1 ? row : undefined;
  const is = alone && subscriptionIn(alone, change);
  if (alone && change.op === 'opt_in' && is === 'opt_out') {
    return acked({ id: alone.id, observed: alone, undone: true });
  }
  const found = isAnybodys(change, { late });
  const renamed = alone && alone.alias !== change.key ? { renamed: true } : {};
  if (alone && holds(alone, change)) {
    return acked({ id: alone.id, observed: alone, found, late, ...renamed });
  }
  return anew(access, change, { why: 'did not happen', signal, known: rows });
}

function holds(row: ObservedRow, change: Change): boolean {
  return subscriptionIn(row, change) === enrolment(change).subscription;
}

/** What the contact shows of the channel that the change is about. */
function subscriptionIn(row: ObservedRow, { part }: Change): Subscription | undefined {
  return observedBody.parse(JSON.parse(row.body)).channels[part];
}

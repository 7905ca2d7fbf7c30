/** Contacts: how they are listed, how a change of one is sent, and how its outcome is found. */
import type { Change } from '../../model/change.ts';
import { Rejected } from '../../model/errors.ts';
import {
  canonicalJson,
  fingerprint,
  type ObservedRow,
  type RecordedRow,
} from '../../model/record.ts';
import type { Enrolment } from '../../platform/answer.ts';
import type { Platform } from '../../platform/client.ts';
import type { Subscription } from '../../platform/request.ts';
import { acked, type Acked, type Kind, type Known, type Outcome } from '../kind.ts';
import { settled, stale } from '../outcome.ts';
import { desireContact, fieldNames, type ContactFields } from './desire.ts';
import { decidePerson, phase, type PersonRules } from './person.ts';
import {
  contactKey,
  observe,
  observedBody,
  recordedBody,
  type ObservedContact,
  type RecordedContact,
} from './record.ts';

export interface ContactOptions {
  fields: ContactFields;
  policy: PersonRules['policy'];
  platform: Platform['contacts'];
}

export function contactKind({ fields, policy, platform }: ContactOptions): Kind {
  const channels = fields.channels.map((channel) => channel.id);
  const access: Access = { platform, channels: new Set(channels) };
  return {
    name: 'contact',
    fields: fieldNames(fields),
    phases: [phase.optOut, phase.optIn, phase.delete],
    decidesAbsent: false,
    desire: (value, place) => desireContact(fields, value, place),
    list: async (query, signal) => {
      const page = await platform.list(query, { signal });
      const rows = page.contacts.map((contact) => observe(contact, access.channels));
      return { rows, total: page.total, date: page.date };
    },
    decide: (states) => decidePerson(states, { channels, policy }),
    route: (op) => (op === 'delete' ? 'contacts.delete' : 'contacts.enrol'),
    look: (change, known) => settled(() => look(access, change, known)),
    send: (change, signal) => settled(() => send(access, change, signal)),
    recover: (change, signal) => settled(() => recover(access, change, signal)),
    acknowledge,
  };
}

interface Access {
  platform: Platform['contacts'];
  channels: ReadonlySet<string>;
}

/**
 * A person is created only on proof of absence, and an existing one is opted in or deleted only on
 * fresh knowledge. An opt-out needs no look: it can do no harm.
 */
async function look(access: Access, change: Change, known: Known): Promise<Outcome | undefined> {
  if (known.fresh || change.op === 'opt_out') return undefined;
  if (change.op === 'create') {
    const found = await search(access, change.key, known.signal);
    return found.length === 0 ? undefined : stale(found, 'found on the platform');
  }
  const target = change.target ?? known.recorded?.id;
  if (target === undefined) return undefined;
  const now = await retrieve(access, target, known.signal);
  if (now && now.fingerprint === known.recorded?.shown) return undefined;
  return stale(now ? [now] : [], 'changed on the platform since it was last seen');
}

async function send(access: Access, change: Change, signal: AbortSignal): Promise<Outcome> {
  if (change.op === 'delete') return remove(access, change, signal);
  const { channel, subscription } = enrolment(change);
  const to = change.target === undefined ? { email: change.key } : { contactId: change.target };
  try {
    const priority = subscription === 'opt_out' ? 'opt_out' : 'other';
    const answer = await access.platform.enrol(
      channel,
      { ...to, subscription },
      { signal, priority },
    );
    return change.target === undefined
      ? await made(access, { change, answer: answer.contact }, signal)
      : acked({ id: change.target });
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    if (error.status === 409) return readBack(access, change, signal);
    if (error.status === 404 && change.target !== undefined) return missing(access, change, signal);
    throw error;
  }
}

/** The answer to a creation may be a raw row: the id is what matters, the rest is learnt by reading. */
async function made(
  access: Access,
  { change, answer }: { change: Change; answer: Enrolment['contact'] },
  signal: AbortSignal,
): Promise<Outcome> {
  if (answer) {
    const { id, status, channels } = answer;
    const whole = status && channels && { ...answer, email: change.key, status, channels };
    return acked({ id, observed: whole ? observe(whole, access.channels) : undefined });
  }
  const [found] = await search(access, change.key, signal);
  return found
    ? acked({ id: found.id, observed: found })
    : { is: 'unknown', why: 'the answer names no contact' };
}

/** 409: equal to what we want is done; anything else the platform does not change. */
async function readBack(access: Access, change: Change, signal: AbortSignal): Promise<Outcome> {
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (!row) return stale([], 'gone from the platform');
  if (holds(row, change)) return acked({ id: row.id, observed: row, found: true });
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
  if (rows.length === 0) return stale([], 'gone from the platform');
  return { is: 'stopped', scope: 'part', why: `the platform knows no channel ${change.part}` };
}

async function remove(access: Access, change: Change, signal: AbortSignal): Promise<Outcome> {
  const id = change.target ?? '';
  if ((await access.platform.remove(id, { signal })) === 'removed') return acked({ id });
  if ((await retrieve(access, id, signal)) === undefined) return acked({ id });
  return {
    is: 'rejected',
    status: 200,
    reason: 'the platform did not delete the contact, and did not say why',
    fix: 'delete it on the platform',
  };
}

/** Sent, and no answer: what the platform shows decides. */
async function recover(access: Access, change: Change, signal: AbortSignal): Promise<Outcome> {
  const rows = await read(access, change, signal);
  const [row] = rows;
  if (change.op === 'delete')
    return row ? stale(rows, 'still there') : acked({ id: change.target });
  const done = rows.length === 1 && row && holds(row, change);
  return done ? acked({ id: row.id, observed: row }) : stale(rows, 'did not happen');
}

async function read(access: Access, change: Change, signal: AbortSignal): Promise<ObservedRow[]> {
  if (change.target === undefined) return search(access, change.key, signal);
  const row = await retrieve(access, change.target, signal);
  return row ? [row] : [];
}

async function retrieve(
  access: Access,
  id: string,
  signal: AbortSignal,
): Promise<ObservedRow | undefined> {
  const contact = await access.platform.retrieve(id, { signal });
  return contact && observe(contact, access.channels);
}

/** Everybody of exactly this address; the platform's own search may match more. */
async function search(access: Access, key: string, signal: AbortSignal): Promise<ObservedRow[]> {
  const found = new Map<string, ObservedRow>();
  for (let page = 1; ; page += 1) {
    const { contacts } = await access.platform.list({ page, limit: 100, search: key }, { signal });
    for (const contact of contacts) {
      if (contactKey(contact.email) === key)
        found.set(contact.id, observe(contact, access.channels));
    }
    if (contacts.length < 100) return [...found.values()];
  }
}

function holds(row: ObservedRow, change: Change): boolean {
  const { channel, subscription } = enrolment(change);
  return observedBody.parse(JSON.parse(row.body)).channels[channel] === subscription;
}

function enrolment(change: Change): { channel: string; subscription: Subscription } {
  return { channel: change.part, subscription: change.op === 'opt_out' ? 'opt_out' : 'opt_in' };
}

/**
 * Only an acknowledged request makes an opt-out ours; one that was found there already (409) is the
 * platform's. After an acknowledged delete the person counts as never owned.
 */
function acknowledge(
  before: RecordedRow | undefined,
  change: Change,
  ack: Acked & { at: number },
): RecordedRow | undefined {
  if (change.op === 'delete') return undefined;
  const { channel, subscription } = enrolment(change);
  const recorded = before && recordedBody.parse(JSON.parse(before.body));
  const id = ack.id ?? before?.id ?? '';
  const base: ObservedContact = recorded?.observed ?? { id, left: false, channels: {} };
  const observed: ObservedContact = ack.observed
    ? observedBody.parse(JSON.parse(ack.observed.body))
    : { ...base, id, channels: { ...base.channels, [channel]: subscription } };
  const by = ack.found && subscription === 'opt_out' ? 'platform' : 'us';
  const body: RecordedContact = {
    observed,
    channels: { ...recorded?.channels, [channel]: { is: subscription, by } },
  };
  return {
    kind: 'contact',
    key: change.key,
    id,
    ownership: before?.ownership ?? (ack.found ? 'adopted' : 'created'),
    body: canonicalJson(body),
    shown: fingerprint(canonicalJson(observed)),
    desired: undefined,
    seenAt: ack.at,
  };
}

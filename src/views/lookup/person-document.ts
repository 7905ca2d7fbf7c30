/**
 * Collects everything known about one person in one document, with a section for each place that
 * was queried.
 */
import { renderProblem } from '../../domain/errors.ts';
import { policyDeletes } from '../../records/contact/consent/absent-people.ts';
import { type ExplainedChannel, explainPerson } from '../../records/contact/explain-person.ts';
import type { PersonRules } from '../../records/contact/consent/facts.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import type { MappedColumn } from '../../records/contact/observe/column-meanings.ts';
import { withEarlyMarked } from '../../records/contact/observe/consent-time.ts';
import {
  decodeContact,
  type Membership,
  type ObservedContact,
} from '../../records/contact/observe/contact-state.ts';
import { decodedStates } from '../../records/decoded-rows.ts';
import type { Change } from '../../domain/change.ts';
import type { DesiredRow } from '../../domain/record.ts';
import { acknowledgedUnmanaged } from '../../domain/unmanaged-people.ts';
import type { Config } from '../../config/config.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Examined } from '../../engine/examine-person.ts';
import { approvalOf } from '../../compose/output/decision-words.ts';
import { canariesAbout } from './canary-wait.ts';
import { columnOf } from './crm-columns.ts';
import { heldChangesOf } from './held-changes.ts';
import { absenceOf } from './missing-people.ts';
import type { Names } from './person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';

export interface Explaining {
  mirror: string;
  rules: PersonRules;
  found: Examined;
  /**
   * The records of the CRM that may be the person's, as they were read, and the settings that read
   * them.
   */
  read: readonly (Pick<DesiredRow, 'place' | 'invalid'> & { value: Record<string, unknown> })[];
  columns: readonly MappedColumn[];
  /** The full contacts as the platform returns them. */
  details: readonly Contact[];
  snapshot: Snapshot;
  names: Names;
  /** How long at most a stated opt-out awaits approval, who signs approvals, and the canary. */
  config: Config;
  /** Whether addresses, and other data that is equally personal, may be shown. */
  addresses: boolean;
  /** How many of the last changes are shown. */
  changes?: number;
}

const changesShown = 50;
const kind = 'contact';

export type ExplainedPerson = ReturnType<typeof explainedOf>;

export function explainedOf(explaining: Explaining) {
  const { mirror, found, names, snapshot, config } = explaining;
  const { key, recorded } = found.states;
  const crm = crmOf(explaining);
  const platform = platformOf(explaining);
  const history = historyOf(explaining);
  const ledger = ledgerOf(explaining);
  const sends = found.sends.filter((change) => change.key === key);
  const canaries = canariesAbout(snapshot, config, { key, sends });
  const places = [crm.records, crm.mentions, platform.contacts, history, ledger];
  return {
    mirror,
    person: names({ kind, key }),
    /** Whether any place that was read knows this person. */
    known: recorded !== undefined || places.some(({ length }) => length > 0),
    crm,
    snapshot: snapshotOf(explaining),
    platform,
    ledger,
    /** Null if the CRM could not be read, so that nothing is decided. */
    channels: crm.read ? channelsOf(explaining) : null,
    sends: crm.read ? sends.map(sendOf) : null,
    /** Changes that were decided but are not sent now, with the gate that withholds them. */
    keptBack: crm.read ? found.keptBack.map(keptBackOf) : null,
    /** Changes that await approval because of a guard. */
    held: heldChangesOf(snapshot, { key, config, now: Date.now() }),
    ...(canaries && { canaries }),
    parked: parkedOf(explaining),
    history,
  };
}

function crmOf({ found: { source, states }, names, read, columns, addresses }: Explaining) {
  if (source instanceof Error) {
    return { read: false, certified: false, why: source.message, records: [], mentions: [] };
  }
  const own = withEarlyMarked(decodedStates(states, decodeContact)).desired;
  return {
    read: true,
    certified: source.complete,
    why: source.complete ? null : renderProblem({ reason: source.why, fix: source.fix }),
    records: own.map((row) => {
      const { place, id, invalid, value } = row;
      const { presence, channels, consentAt, early = false } = value;
      return {
        place,
        id: names({ kind, key: id }),
        invalid: invalid ? { reason: invalid.reason, fix: invalid.fix } : null,
        presence,
        wants: channels,
        consentAt: instantOrNull(consentAt),
        /** Whether that time never counts, because it was in the future when it was first read. */
        consentEarly: early,
        /** What each configured column of the record holds, and what that means. */
        columns: read
          .filter((one) => one.place === place)
          .flatMap(({ value }) => columns.map((one) => columnOf(one, { value, addresses }))),
      };
    }),
    /** The records that name this person in a cell that is no address. */
    mentions: read.flatMap(({ place, invalid }) => {
      if (!invalid || own.some((row) => row.place === place)) return [];
      return [{ place, reason: invalid.reason, fix: invalid.fix }];
    }),
  };
}

/**
 * Returns what the snapshot records about this person, or null if it has no record; the person is
 * then not ours.
 */
function snapshotOf(explaining: Explaining) {
  const { found, rules, snapshot, names } = explaining;
  const { recorded, former, key } = found.states;
  if (!recorded) return null;
  const { contacts, channels, defaults, left } = decodeContact.recorded(recorded).value;
  return {
    ownership: recorded.ownership,
    /** Null if the contact has vanished from the platform. */
    id: recorded.id ?? null,
    // An id is named like a person, because a CRM may use the address as an id.
    crmIds: snapshot.recorded.originsOf(kind, key).map((id) => names({ kind, key: id })),
    seenAt: instant(recorded.seenAt),
    /** How long full runs have not found the person in the CRM; null if the last one did. */
    absence: absenceOf(
      snapshot.absences.get(kind, key),
      recorded,
      rules.absence,
      snapshot.recorded.successors(kind, key).length > 0,
    ),
    /** When the person left all mail, if known. */
    left: left ? { after: instantOrNull(left.after), until: instantOrNull(left.by) } : null,
    channels: Object.fromEntries(
      Object.entries(channels).map(([channel, is]) => [
        channel,
        { ...membershipOf(is), doubtful: isDoubtful(is, channel, found.states.facts) },
      ]),
    ),
    contacts: contacts.map((contact) => contactOf(contact, undefined)),
    /** The channels in which creating the contact left an opt-out that nobody made. */
    defaults,
    /** The addresses under which the same CRM record, or contact, was known before. */
    former: former.map(({ row }) => names(row)),
    moved: movedOf(explaining),
  };
}

/**
 * Returns the addresses that the CRM has now instead, and what runs do here once those are in
 * place.
 */
function movedOf({ found: { source, states }, rules, snapshot, names }: Explaining) {
  const { recorded, desired, key } = states;
  const isOurs = recorded?.id !== undefined && recorded.ownership !== 'noted';
  if (!isOurs || desired.length > 0 || source instanceof Error) return null;
  const to = snapshot.recorded.successors(kind, key).map((next) => names({ kind, key: next }));
  if (to.length === 0) return null;
  return { to, does: policyDeletes(recorded, rules.absence) ? 'delete' : 'opt_out' };
}

/** Returns the entries of the do-not-contact list; '*' stands for every channel. */
function ledgerOf({ found }: Explaining) {
  return found.states.entries.map(({ part, cause, through, after, by }) => {
    return { channel: part, cause, through, after: instantOrNull(after), until: instantOrNull(by) };
  });
}

/**
 * Returns who made an opt-out and when (after one time and by another), or null if that is not
 * known.
 */
export function membershipOf({ is, by: maker, made }: Membership) {
  const by = is === 'opt_out' ? maker : null;
  return { is, by, after: instantOrNull(made?.after), until: instantOrNull(made?.by) };
}

function platformOf({ found, details, addresses }: Explaining) {
  const { unread, states } = found;
  const contacts = states.observed.map((row) => decodeContact.observed(row).value);
  return {
    read: unread === undefined,
    why: unread instanceof Error ? unread.message : (unread ?? null),
    contacts: contacts.map((contact) => {
      const detail = details.find(({ id }) => id === contact.id);
      const notSynced = addresses && detail ? notSyncedOf(detail) : null;
      return { ...contactOf(contact, detail), notSynced };
    }),
  };
}

function contactOf({ id, left, channels }: ObservedContact, detail: Contact | undefined) {
  return {
    id,
    /** Whether the person is unsubscribed from all mail, blocked or suppressed. */
    left,
    status: detail?.status ?? null,
    suppressed: detail?.suppressionReason ?? detail?.suppressedAt ?? null,
    channels,
    createdAt: detail?.createdAt ?? null,
    updatedAt: detail?.updatedAt ?? null,
  };
}

/** Returns fields that are shown only, because the platform's API does not allow writing them. */
function notSyncedOf({ firstName, lastName, properties, groups }: Contact) {
  return {
    firstName: firstName ?? null,
    lastName: lastName ?? null,
    properties: properties ?? {},
    groups: (groups ?? []).map(({ name, id }) => name ?? id),
  };
}

function channelsOf({ found, rules, snapshot }: Explaining) {
  const { decision, states } = found;
  const acknowledged = snapshot.unmanaged.decided(kind, states.key, 'acknowledged');
  return explainPerson(states, rules).channels.map((explained) => {
    const { channel, asked, shows, tried, gates, verdict, settlement, stop } = explained;
    const { recorded } = asked;
    const problem = decision.problems.find(({ part }) => part === channel);
    const known = problem && snapshot.problems.get(problem);
    return {
      channel,
      desired: asked.wanted,
      recorded: recorded
        ? { ...membershipOf(recorded), doubtful: isDoubtful(recorded, channel, states.facts) }
        : null,
      observed: shows ?? null,
      /** Whether that is shown by a contact of ours; always so for a person who is in the CRM. */
      ours: asked.wanted !== 'gone' || shows === asked.observed,
      /** The rules in order, up to the one that matches. */
      tried: tried.map(({ rule: { id, row, asks }, matches }) => ({ id, row, asks, matches })),
      /** The gates checked after that, in order; `row` is null if the gate has none. */
      gates: gates.map(({ gate: { id, row = null, asks }, held }) => ({ id, row, asks, held })),
      /** Whether a gate overrides the rule that matched. */
      outweighed: isOutweighed(explained),
      decision: doneOf(explained, found),
      row: verdict.row,
      /** The rule or gate that decided. */
      by: verdict.by,
      /** The setting that blocks a change: 'protect' or 'optIns'. */
      stoppedBy: stop ?? null,
      settlement: settlement && { ...settlement, at: instant(settlement.at) },
      problem: problem
        ? {
            reason: problem.reason,
            fix: acknowledged.includes(channel) ? acknowledgedUnmanaged : problem.fix,
            since: instantOrNull(known?.since),
          }
        : null,
    };
  });
}

function isOutweighed({ tried, verdict }: ExplainedChannel): boolean {
  return tried.at(-1)?.rule.id !== verdict.by;
}

/** Returns the decision for the channel. Gates of the run may still withhold it. */
function doneOf({ channel, verdict }: ExplainedChannel, { decision }: Examined): string {
  const change = decision.changes.find(({ part }) => part === channel);
  if (change) return change.op;
  const isConflict = decision.problems.some(({ part }) => part === channel);
  return isConflict || verdict.action === 'conflict' ? 'conflict' : 'nothing';
}

function sendOf({ op, part, target }: Change) {
  return { op, channel: part, to: target ?? null };
}

function keptBackOf({ change, gate: { id, asks } }: Examined['keptBack'][number]) {
  return { ...sendOf(change), by: id, asks };
}

function parkedOf({ found, snapshot }: Explaining) {
  return snapshot.problems.parked(kind, found.states.key).map((parked) => ({
    channel: parked.part,
    to: parked.target === '' ? null : parked.target,
    reason: parked.reason,
    fix: parked.fix,
    since: instant(parked.since),
    attempts: parked.attempts,
    /** Null if it is not tried again until the record changes or `retry` is used. */
    retryAt: instantOrNull(parked.retryAt),
  }));
}

function historyOf({ found, snapshot, changes = changesShown }: Explaining) {
  return snapshot.recordHistory.changes(kind, found.states.key, changes).map((change) => ({
    at: instant(change.endedAt ?? change.sentAt ?? change.plannedAt),
    run: change.run,
    op: change.op,
    channel: change.part,
    outcome: change.state,
    reason: change.reason,
    fix: change.fix,
    approval: approvalOf(change),
  }));
}

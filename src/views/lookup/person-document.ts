/**
 * Examines one person, and collects everything known in one document, with a section for each place
 * that was queried.
 */
import {
  renderProblem,
  type ExpectedError,
  Interrupted,
  Invalid,
  isExpected,
} from '../../domain/errors.ts';
import { policyDeletes } from '../../records/contact/consent/absent-people.ts';
import type { PersonRules } from '../../records/contact/consent/person-facts.ts';
import { rulesOf } from '../../records/contact/consent/facts.ts';
import { z } from 'zod';
import type { Change } from '../../domain/change.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import { acknowledgedUnmanaged } from '../../domain/unmanaged-people.ts';
import type { Config } from '../../config/config.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import { explainPerson } from '../../records/contact/explain-person.ts';
import {
  type MappedColumn,
  mappedColumns,
  withDates,
} from '../../records/contact/observe/column-meanings.ts';
import { withEarlyMarked } from '../../records/contact/observe/consent-time.ts';
import {
  decodeContact,
  type Membership,
  type ObservedContact,
} from '../../records/contact/observe/contact-state.ts';
import { decodedStates } from '../../records/decoded-rows.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { examine, type Examined } from '../../engine/examine-person.ts';
import { openIn, storedCanaries, memberOf } from '../../engine/guard/canaries.ts';
import { tellCanary } from '../../engine/report/canary-text.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';
import { approvalOf } from '../../compose/output/decision-words.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { heldChangesOf } from './standing-problems.ts';
import { absenceOf } from './missing-people.ts';
import type { Names } from './person-names.ts';

/** What is asked about a person, and how people are named in the document. */
interface Asking {
  config: Config;
  key: Key;
  offline: boolean;
  names: Names;
  /** Whether addresses, and other data that is equally personal, may be shown. */
  addresses: boolean;
  /** How many of the last changes are shown. */
  changes?: number;
}

interface CrmRecord {
  place: string;
  value: Record<string, unknown>;
  invalid: DesiredRow['invalid'];
}

/** What was found, and how it is shown. */
interface Explaining extends Asking {
  rules: PersonRules;
  found: Examined;
  /**
   * The records of the CRM that may be the person's, as they were read, and the settings that read
   * them.
   */
  read: CrmRecord[];
  columns: readonly MappedColumn[];
  /** The full contacts as the platform returns them. */
  details: readonly Contact[];
  snapshot: Snapshot;
}

/** What was found of a person. */
export interface FoundPerson {
  document: ExplainedPerson;
  /** The full contacts as the platform returns them. */
  details: Contact[];
  /** Why not all of them could be read. */
  unread: ExpectedError | undefined;
}

const changesShown = 50;
const kind = 'contact';

/** Reads the CRM, the snapshot and the platform. Throws Invalid if the mirror has no contacts. */
export async function examinePerson(
  { mirror, platform }: Assembled,
  { stop, abort }: Pick<Shell, 'stop' | 'abort'>,
  asking: Asking,
): Promise<FoundPerson> {
  const { config, key, offline } = asking;
  const { snapshot } = mirror;
  const read: CrmRecord[] = [];
  // Notes the records that may be the person's as they are read: those with the address, also
  // within a cell that is none, and those with a known id.
  const parts = mirror.parts.map((part) => {
    const ids = snapshot.recorded.originsOf(part.type.name, key);
    const mayBe = ({ id, alias }: DesiredRow): boolean =>
      ids.includes(id) || alias.split(/[\s,;:<>()[\]"'|]+/).includes(key);
    const desire: RecordType['desire'] = (value, place) => {
      const row = part.type.desire(value, place);
      if (row.key === key || mayBe(row)) read.push({ place, value, invalid: row.invalid });
      return row;
    };
    return { ...part, type: { ...part.type, desire } };
  });
  const examination = { key, offline, stop, abort, progress: () => undefined };
  const found = await examine({ ...mirror, parts }, examination);
  const { contacts, policy } = config;
  if (!found || !contacts) throw new Invalid(`${config.mirror} has no contacts`);
  const details: Contact[] = [];
  let unread: ExpectedError | undefined;
  try {
    for (const { id } of found.unread ? [] : found.states.observed) {
      const contact = await platform.contacts.retrieve(id, { signal: stop });
      if (contact) details.push(contact);
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    unread = error;
  }
  const dates = 'sizes' in found.source ? found.source.sizes.dateColumns : [];
  const columns = mappedColumns(contacts, () => mirror.clock.now());
  const document = explainedOf({
    ...asking,
    rules: rulesOf(contacts, policy, absenceRulesOf(config)),
    found,
    read,
    columns: columns.map((column) => withDates(column, dates)),
    details,
    snapshot,
  });
  return { document, details, unread };
}

export type ExplainedPerson = ReturnType<typeof explainedOf>;

function explainedOf(explaining: Explaining) {
  const { found, names, snapshot, config, addresses, changes = changesShown } = explaining;
  const { key, recorded, entries, observed } = found.states;
  const crm = crmOf(explaining);
  const platform = {
    read: found.unread === undefined,
    why: found.unread instanceof Error ? found.unread.message : (found.unread ?? null),
    contacts: observed.map((row) => {
      const contact = decodeContact.observed(row).value;
      const detail = explaining.details.find(({ id }) => id === contact.id);
      /** Fields that are shown only, because the platform's API does not allow writing them. */
      const notSynced =
        addresses && detail
          ? {
              firstName: detail.firstName ?? null,
              lastName: detail.lastName ?? null,
              properties: detail.properties ?? {},
              groups: (detail.groups ?? []).map(({ name, id }) => name ?? id),
            }
          : null;
      return { ...contactOf(contact, detail), notSynced };
    }),
  };
  const history = snapshot.recordHistory.changes(kind, key, changes).map((change) => ({
    at: instant(change.endedAt ?? change.sentAt ?? change.plannedAt),
    run: change.run,
    op: change.op,
    channel: change.part,
    outcome: change.state,
    reason: change.reason,
    fix: change.fix,
    approval: approvalOf(change),
  }));
  /** The entries of the do-not-contact list; '*' stands for every channel. */
  const ledger = entries.map(({ part, cause, through, after, by }) => {
    return { channel: part, cause, through, after: instantOrNull(after), until: instantOrNull(by) };
  });
  const sends = found.sends.filter((change) => change.key === key);
  const sendOf = ({ op, part, target }: Change) => ({ op, channel: part, to: target ?? null });
  const canaries = canariesAbout(snapshot, config, key, sends);
  const places = [crm.records, crm.mentions, platform.contacts, history, ledger];
  return {
    mirror: config.mirror,
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
    keptBack: crm.read
      ? found.keptBack.map(({ change, gate }) => {
          return { ...sendOf(change), by: gate.id, asks: gate.asks };
        })
      : null,
    /** Changes that await approval because of a guard. */
    held: heldChangesOf(snapshot, { key, config, now: Date.now() }),
    ...(canaries && { canaries }),
    parked: snapshot.problems.parked(kind, key).map((parked) => ({
      channel: parked.part,
      to: parked.target === '' ? null : parked.target,
      reason: parked.reason,
      fix: parked.fix,
      since: instant(parked.since),
      attempts: parked.attempts,
      /** Null if it is not tried again until the record changes or `retry` is used. */
      retryAt: instantOrNull(parked.retryAt),
    })),
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
          .flatMap((one) => columns.map((column) => columnOf(column, one.value, addresses))),
      };
    }),
    /** The records that name this person in a cell that is no address. */
    mentions: read.flatMap(({ place, invalid }) => {
      if (!invalid || own.some((row) => row.place === place)) return [];
      return [{ place, reason: invalid.reason, fix: invalid.fix }];
    }),
  };
}

const aDate = /\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{4}/;

/**
 * Returns what a column holds. Without `addresses`, a value is shown only if it is a known word; a
 * date is named as one.
 */
function columnOf(
  { option, channel, fields, holds, read }: MappedColumn,
  value: Record<string, unknown>,
  addresses: boolean,
) {
  const { text, means } = read(value);
  const isDate = text !== undefined && aDate.test(text);
  const isWord = holds === 'words' && means !== 'unknown' && !isDate;
  return {
    /** The option of the configuration. */
    option,
    /** The channel that it decides; null for the other settings. */
    channel: channel ?? null,
    fields,
    /** Null if the value may not be shown. */
    value: text !== undefined && (addresses || isWord) ? text : null,
    /** Whether the value is a date. */
    date: isDate,
    means,
  };
}

/**
 * Returns what the snapshot records about this person, or null if it has no record; the person is
 * then not ours.
 */
function snapshotOf({ found, rules, snapshot, names }: Explaining) {
  const { recorded, former, key, desired, facts } = found.states;
  if (!recorded) return null;
  const { contacts, channels, defaults, left } = decodeContact.recorded(recorded).value;
  const successors = snapshot.recorded.successors({ kind, key });
  const isOurs = recorded.id !== undefined && recorded.ownership !== 'noted';
  const isGone = isOurs && desired.length === 0 && !(found.source instanceof Error);
  const absence = snapshot.absences.get(kind, key);
  return {
    ownership: recorded.ownership,
    /** Null if the contact has vanished from the platform. */
    id: recorded.id ?? null,
    // An id is named like a person, because a CRM may use the address as an id.
    crmIds: snapshot.recorded.originsOf(kind, key).map((id) => names({ kind, key: id })),
    seenAt: instant(recorded.seenAt),
    /** How long full runs have not found the person in the CRM; null if the last one did. */
    absence: absenceOf(absence, recorded, rules.absence, successors.length > 0),
    /** When the person left all mail, if known. */
    left: left ? { after: instantOrNull(left.after), until: instantOrNull(left.by) } : null,
    channels: Object.fromEntries(
      Object.entries(channels).map(([channel, is]) => [
        channel,
        { ...membershipOf(is), doubtful: isDoubtful(is, channel, facts) },
      ]),
    ),
    contacts: contacts.map((contact) => contactOf(contact, undefined)),
    /** The channels in which creating the contact left an opt-out that nobody made. */
    defaults,
    /** The addresses under which the same CRM record, or contact, was known before. */
    former: former.map(({ row }) => names(row)),
    /** The addresses that the CRM has now instead, and what runs do here once they are in place. */
    moved:
      isGone && successors.length > 0
        ? {
            to: successors.map((next) => names({ kind, key: next })),
            does: policyDeletes(recorded, rules.absence) ? 'delete' : 'opt_out',
          }
        : null,
  };
}

/**
 * Returns who made an opt-out and when (after one time and by another), or null if that is not
 * known.
 */
export function membershipOf({ is, by: maker, made }: Membership) {
  const by = is === 'opt_out' ? maker : null;
  return { is, by, after: instantOrNull(made?.after), until: instantOrNull(made?.by) };
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

function channelsOf({ found, rules, snapshot }: Explaining) {
  const { decision, states } = found;
  const acknowledged = snapshot.unmanaged.decided(kind, states.key, 'acknowledged');
  return explainPerson(states, rules).channels.map((explained) => {
    const { channel, asked, shows, tried, gates, verdict, settlement, stop } = explained;
    const { recorded } = asked;
    const problem = decision.problems.find(({ part }) => part === channel);
    const known = problem && snapshot.problems.get(problem);
    const change = decision.changes.find(({ part }) => part === channel);
    const isConflict = problem !== undefined || verdict.action === 'conflict';
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
      outweighed: tried.at(-1)?.rule.id !== verdict.by,
      /** The decision for the channel. Gates of the run may still withhold it. */
      decision: change?.op ?? (isConflict ? 'conflict' : 'nothing'),
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

const reasoned = z.object({ cause: z.string().optional(), shown: z.string().optional() });

function canariesAbout(
  { meta, guarded }: Snapshot,
  { policy: { canary: policy } }: Config,
  key: Key,
  sends: readonly Change[],
) {
  if (!policy) return undefined;
  // What the CRM states about this very person never waits.
  const isStated = ({ op, body, why }: Change): boolean => {
    const { cause, shown } = reasoned.parse(JSON.parse(body));
    if (op === 'delete') return why?.says === 'deleted' || shown !== undefined;
    return op === 'opt_out' && (cause === 'stated' || cause === 'flag');
  };
  return openIn(storedCanaries(meta)).flatMap(([guard, canary]) => {
    const own = sends.filter((change) => change.guard === guard && !isStated(change));
    if (own.length === 0) return [];
    // Until all of the slice is changed, nobody knows better than the hash.
    const isSent = () => guarded.canary.sent(guard, canary.run).some((one) => one.key === key);
    /** Whether the person is in the slice. */
    const member = memberOf(canary)(key) && (canary.state === 'applying' || isSent());
    /** Whether a change of the person waits for the slice. */
    const waits = !member && canary.state !== 'failed';
    return [{ ...tellCanary(guard, canary, policy), member, waits }];
  });
}

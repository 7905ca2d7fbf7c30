/**
 * Collects everything known about one person in one document, with a section for each place that
 * was queried.
 */
import { renderProblem, type ExpectedError, Interrupted, Invalid, isExpected } from '../../domain/errors.ts';
import { policyDeletes } from '../../records/contact/consent/absent-people.ts';
import { type ExplainedChannel, explainPerson } from '../../records/contact/explain-person.ts';
import { type PersonRules, rulesOf } from '../../records/contact/consent/facts.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import {
  type MappedColumn,
  type ColumnMeaning,
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
import type { Change } from '../../domain/change.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import { acknowledgedUnmanaged } from '../../domain/unmanaged-people.ts';
import type { Config } from '../../config/config.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { type Examined, examine } from '../../engine/examine-person.ts';
import { approvalOf } from '../../compose/output/decision-words.ts';
import { heldChangesOf } from './held-changes.ts';
import { absenceOf } from './missing-people.ts';
import type { Names } from './person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { z } from 'zod';
import { openIn, storedCanaries } from '../../engine/guard/canary-book.ts';
import { memberOf } from '../../engine/guard/canary-slice.ts';
import { canaryWords, tellCanary, type ToldCanary } from '../../engine/report/canary-text.ts';
import { isDecisiveOption } from '../../domain/values/decisive-options.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { Platform } from '../../platform/platform.ts';
import type { RecordType } from '../../records/record-type.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';

interface Explaining {
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

function explainedOf(explaining: Explaining) {
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

/** A canary, and what it means for one person. */
interface PersonCanary extends ToldCanary {
  /** Whether the person is in the slice. */
  member: boolean;
  /** Whether a change of the person waits for the slice. */
  waits: boolean;
}

/** Returns the canaries that are about the next changes of a person. */
function canariesAbout(
  { meta, guarded }: Snapshot,
  { policy: { canary: policy } }: Config,
  { key, sends }: { key: Key; sends: readonly Change[] },
): PersonCanary[] | undefined {
  if (!policy) return undefined;
  return openIn(storedCanaries(meta)).flatMap(([guard, canary]) => {
    const own = sends.filter((change) => change.guard === guard && !isStated(change));
    if (own.length === 0) return [];
    // Until all of the slice is changed, nobody knows better than the hash.
    const isSent = () => guarded.canary.sent(guard, canary.run).some((one) => one.key === key);
    const member = memberOf(canary)(key) && (canary.state === 'applying' || isSent());
    const waits = !member && canary.state !== 'failed';
    return [{ ...tellCanary(guard, canary, policy), member, waits }];
  });
}

const reasoned = z.object({ cause: z.string().optional(), shown: z.string().optional() });

/** Returns whether the CRM states the change about this very person, so that it never waits. */
function isStated({ op, body, why }: Change): boolean {
  const { cause, shown } = reasoned.parse(JSON.parse(body));
  if (op === 'delete') return why?.says === 'deleted' || shown !== undefined;
  return op === 'opt_out' && (cause === 'stated' || cause === 'flag');
}

/** Formats these canaries. */
export function canaryLines(canaries: readonly PersonCanary[] = []): string[] {
  return canaries.map((one) => {
    const who = one.member ? 'in the slice' : 'not in the slice';
    const wait = one.waits ? ', so the change waits' : '';
    return `${canaryWords(one)}; this person is ${who}${wait}`;
  });
}

/** A configured column of a record. */
interface CrmColumn {
  /** The option of the configuration. */
  option: string;
  /** The channel that it decides; null for the other settings. */
  channel: string | null;
  fields: readonly string[];
  /** Null if the value may not be shown. */
  value: string | null;
  /** Whether the value is a date. */
  date: boolean;
  means: ColumnMeaning;
}

const aDate = /\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{4}/;

/**
 * Returns what a column holds. Without `addresses`, a value is shown only if it is a known word; a
 * date is named as one.
 */
function columnOf(
  { option, channel, fields, holds, read }: MappedColumn,
  { value, addresses }: { value: Record<string, unknown>; addresses: boolean },
): CrmColumn {
  const { text, means } = read(value);
  const isDate = text !== undefined && aDate.test(text);
  const isWord = holds === 'words' && means !== 'unknown' && !isDate;
  return {
    option,
    channel: channel ?? null,
    fields,
    value: text !== undefined && (addresses || isWord) ? text : null,
    date: isDate,
    means,
  };
}

/** Names the columns of the CRM that decide about a channel, with their values. */
export function columnLines(
  channel: string,
  records: readonly { columns: CrmColumn[]; place: string }[],
): string[] {
  return records.flatMap(({ columns, place }) =>
    columns
      .filter((one) => one.channel === channel || isSaid(one))
      .map(({ option, fields, value, date, means }) => {
        const setting = option.slice(option.lastIndexOf('.') + 1);
        const names = fields.map((field) => `"${field}"`).join(', ');
        const held = heldValue({ value, date });
        const columnWord = fields.length === 1 ? 'column' : 'columns';
        return `${setting}: ${columnWord} ${names} ${held}: ${meaningWords[means] ?? means} (${place})`;
      }),
  );
}

/** Returns whether a column states that the person is deleted or unsubscribed from everything. */
function isSaid({ channel, option, means }: CrmColumn): boolean {
  return channel === null && isDecisiveOption(option) && means !== 'no' && means !== 'empty';
}

function heldValue({ value, date }: Pick<CrmColumn, 'value' | 'date'>): string {
  if (value === '') return 'is empty';
  if (value === null) return date ? 'holds a date' : 'holds another value';
  return `holds ${JSON.stringify(value)}${date ? ', a date' : ''}`;
}

const meaningWords: Readonly<Record<string, string>> = {
  none: 'no opinion',
  empty: 'no opinion',
  unknown: 'no known meaning',
};

/** What is asked about a person, and how people are named in the document. */
interface Asking extends Pick<Explaining, 'names' | 'addresses' | 'changes'> {
  config: Config;
  key: Key;
  offline: boolean;
}

/** What was found of a person. */
export interface FoundPerson {
  document: ExplainedPerson;
  /** The full contacts as the platform returns them. */
  details: Contact[];
  /** Why not all of them could be read. */
  unread: ExpectedError | undefined;
}

/** Reads the CRM, the snapshot and the platform. Throws Invalid if the mirror has no contacts. */
export async function examinePerson(
  { mirror, platform }: Assembled,
  { stop, abort }: Pick<Shell, 'stop' | 'abort'>,
  { config, key, offline, ...shown }: Asking,
): Promise<FoundPerson> {
  const read: Explaining['read'][number][] = [];
  const watched = watchRecords(mirror, key, (record) => void read.push(record));
  const found = await examine(watched, { key, offline, stop, abort, progress: () => undefined });
  const { contacts, policy } = config;
  if (!found || !contacts) throw new Invalid(`${config.mirror} has no contacts`);
  const { details, unread } = await detailsOf(found, platform.contacts, stop);
  const dates = 'sizes' in found.source ? found.source.sizes.dateColumns : [];
  const columns = mappedColumns(contacts, () => mirror.clock.now());
  const document = explainedOf({
    mirror: config.mirror,
    rules: rulesOf(contacts, policy, absenceRulesOf(config)),
    found,
    read,
    columns: columns.map((column) => withDates(column, dates)),
    details,
    snapshot: mirror.snapshot,
    config,
    ...shown,
  });
  return { document, details, unread };
}

/**
 * Returns the mirror with a source that also passes on the records that may be the person's as they
 * are read: those with the address, also within a cell that is none, and those with a known id.
 */
function watchRecords(
  mirror: Mirror,
  key: Key,
  hear: (record: Explaining['read'][number]) => void,
): Mirror {
  const parts = mirror.parts.map((part) => {
    const ids = mirror.snapshot.recorded.originsOf(part.type.name, key);
    const mayBe = ({ id, alias }: DesiredRow): boolean =>
      ids.includes(id) || alias.split(/[\s,;:<>()[\]"'|]+/).includes(key);
    const desire: RecordType['desire'] = (value, place) => {
      const row = part.type.desire(value, place);
      if (row.key === key || mayBe(row)) hear({ place, value, invalid: row.invalid });
      return row;
    };
    return { ...part, type: { ...part.type, desire } };
  });
  return { ...mirror, parts };
}

/** Returns the full contacts as the platform shows them, up to one that cannot be read this way. */
async function detailsOf(
  { unread, states }: Examined,
  contacts: Platform['contacts'],
  signal: AbortSignal,
): Promise<Pick<FoundPerson, 'details' | 'unread'>> {
  const details: Contact[] = [];
  if (unread) return { details, unread: undefined };
  for (const { id } of states.observed) {
    try {
      const contact = await contacts.retrieve(id, { signal });
      if (contact) details.push(contact);
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      return { details, unread: error };
    }
  }
  return { details, unread: undefined };
}

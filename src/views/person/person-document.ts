/**
 * Collects everything known of one person in one document: asked now of the CRM and the platform,
 * as the mirror has recorded it, or as it was known at a time.
 */
import { storedJson } from '../../domain/stored-json.ts';
import type { Change } from '../../domain/change.ts';
import {
  type ExpectedError,
  Interrupted,
  Invalid,
  isExpected,
  renderProblem,
} from '../../domain/errors.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import { askedClasses } from '../../domain/guards/plan-rule.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import { acknowledgedUnmanaged } from '../../domain/unmanaged-people.ts';
import { absenceRulesOf, type Config } from '../../config/config.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import { rulesOf } from '../../records/contact/consent/facts.ts';
import type { PersonRules } from '../../records/contact/consent/person-facts.ts';
import { policyDeletes } from '../../records/contact/consent/absent-people.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import { explainPerson } from '../../records/contact/consent/decide.ts';
import {
  type MappedColumn,
  mappedColumns,
  withDates,
} from '../../records/contact/observe/column-meanings.ts';
import { withEarlyMarked } from '../../records/contact/observe/consent-time.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { examine, type Examined } from '../../engine/examine-person.ts';
import { memberOf, openIn, storedCanaries } from '../../engine/judge/canaries.ts';
import { tellCanary, rejectedForMs } from '../../engine/report/guard-text.ts';
import { approvalIds } from '../../engine/judge/plan-decisions.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';
import { approvalOf, instant, instantOrNull } from '../../compose/output/format-values.ts';
import { absenceOf, successorsOf } from '../lookup/missing-people.ts';
import { masked, maskedText, type Names } from '../lookup/person-names.ts';
import { heldChangesOf, type WaitingChanges } from '../lookup/standing-problems.ts';
import { answersOf } from './person-answers.ts';
import { listEntries, type Missing, recordsOf } from './person-records.ts';
import { describeRows, membershipOf, storedRow } from './recorded-rows.ts';

interface Asked {
  config: Config;
  key: Key;
  names: Names;
  /** Whether addresses, and other data that is equally personal, may be shown. */
  addresses: boolean;
  /** The time after which nothing counts, in milliseconds since the epoch; undefined for now. */
  asOf?: number | undefined;
  /** Whether to collect all of it, and to prove that the audit log is as it was written. */
  isWhole?: boolean;
}

interface CrmRecord {
  place: string;
  value: Record<string, unknown>;
  invalid: DesiredRow['invalid'];
}

interface Found {
  examined: Examined;
  read: CrmRecord[];
  columns: readonly MappedColumn[];
  rules: PersonRules;
  /** The full contacts as the platform returns them, and why not all of them could be read. */
  details: Contact[];
  unread: ExpectedError | undefined;
}

/** What a document is made of; `found` is undefined if nobody was asked. */
interface Reading extends Asked {
  snapshot: Snapshot;
  /** The time in milliseconds since the epoch. */
  now: number;
  found?: Found;
}

const kind = 'contact';
const shownRows = { changes: 50, requests: 40 };
const allRows = { changes: 1_000_000_000, requests: 1_000_000_000 };

/** Asks the CRM and the platform. Throws Invalid if the mirror has no contacts. */
export async function askAbout(
  { mirror, platform }: Assembled,
  { stop, abort }: Shell,
  asked: Asked,
): Promise<PersonDocument> {
  const { config, key } = asked;
  const { snapshot, clock } = mirror;
  const read: CrmRecord[] = [];
  // Notes the records that may be the person's as they are read: those with the address, also
  // within a cell that is none, and those with a known id.
  const ids = snapshot.recorded.originsOf(kind, key);
  const mayBe = ({ id, alias }: DesiredRow): boolean =>
    ids.includes(id) || alias.split(/[\s,;:<>()[\]"'|]+/).includes(key);
  const { contacts: people } = mirror;
  const noting = people && {
    ...people,
    desire(value: Record<string, unknown>, place: string) {
      const row = people.desire(value, place);
      if (row.key === key || mayBe(row)) read.push({ place, value, invalid: row.invalid });
      return row;
    },
  };
  const examination = { key, offline: false, stop, abort, progress: () => undefined };
  const examined = await examine({ ...mirror, contacts: noting }, examination);
  const { contacts, policy } = config;
  if (!examined || !contacts) throw new Invalid(`${config.mirror} has no contacts`);
  const details: Contact[] = [];
  let unread: ExpectedError | undefined;
  try {
    for (const { id } of examined.unread ? [] : examined.states.observed) {
      const contact = await platform.contacts.retrieve(id, { signal: stop });
      if (contact) details.push(contact);
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    unread = error;
  }
  const dates = 'sizes' in examined.source ? examined.source.sizes.dateColumns : [];
  const columns = mappedColumns(contacts, () => clock.now());
  const found = {
    examined,
    read,
    columns: columns.map((column) => withDates(column, dates)),
    rules: rulesOf(contacts, policy, absenceRulesOf(config)),
    details,
    unread,
  };
  return documentOf({ ...asked, snapshot, now: clock.now(), found });
}

/** Returns what the mirror has recorded, now or at a time. Nobody is asked. */
export function recordedAbout(
  seen: { snapshot: Snapshot; now: number },
  asked: Asked,
): PersonDocument {
  return documentOf({ ...asked, snapshot: seen.snapshot, now: seen.now });
}

export type PersonDocument = ReturnType<typeof documentOf>;

function documentOf(reading: Reading) {
  const { found, names, snapshot, config, key, now, asOf, isWhole = false } = reading;
  const examined = found?.examined;
  const rows = isWhole ? allRows : shownRows;
  const isPast = asOf !== undefined;
  const records = recordsOf(
    { config, snapshot, now },
    { key, requests: rows.requests, asOf, isProven: isWhole, hasList: found === undefined },
  );
  const { entries } = records;
  const missing: Missing[] = [];
  const crm = crmOf(reading);
  const platform = platformOf(reading);
  if (found && !(crm.read && crm.certified)) {
    const how = crm.read ? 'not read completely' : 'not read';
    missing.push({ part: 'crm', reason: `${how}: ${crm.why ?? ''}`, fix: null });
  }
  if (found && !platform.read) {
    missing.push({ part: 'platform', reason: `not read: ${platform.why ?? ''}`, fix: null });
  }
  if (found?.unread) {
    const [{ reason, fix = null }] = found.unread.problems;
    missing.push({ part: 'platform', reason, fix });
  }
  missing.push(...records.missing);
  const ledger = examined ? listEntries(examined.states.entries) : records.listed;
  const requests = records.requests.map((one) => ({ ...masked(one, names), at: instant(one.at) }));
  const changes = snapshot.recordHistory
    .changes(kind, key, rows.changes)
    .map((one) => ({ ...one, at: one.endedAt ?? one.sentAt ?? one.plannedAt }))
    .filter(({ at }) => asOf === undefined || at <= asOf);
  const sends = examined?.sends.filter((change) => change.key === key) ?? [];
  const sendOf = ({ op, part, target }: Change) => ({ op, channel: part, to: target ?? null });
  const canaries = canariesAbout(snapshot, config, key, sends);
  const closed = closedFor(sends, config, now);
  const others = ledger.filter(({ cause }) => cause !== 'erasure');
  // The problem of an invalid record without an address is stored under its id.
  const keys = [key, ...snapshot.recorded.originsOf(kind, key).map((id) => `id ${id}`)];
  const problems = isPast
    ? []
    : keys
        .flatMap((one) => snapshot.problems.counted.listOf(kind, one))
        .map(({ class: of, cause, part, place, reason, fix, since }) => {
          return { class: of, cause, part, place, reason, fix, since: instant(since) };
        });
  const statedOut = isPast ? [] : snapshot.stated.optOutsOf({ kind, key, ids: [], mapping: '' });
  const { approvers, guards } = config;
  const waiting = isPast
    ? []
    : snapshot.holds.of({ kind, key, approvals: approvalIds(snapshot, { approvers, now }) });
  const decisions = decisionsAbout(waiting, guards);
  const recorded = isPast ? null : snapshotOf(reading, waiting);
  const places = [
    problems,
    statedOut,
    crm.records,
    crm.mentions,
    platform.contacts,
    changes,
    waiting,
    others,
    entries,
    requests,
  ];
  const known = recorded !== null || places.some(({ length }) => length > 0);
  // The configured channels, and others in which the platform shows the person.
  const channels = new Set([
    ...(config.contacts?.channels.map(({ id }) => id) ?? []),
    ...platform.contacts.flatMap((contact) => Object.keys(contact.channels)),
  ]);
  const asOfTime = instantOrNull(asOf);
  const decides = crm.read && found;
  const document = {
    mirror: config.mirror,
    person: names({ kind, key }),
    /** What is later than this is left out, and so is what can only be shown for now. */
    asOf: asOfTime,
    /** Whether any place that was read knows this person, by more than an erasure. */
    known,
    erased: ledger.find(({ cause }) => cause === 'erasure')?.until ?? null,
    answers: answersOf({
      channels: known ? [...channels] : [],
      entries,
      listed: ledger,
      asOf: asOfTime,
      recorded,
      contacts: platform.read ? platform.contacts : null,
      wants: crm.read ? crm.records.map(({ wants }) => wants) : null,
      hasInvalid: crm.records.some(({ invalid }) => invalid !== null),
      statedOut,
      problems,
      movedTo: recorded?.moved?.to ?? [],
      decisions,
    }),
    missing,
    crm,
    snapshot: recorded,
    platform,
    ledger,
    /** Null if the CRM was not read, so that nothing is decided. */
    channels: decides ? channelsOf(reading, decides) : null,
    sends: decides ? sends.map(sendOf) : null,
    /** Changes that were decided but are not sent now, with the gate that withholds them. */
    keptBack: decides
      ? decides.examined.keptBack.map(({ change, gate }) => {
          return { ...sendOf(change), by: gate.id, asks: gate.asks };
        })
      : null,
    held: heldChangesOf(waiting, guards),
    /** The changes that await approval, or that somebody has decided about. */
    decisions,
    ...(canaries && { canaries }),
    /** The classes of what is to be sent that wait for a window, until when. */
    ...(closed.length > 0 && { closed }),
    parked: (isPast ? [] : snapshot.problems.parked(kind, key)).map((parked) => ({
      channel: parked.part,
      to: parked.target === '' ? null : parked.target,
      reason: parked.reason,
      fix: parked.fix,
      since: instant(parked.since),
      attempts: parked.attempts,
      /** Null if it is not tried again until the record changes or `retry` is used. */
      retryAt: instantOrNull(parked.retryAt),
    })),
    problems,
    reports: (isPast ? [] : snapshot.optOutReports.of({ kind, key })).map((one) => ({
      channel: one.channel,
      crmId: names({ kind, key: one.crmId }),
      cause: one.cause,
      state: one.state,
      since: instant(one.plannedAt),
      endedAt: instantOrNull(one.endedAt),
    })),
    history: changes.map((change) => ({
      at: instant(change.at),
      run: change.run,
      op: change.op,
      channel: change.part,
      outcome: change.state,
      sentAt: instantOrNull(change.sentAt),
      reason: change.reason,
      fix: change.fix,
      approval: approvalOf(change),
    })),
    /** What the audit log has of the person; null if there is no log. */
    audit: records.audit && { ...records.audit, entries },
    requests,
  };
  const shown = structuredClone(document);
  maskWithin(shown, (text) => maskedText(text, names));
  return shown;
}

function maskWithin(holder: object, mask: (text: string) => string): void {
  for (const [name, value] of Object.entries(holder)) {
    const as: unknown = typeof value === 'string' ? mask(value) : value;
    if (typeof as === 'object' && as !== null) maskWithin(as, mask);
    const shownAs = Array.isArray(holder) ? name : mask(name);
    if (shownAs !== name) Reflect.deleteProperty(holder, name);
    if (as !== value || shownAs !== name) Reflect.set(holder, shownAs, as);
  }
}

function platformOf({ found, addresses, isWhole = false }: Reading) {
  const unread = found ? found.examined.unread : 'not asked';
  const details = found?.details ?? [];
  return {
    read: unread === undefined,
    why: unread instanceof Error ? unread.message : (unread ?? null),
    contacts: (found?.examined.states.observed ?? []).map((row) => {
      const { id, left, channels } = decodeContact.observed(row).value;
      const detail = details.find((one) => one.id === id);
      /** Fields that are shown only, because the platform's API does not allow writing them. */
      const notSynced =
        addresses && detail
          ? {
              firstName: detail.firstName ?? null,
              lastName: detail.lastName ?? null,
              properties: detail.properties ?? {},
              groups: (detail.groups ?? []).map((one) => one.name ?? one.id),
            }
          : null;
      return {
        id,
        /** Whether the person is unsubscribed from all mail, blocked or suppressed. */
        left,
        status: detail?.status ?? null,
        suppressed: detail?.suppressionReason ?? detail?.suppressedAt ?? null,
        channels,
        createdAt: detail?.createdAt ?? null,
        updatedAt: detail?.updatedAt ?? null,
        notSynced,
      };
    }),
    /** The contacts as the platform returns them, if all of it is collected. */
    ...(isWhole && { raw: details }),
  };
}

function crmOf({ found, names, addresses }: Reading) {
  const unread = { read: false, certified: false, records: [], mentions: [] };
  if (!found) return { ...unread, why: 'not asked' };
  const { read, columns } = found;
  const { source, states } = found.examined;
  if (source instanceof Error) return { ...unread, why: source.message };
  const own = withEarlyMarked(states).desired;
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
          .flatMap((one) =>
            columns.map((column) => {
              // Without `addresses`, a value is shown only if it is a known word; dates are named
              // as dates.
              const { option, channel, fields, holds, read } = column;
              const { text, means } = read(one.value);
              const isDate = text !== undefined && aDate.test(text);
              const isWord = holds === 'words' && means !== 'unknown' && !isDate;
              return {
                option,
                /** The channel that it decides; null for the other settings. */
                channel: channel ?? null,
                fields,
                /** Null if the value may not be shown. */
                value: text !== undefined && (addresses || isWord) ? text : null,
                date: isDate,
                means,
              };
            }),
          ),
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

/** Null if there is no record; the person is then not ours. */
function snapshotOf({ found, snapshot, names, key, config }: Reading, waiting: WaitingChanges) {
  const row = snapshot.recorded.get(kind, key);
  if (!row) return null;
  const {
    kind: _kind,
    key: _key,
    name: _name,
    ...recorded
  } = describeRows({ snapshot, names })(row);
  const { left } = decodeContact.recorded(row).value;
  const rules = absenceRulesOf(config);
  const examined = found?.examined;
  const successors = examined
    ? snapshot.recorded.successors({ kind, key })
    : successorsOf(snapshot, key);
  const isOurs = row.id !== undefined && row.ownership !== 'noted';
  const isWanted =
    examined && (examined.states.desired.length > 0 || examined.source instanceof Error);
  // Runs count flagged people as absent, too; a held change names the records with the flag.
  const isFlagged =
    waiting.some(({ guard, ids }) => guard === 'delete' && ids !== '[]') ||
    Object.values(recorded.channels).some(({ cause }) => cause === 'flag');
  const absence = isFlagged ? undefined : snapshot.absences.get(kind, key);
  // A full run has seen the contact since anything was recorded of it.
  const read = instantOrNull(row.id === undefined ? null : snapshot.runs.proven()?.startedAt);
  return {
    ...recorded,
    seenAt:
      [recorded.seenAt, read]
        .flatMap((at) => at ?? [])
        .toSorted()
        .at(-1) ?? null,
    /** How long full runs have not found the person in the CRM; null if the last one did. */
    absence: absenceOf(absence, row, rules, successors.length > 0),
    left: left ? { after: instantOrNull(left.after), until: instantOrNull(left.by) } : null,
    contacts: recorded.contacts.map((contact) => ({ ...contact, ...undetailed })),
    /** The addresses under which the same CRM record, or contact, was known before. */
    former: (examined?.states.former ?? []).map(({ row: one }) => names(one)),
    /** The addresses that the CRM has now instead, and what runs do here once they are in place. */
    moved:
      isOurs && !isWanted && successors.length > 0
        ? {
            to: successors.map((next) => names({ kind, key: next })),
            does: policyDeletes(row, rules) ? 'delete' : 'opt_out',
          }
        : null,
    raw: storedRow(row, names),
  };
}

const undetailed = { status: null, suppressed: null, createdAt: null, updatedAt: null };

function channelsOf({ snapshot }: Reading, { examined: { decision, states }, rules }: Found) {
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
      tried: tried.map(({ rule: { id, asks }, matches }) => ({ id, asks, matches })),
      gates: gates.map(({ gate: { id, asks }, held }) => ({ id, asks, held })),
      /** Whether a gate overrides the rule that matched. */
      outweighed: tried.at(-1)?.rule.id !== verdict.by,
      /** The decision for the channel. Gates of the run may still withhold it. */
      decision: change?.op ?? (isConflict ? 'conflict' : 'nothing'),
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

function decisionsAbout(waiting: WaitingChanges, guards: Config['guards']) {
  const all = waiting.map((hold) => {
    const { guard, op, part: channel, verdict, by, reason, decidedAt } = hold;
    const { configKey } = guardRows[guard];
    const { holdForMs } = guards[configKey];
    /** When a rejection ends, or when an opt-out needs no approval any more; null if never. */
    let until: number | undefined;
    if (verdict === 'rejected') until = (decidedAt ?? 0) + rejectedForMs;
    else if (verdict === null && holdForMs !== undefined) until = hold.since + holdForMs;
    const is: 'waiting' | 'approved' | 'rejected' = verdict ?? 'waiting';
    return {
      is,
      guard: configKey,
      op,
      channel,
      by,
      reason,
      until: instantOrNull(until),
    };
  });
  const isRejected = ({ is }: { is: string }) => is === 'rejected';
  return [...all.filter((one) => !isRejected(one)), ...all.filter(isRejected)];
}

const reasoned = storedJson<{ cause?: string; shown?: string }>('a planned change');

/** Returns whether the CRM states the change about this very person, so that it never waits. */
function isStated({ op, body, why }: Change): boolean {
  const { cause, shown } = reasoned.decode(body);
  if (op === 'delete') return why?.says === 'deleted' || shown !== undefined;
  return op === 'opt_out' && (cause === 'stated' || cause === 'flag');
}

/** Returns the classes of these changes that no window allows now, and when one does. */
function closedFor(sends: readonly Change[], { windows, schedule }: Config, now: number) {
  const time = { at: now, timezone: schedule?.timezone ?? 'UTC' };
  return askedClasses.flatMap((of) => {
    const isAny = sends.some((change) => change.guard === of && !isStated(change));
    if (!isAny || !isClosed(windows, of, time)) return [];
    const opens = opening(windows, of, time);
    return [{ class: of, opens: opens?.words ?? null, opensAt: instantOrNull(opens?.at) }];
  });
}

function canariesAbout(
  { meta, guarded }: Snapshot,
  { policy: { canary: policy } }: Config,
  key: Key,
  sends: readonly Change[],
) {
  if (!policy) return undefined;
  return openIn(storedCanaries(meta)).flatMap(([guard, canary]) => {
    const own = sends.filter((change) => change.guard === guard && !isStated(change));
    if (own.length === 0) return [];
    // Until all of the slice is changed, nobody knows better than the hash.
    const isSent = () =>
      guarded.canary.sent({ guard, run: canary.run }).some((one) => one.key === key);
    const member = memberOf(canary)(key) && (canary.state === 'applying' || isSent());
    const waits = !member && canary.state !== 'failed';
    return [{ ...tellCanary(guard, canary, policy), member, waits }];
  });
}

/**
 * Describes what the snapshot records of people and templates: one row as an entry, selected rows
 * page by page, so that a large snapshot needs no more memory, and everything of one record as a
 * document and as text.
 */
import { sectionLines } from '../render/text.ts';
import type { Section } from '../sections.ts';
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { RecordedRow, Ownership, RecordTypeName } from '../../domain/record.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import { heldChangesOf } from '../lookup/standing-problems.ts';
import { absenceOf, absenceWords } from '../lookup/missing-people.ts';
import { keyOfHash, type Names, type RecordName, wordOf } from '../lookup/person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { counted } from '../../domain/values/counted.ts';
import { memberWords, timeWords } from '../lookup/person-text.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import {
  decodeContact,
  type RecordedContact,
} from '../../records/contact/observe/contact-state.ts';
import { decodeTemplate } from '../../records/template/template-state.ts';
import { resetMark } from '../../store/tables/recorded-state.ts';
import { membershipOf } from '../lookup/person-document.ts';
import { type Command, Option } from 'commander';
import { csvLines } from '../../compose/output/csv-text.ts';

/** The document of `state show`. */
export type RecordDocument = ReturnType<typeof documentOf>;

/**
 * Returns the record that a word means: an address, a hash, an id of the CRM, or the key or name of
 * a template. Only the snapshot is read. Throws Invalid if it knows no such record.
 */
export async function recordNamed(who: string, snapshot: Snapshot): Promise<RecordName> {
  const word = wordOf(who);
  if (word.includes('@')) return { kind: 'contact', key: word };
  const hashed = word.startsWith('#') ? await keyOfHash(word, snapshot) : undefined;
  if (hashed !== undefined) return { kind: 'contact', key: hashed };
  if (snapshot.recorded.get('template', word)) return { kind: 'template', key: word };
  const [byId] = snapshot.recorded.keysOfOrigin('contact', word);
  if (byId !== undefined) return { kind: 'contact', key: byId };
  const describe = entriesIn({ snapshot, names: ({ key }) => key });
  const templates = snapshot.recorded.next('template', '', snapshot.recorded.count('template'));
  const byName = templates.find((row) => describe(row).name === word);
  if (byName) return { kind: 'template', key: byName.key };
  throw new Invalid(`"${word}" names nothing that is recorded`, {
    fix: 'give an address, a hash as `crm-mirror state list` shows it, a CRM id, or the key or name of a template',
  });
}

/** Returns what is recorded of a record. `names` names records. */
export function documentOf(
  { config, snapshot, names }: { config: Config; snapshot: Snapshot; names: Names },
  { kind, key }: RecordName,
) {
  const { recorded, problems, recordHistory } = snapshot;
  const row = recorded.get(kind, key);
  // The problem of an invalid record without an address is stored under its id.
  const keys = [key, ...recorded.originsOf(kind, key).map((id) => `id ${id}`)];
  return {
    mirror: config.mirror,
    kind,
    key: names({ kind, key }),
    /** Null if the snapshot has no row of it. */
    recorded: row ? entriesIn({ snapshot, names })(row) : null,
    /** How long full runs have not found the person in the CRM; null if the last one did. */
    absence: absenceOf(
      snapshot.absences.get(kind, key),
      row,
      absenceRulesOf(config),
      recorded.successors({ kind, key }).length > 0,
    ),
    problems: keys
      .flatMap((one) => problems.counted.listOf(kind, one))
      .map(({ class: of, cause, part, place, reason, fix, since }) => {
        return { class: of, cause, part, place, reason, fix, since: instant(since) };
      }),
    /** Refused changes, which are not sent again until the record changes or a time has come. */
    refused: problems.parked(kind, key).map((one) => ({
      part: one.part,
      to: one.target === '' ? null : one.target,
      attempts: one.attempts,
      retryAt: instantOrNull(one.retryAt),
      since: instant(one.since),
    })),
    awaitingApproval: heldChangesOf(snapshot, { key, config, now: Date.now() }).map(
      ({ decisions: _, ...held }) => held,
    ),
    /** Changes that are planned, or sent and not answered. */
    open: recordHistory
      .changes(kind, key, changesRead)
      .filter(({ state }) => openStates.has(state))
      .map(({ run, op, part, state, plannedAt, sentAt }) => {
        const at = { plannedAt: instant(plannedAt), sentAt: instantOrNull(sentAt) };
        return { run, op, part, state, ...at };
      }),
    /** Reports of opt-outs to the CRM. */
    reports: snapshot.optOutReports.of({ kind, key }).map((one) => ({
      channel: one.channel,
      crmId: names({ kind, key: one.crmId }),
      cause: one.cause,
      state: one.state,
      since: instant(one.plannedAt),
      endedAt: instantOrNull(one.endedAt),
    })),
    /**
     * The row as it is stored; null if there is none. A text of a person that holds an address is
     * named like a person.
     */
    raw: row ? storedRow(row, names) : null,
  };
}

function storedRow({ body, ...row }: RecordedRow, names: Names) {
  const { kind, id, ownership, shown, desired, seenAt } = row;
  const named = (_: string, value: unknown): unknown =>
    kind === 'contact' && typeof value === 'string' ? names({ kind, key: value }) : value;
  const parsed: unknown = JSON.parse(body, named);
  const rest = { shown: shown ?? null, desired: desired ?? null, seen_at: seenAt };
  return { id: id ?? null, ownership, ...rest, body: parsed };
}

const openStates: ReadonlySet<string> = new Set(['planned', 'sent', 'unknown']);
const changesRead = 1_000;

/** Returns the lines, one section for each kind of fact. */
export function recordLines(document: RecordDocument): Line[] {
  const { mirror, kind, key, raw } = document;
  const { body, ...columns } = raw ?? {};
  // The content of a template is left to --json.
  const stored = [
    ...Object.entries(columns).map(([name, value]) => `${name}: ${value ?? 'null'}`),
    kind === 'template' ? 'body: --json shows it' : `body: ${JSON.stringify(body)}`,
  ];
  const sections = [...recordSections(document)];
  if (raw) sections.push({ title: 'As it is stored', lines: stored });
  const what = kind === 'template' ? `template ${key}` : key;
  return [styled('bold', `${what} in ${mirror}`), '', ...sectionLines(sections)];
}

/** Returns what is recorded, but not how it is stored. */
export function recordSections(document: RecordDocument): Section[] {
  const { recorded, open, awaitingApproval, problems, refused, reports } = document;
  const sections: [string, readonly string[]][] = [
    ['Recorded', recorded ? recordedLines(recorded, document) : ['nothing']],
    ['Channels', recorded ? channelLines(recorded) : []],
    [
      'Open changes',
      open.map(({ op, part, state, run, plannedAt, sentAt }) => {
        const where = part === '' ? '' : ` in ${part}`;
        const when = sentAt === null ? `planned ${plannedAt}` : `sent ${sentAt}`;
        const outcome = state === 'unknown' ? ', its outcome is not known' : '';
        return `${changeName(op, false)}${where}: ${when}${outcome} (run ${run})`;
      }),
    ],
    [
      'Awaiting approval',
      awaitingApproval.map(({ guard, channel, since, until }) => {
        const where = channel === null ? '' : ` in ${channel}`;
        const when = since === null ? '' : ` since ${since}`;
        return `guards.${guard}${where}${when}${until === null ? '' : `, until ${until}`}`;
      }),
    ],
    [
      'Problems',
      problems.map(({ class: of, part, place, reason, fix, since }) => {
        const where = [part, place ?? ''].filter((word) => word !== '').join(', ');
        return `${of}${where === '' ? '' : ` (${where})`} since ${since}: ${renderProblem({ reason, fix })}`;
      }),
    ],
    [
      'Refused by the platform',
      refused.map(({ part, to, attempts, retryAt }) => {
        const where = `${part === '' ? 'the whole record' : part}${to === null ? '' : `, contact ${to}`}`;
        const until = retryAt === null ? 'when the record changes, or `retry`' : `from ${retryAt}`;
        return `${where}: tried ${counted(attempts, 'time')}, again ${until}`;
      }),
    ],
    [
      'Reported to the CRM',
      reports.map(({ channel, crmId, cause, state, since }) => {
        const where = channel === '*' ? 'all mail' : channel;
        return `${cause} of ${where} for CRM id ${crmId}: ${state}, since ${since}`;
      }),
    ],
  ];
  return sections.map(([title, lines]) => ({ title, lines, isList: true }));
}

const ownershipWords = {
  created: 'ours: a run created it',
  adopted: 'ours: it was there, and a run adopted it',
  noted: 'not ours: only what must be remembered of it is recorded',
};

function recordedLines(entry: RecordedEntry, { absence }: RecordDocument): string[] {
  const { ownership, id, name, crmIds, seenAt, settled, readAgain, reset, allMail } = entry;
  const left =
    allMail && allMail.until !== null ? `, ${timeWords({ ...allMail, until: allMail.until })}` : '';
  return [
    ownershipWords[ownership],
    id === null ? 'vanished from the platform' : `id ${id} on the platform`,
    ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
    ...(crmIds.length === 0 ? [] : [`CRM id ${crmIds.join(', ')}`]),
    `last seen ${seenAt ?? 'never'}`,
    settled ? 'nothing was left to do' : 'the next run that reads it decides anew',
    ...(reset ? ['reset: the next run reads it on the platform'] : []),
    ...(readAgain && !reset ? ['the next full run compares it with the platform'] : []),
    ...(allMail
      ? [`opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})${left}`]
      : []),
    ...(entry.protected ? ['protected by contacts.protect'] : []),
    ...(entry.allowed ? ['its erasure was taken back, and the platform not read since'] : []),
    ...(entry.renamed.length > 0 ? [`under another address: ${entry.renamed.join(', ')}`] : []),
    ...(absence ? [absenceWords(absence)] : []),
  ];
}

const causeWords: Readonly<Record<string, string>> = {
  stated: 'the CRM states it',
  absence: 'missing from the CRM',
  flag: 'deleted in the CRM',
  address: 'the CRM has another address',
  undone: '`undo` took our opt-in back',
};

function channelLines({ channels, defaults }: RecordedEntry): string[] {
  return Object.entries(channels).map(([channel, is]) => {
    const { cause, acknowledgedAt, statedBy, released, resolved } = is;
    const more = [
      ...(cause === null ? [] : [causeWords[cause] ?? cause]),
      ...(acknowledgedAt === null ? [] : [`acknowledged ${acknowledgedAt}`]),
      ...(statedBy.length === 0 ? [] : [`stated by CRM id ${statedBy.join(', ')}`]),
      ...(released ? ['released by `allow`'] : []),
      ...(defaults.includes(channel) ? ['set by the creation, by nobody'] : []),
      ...(resolved ? [`resolved as an opt-in by ${resolved.by}: ${resolved.reason}`] : []),
    ];
    return [`${channel}: ${memberWords(is)}`, ...more].join(', ');
  });
}

/** A recorded row as a document. */
export type RecordedEntry = ReturnType<ReturnType<typeof entriesIn>>;

/** A template has nothing of what is recorded of a person. */
const nobody: RecordedContact = { channels: {}, contacts: [], defaults: [], outgrown: [] };

function entriesIn({ snapshot, names }: { snapshot: Snapshot; names: Names }) {
  const facts = factsIn(snapshot);
  // An id is named like a person, because a CRM may use the address as an id.
  const idName = (id: string): string => names({ kind: 'contact', key: id });
  return (row: RecordedRow) => {
    const { kind, key, ownership, id, seenAt, shown, desired } = row;
    const contact = kind === 'contact' ? decodeContact.recorded(row).value : nobody;
    const { channels, contacts, defaults, left, early, renamed, outgrown } = contact;
    return {
      kind,
      key: names(row),
      ownership,
      /** The platform's id; null if the record has vanished there. */
      id: id ?? null,
      crmIds: snapshot.recorded.originsOf(kind, key).map(idName),
      /** Null if no run has seen it on the platform. */
      seenAt: instantOrNull(seenAt === 0 ? null : seenAt),
      /** Whether the last run about the record left nothing to do. */
      settled: desired !== undefined,
      /** Whether the next full run compares the record with the platform, whatever that shows. */
      readAgain: shown === undefined || shown === resetMark,
      /** Whether `state reset` was called, and no run has read the person since. */
      reset: shown === resetMark,
      /** The name of a template on the platform; null for a person. */
      name:
        kind === 'contact' ? null : (decodeTemplate.recorded(row).value.shown.fields.name ?? null),
      channels: Object.fromEntries(
        Object.entries(channels).map(([channel, is]) => {
          const { cause, acked, stated = [], bound = [], released = false, settled } = is;
          const { stating = [], at, ...settlement } = settled ?? {};
          const member = {
            ...membershipOf(is),
            doubtful: isDoubtful(is, channel, facts),
            /** Why the mirror made the opt-out: stated, absence, flag or address; else null. */
            cause: cause ?? null,
            acknowledgedAt: instantOrNull(acked),
            /** The CRM records that state the opt-out, and all those to which it is bound. */
            statedBy: stated.map(idName),
            boundTo: bound.map(idName),
            /** Whether `allow` released the opt-out. */
            released,
            /**
             * How an operator resolved the opt-out; null if nobody did. `inBy`: the CRM records
             * that stated the opt-in.
             */
            resolved: settled
              ? { ...settlement, at: instantOrNull(at), inBy: stating.map(idName) }
              : null,
          };
          return [channel, member];
        }),
      ),
      /** Opted out of all mail, blocked or suppressed; null if not. */
      allMail: contacts.some((one) => one.left)
        ? {
            causes: [...new Set(contacts.flatMap(({ causes = [] }) => causes))],
            after: instantOrNull(left?.after),
            until: instantOrNull(left?.by),
          }
        : null,
      /** The channels in which creating the contact left an opt-out that nobody made. */
      defaults,
      /** The times of consent in the CRM that were in the future when they were first read. */
      earlyConsents: (early ?? []).map(instantOrNull),
      protected: contact.protected ?? false,
      /** Whether `allow` took back an erasure, and the platform was not read since. */
      allowed: contact.allowed ?? false,
      /** Channels that the person joined after leaving the channels that these replace. */
      outgrown,
      contacts: contacts.map((one) => ({ ...one, causes: one.causes ?? [] })),
      /** The person's contacts that have another address on the platform now. */
      renamed: (renamed ?? []).map((one) => one.id),
    };
  };
}

const kinds = ['contact', 'template'] as const;
const ownerships = ['created', 'adopted', 'noted'] as const;
const statuses = ['subscribed', 'unsubscribed', 'all_mail', 'vanished'] as const;

/** The flags that select rows. */
export interface FilterFlags {
  kind?: RecordTypeName;
  channel?: string;
  status?: (typeof statuses)[number];
  ownership?: Ownership;
}

/** The help of these flags. */
export const filterHelp =
  '  status      subscribed or unsubscribed (in a channel), all_mail: opted out of all mail, blocked\n' +
  '              or suppressed; vanished: no longer on the platform\n' +
  '  ownership   created or adopted: ours; noted: not ours, but its opt-out is remembered\n';

/** Adds the flags that select rows. */
export function filterOptions(command: Command): Command {
  return command
    .addOption(new Option('--kind <kind>', 'only contacts, or only templates').choices(kinds))
    .option('--channel <channel>', 'only people with a record of this channel')
    .addOption(
      new Option('--status <status>', 'only this status, in any channel or in --channel').choices(
        statuses,
      ),
    )
    .addOption(new Option('--ownership <ownership>', 'only this one').choices(ownerships));
}

/** Throws Invalid for a channel that the configuration does not name. */
export function refuseUnknownChannel({ channel }: FilterFlags, { contacts, file }: Config): void {
  if (channel === undefined) return;
  const all = contacts?.channels.flatMap(({ id, replaces = id }) => [id, replaces]) ?? [];
  if (all.includes(channel)) return;
  throw new Invalid(`--channel ${channel}: ${file} has no such channel`, {
    fix: `give one of ${[...new Set(all)].join(', ')}`,
  });
}

const rowsAtOnce = 500;

/** Yields the entries that match, contacts first, each type in the order of its keys. */
export function* selected(
  recording: { snapshot: Snapshot; names: Names },
  flags: FilterFlags,
): Generator<RecordedEntry> {
  const { recorded } = recording.snapshot;
  const entryOf = entriesIn(recording);
  const { channel, status, ownership } = flags;
  const isWanted = (entry: RecordedEntry): boolean => {
    if (ownership !== undefined && entry.ownership !== ownership) return false;
    const about = Object.entries(entry.channels).filter(([id]) => (channel ?? id) === id);
    if (channel !== undefined && about.length === 0) return false;
    if (status === undefined) return true;
    if (status === 'vanished') return entry.id === null;
    if (status === 'all_mail') return entry.allMail !== null;
    const is = status === 'subscribed' ? 'opt_in' : 'opt_out';
    return about.some(([, one]) => one.is === is);
  };
  for (const kind of kinds.filter((one) => (flags.kind ?? one) === one)) {
    for (let after = ''; ;) {
      const page = recorded.next(kind, after, rowsAtOnce);
      yield* page.map(entryOf).filter(isWanted);
      if (page.length < rowsAtOnce) break;
      after = page.at(-1)?.key ?? after;
    }
  }
}

const ownershipNames = { created: 'created by us', adopted: 'adopted', noted: 'not ours' };

/** Returns the head of the table, and a row for each entry. */
export function tableRows(entries: readonly RecordedEntry[]): string[][] {
  const rows = entries.map(({ kind, key, ownership, seenAt, id, name, channels, allMail }) => {
    const states = [
      ...(id === null ? ['vanished from the platform'] : []),
      ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
      ...(allMail
        ? [`opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})`]
        : []),
      ...Object.entries(channels).map(
        ([channel, is]) => `${channel} ${memberWords({ ...is, after: null, until: null })}`,
      ),
    ];
    const what = kind === 'template' ? `template ${key}` : key;
    const state = states.join(', ') || 'nothing is recorded of a channel';
    return [what, ownershipNames[ownership], state, seenAt ?? '–'];
  });
  return [['RECORD', 'OWNERSHIP', 'STATE', 'LAST SEEN'], ...rows];
}

/** The first line of the CSV. */
export const csvHead =
  'kind,key,ownership,id,crm_ids,channel,is,by,cause,after,until,doubtful,all_mail,seen_at';

/** Returns the CSV lines of an entry: one for each channel, or one if none is recorded. */
export function csvOf(entry: RecordedEntry): string[] {
  const { kind, key, ownership, id, crmIds, channels, allMail, seenAt } = entry;
  const first = [kind, key, ownership, id ?? '', crmIds.join(' ')];
  const last = [allMail ? allMail.causes.join(' ') || 'unknown' : '', seenAt ?? ''];
  const parts = Object.entries(channels).map(([channel, is]) => {
    const { by, cause, after, until, doubtful } = is;
    const who = [channel, is.is, by ?? '', cause ?? ''];
    return [...who, after ?? '', until ?? '', doubtful ? 'yes' : 'no'];
  });
  const rows = parts.length > 0 ? parts : [Array.from({ length: 7 }, () => '')];
  return csvLines(
    rows.map((row) => [...first, ...row, ...last]),
    { spreadsheet: true },
  );
}

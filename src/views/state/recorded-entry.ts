/** Describes what the snapshot records of one contact or template, as a document. */
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import {
  decodeContact,
  type Membership,
  type RecordedContact,
} from '../../records/contact/observe/contact-state.ts';
import { decodeTemplate } from '../../records/template/template-state.ts';
import type { PlatformFacts } from '../../records/platform-facts.ts';
import type { RecordedRow, Ownership, RecordTypeName } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { resetMark } from '../../store/tables/recorded-state.ts';
import { membershipOf } from '../lookup/person-document.ts';
import type { Names } from '../lookup/person-names.ts';
import { instantOrNull } from '../../compose/output/format-values.ts';
import { type Command, Option } from 'commander';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import { csvLines } from '../../compose/output/csv-text.ts';
import { memberWords } from '../lookup/person-text.ts';

/** The snapshot, and how records are named. */
interface Recording {
  snapshot: Snapshot;
  names: Names;
}

/** A recorded row as a document. */
export type RecordedEntry = ReturnType<ReturnType<typeof entriesIn>>;

/** Returns a function that describes recorded rows. */
export function entriesIn({ snapshot, names }: Recording) {
  const facts = factsIn(snapshot);
  // An id is named like a person, because a CRM may use the address as an id.
  const idName = (id: string): string => names({ kind: 'contact', key: id });
  return (row: RecordedRow) => {
    const { kind, key, ownership, id, seenAt, shown, desired } = row;
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
      name: kind === 'contact' ? null : nameOf(row),
      ...contactOf(kind === 'contact' ? decodeContact.recorded(row).value : nobody, {
        idName,
        facts,
      }),
    };
  };
}

type IdName = (id: string) => string;

function contactOf(
  { channels, contacts, defaults, left, ...body }: RecordedContact,
  { idName, facts }: { idName: IdName; facts: PlatformFacts },
) {
  return {
    channels: Object.fromEntries(
      Object.entries(channels).map(([channel, is]) => {
        const doubtful = isDoubtful(is, channel, facts);
        return [channel, { ...membershipOf(is), doubtful, ...madeBy(is, idName) }];
      }),
    ),
    /** Opted out of all mail, blocked or suppressed; null if not. */
    allMail: contacts.some((contact) => contact.left)
      ? {
          causes: [...new Set(contacts.flatMap(({ causes = [] }) => causes))],
          after: instantOrNull(left?.after),
          until: instantOrNull(left?.by),
        }
      : null,
    /** The channels in which creating the contact left an opt-out that nobody made. */
    defaults,
    /** The times of consent in the CRM that were in the future when they were first read. */
    earlyConsents: (body.early ?? []).map(instantOrNull),
    protected: body.protected ?? false,
    /** Whether `allow` took back an erasure, and the platform was not read since. */
    allowed: body.allowed ?? false,
    /** Channels that the person joined after leaving the channels that these replace. */
    outgrown: body.outgrown,
    contacts: contacts.map((contact) => ({ ...contact, causes: contact.causes ?? [] })),
    /** The person's contacts that have another address on the platform now. */
    renamed: (body.renamed ?? []).map(({ id }) => id),
  };
}

function madeBy({ cause, acked, stated = [], bound = [], ...is }: Membership, idName: IdName) {
  const { released = false, settled } = is;
  return {
    /** Why the mirror made the opt-out: stated, absence, flag or address; null if it did not. */
    cause: cause ?? null,
    acknowledgedAt: instantOrNull(acked),
    /** The CRM records that state the opt-out, and all those to which it is bound. */
    statedBy: stated.map(idName),
    boundTo: bound.map(idName),
    /** Whether `allow` released the opt-out. */
    released,
    /** How an operator resolved the opt-out; null if nobody did. */
    resolved: settled ? resolvedBy(settled, idName) : null,
  };
}

function resolvedBy(
  { stating = [], at, ...settlement }: NonNullable<Membership['settled']>,
  idName: IdName,
) {
  /** `inBy`: the CRM records that stated the opt-in. */
  return { ...settlement, at: instantOrNull(at), inBy: stating.map(idName) };
}

function nameOf(row: RecordedRow): string | null {
  return decodeTemplate.recorded(row).value.shown.fields.name ?? null;
}

/** A template has nothing of what is recorded of a person. */
const nobody: RecordedContact = { channels: {}, contacts: [], defaults: [], outgrown: [] };

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
export function* selected(recording: Recording, flags: FilterFlags): Generator<RecordedEntry> {
  const { recorded } = recording.snapshot;
  const entryOf = entriesIn(recording);
  for (const kind of kinds.filter((one) => (flags.kind ?? one) === one)) {
    for (let after = ''; ;) {
      const page = recorded.next(kind, after, rowsAtOnce);
      yield* page.map(entryOf).filter((entry) => isWanted(entry, flags));
      if (page.length < rowsAtOnce) break;
      after = page.at(-1)?.key ?? after;
    }
  }
}

function isWanted(entry: RecordedEntry, { channel, status, ownership }: FilterFlags): boolean {
  if (ownership !== undefined && entry.ownership !== ownership) return false;
  const about = Object.entries(entry.channels).filter(([id]) => (channel ?? id) === id);
  if (channel !== undefined && about.length === 0) return false;
  if (status === undefined) return true;
  if (status === 'vanished') return entry.id === null;
  if (status === 'all_mail') return entry.allMail !== null;
  const is = status === 'subscribed' ? 'opt_in' : 'opt_out';
  return about.some(([, one]) => one.is === is);
}

const ownershipWords = { created: 'created by us', adopted: 'adopted', noted: 'not ours' };

/** Returns the head of the table, and a row for each entry. */
export function tableRows(entries: readonly RecordedEntry[]): string[][] {
  return [
    ['RECORD', 'OWNERSHIP', 'STATE', 'LAST SEEN'],
    ...entries.map((entry) => [
      entry.kind === 'template' ? `template ${entry.key}` : entry.key,
      ownershipWords[entry.ownership],
      stateWords(entry),
      entry.seenAt ?? '–',
    ]),
  ];
}

/** Formats the state, such as: ch_news opt in, ch_product opt out by us */
function stateWords({ id, name, channels, allMail }: RecordedEntry): string {
  const words = [
    ...(id === null ? ['vanished from the platform'] : []),
    ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
    ...(allMail ? [`opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})`] : []),
    ...Object.entries(channels).map(
      ([channel, is]) => `${channel} ${memberWords({ ...is, after: null, until: null })}`,
    ),
  ];
  return words.join(', ') || 'nothing is recorded of a channel';
}

const columns = [
  'kind',
  'key',
  'ownership',
  'id',
  'crm_ids',
  'channel',
  'is',
  'by',
  'cause',
  'after',
  'until',
  'doubtful',
  'all_mail',
  'seen_at',
];

/** The first line of the CSV. */
export const csvHead = columns.join(',');

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

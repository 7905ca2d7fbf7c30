/**
 * Describes what the snapshot records of people and templates: one row as an entry, and selected
 * rows page by page, so that a large snapshot needs no more memory.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Ownership, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import {
  decodeContact,
  emptyRecord,
  type Membership,
} from '../../records/contact/observe/contact-state.ts';
import { decodeTemplate } from '../../records/template/template-state.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { resetMark } from '../../store/tables/recorded-state.ts';
import { csvLines } from '../../compose/output/write-export.ts';
import { instantOrNull, timeWords } from '../../compose/output/format-values.ts';
import { present, type Section } from '../sections.ts';
import { keyOfHash, type Names, type RecordName, wordOf } from '../lookup/person-names.ts';

export type RecordedEntry = ReturnType<ReturnType<typeof describeRows>>;

/** What is recorded of a person, whose name is elsewhere. */
export type RecordedPerson = Omit<RecordedEntry, 'kind' | 'key' | 'name'>;

/** Returns a function that describes a recorded row. */
export function describeRows({ snapshot, names }: { snapshot: Snapshot; names: Names }) {
  const facts = factsIn(snapshot);
  // An id is named like a person, because a CRM may use the address as an id.
  const idName = (id: string): string => names({ kind: 'contact', key: id });
  return (row: RecordedRow) => {
    const { kind, key, ownership, id, seenAt, shown, desired } = row;
    const contact = kind === 'contact' ? decodeContact.recorded(row).value : emptyRecord;
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
      /** Whether the next run reads the person again (`retry --read-again`). */
      reset: shown === resetMark,
      /** The name of a template on the platform; null for a person. */
      name:
        kind === 'contact' ? null : (decodeTemplate.recorded(row).value.shown.fields.name ?? null),
      channels: Object.fromEntries(
        Object.entries(channels).map(([channel, is]) => {
          const { acked, stated = [], bound = [], released = false, settled, undone } = is;
          const { stating = [], at, ...settlement } = settled ?? {};
          const member = {
            ...membershipOf(is),
            doubtful: isDoubtful(is, channel, facts),
            /** Why the mirror made it: undone, stated, absence, flag or address; else null. */
            cause: undone ? 'undone' : (is.cause ?? null),
            acknowledgedAt: instantOrNull(acked),
            /** The CRM records that state the opt-out, and all those to which it is bound. */
            statedBy: stated.map(idName),
            boundTo: bound.map(idName),
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

/** Who made an opt-out, after one time and by another; null if that is not known. */
export function membershipOf({ is, by: maker, made }: Membership) {
  const by = is === 'opt_out' ? maker : null;
  return { is, by, after: instantOrNull(made?.after), until: instantOrNull(made?.by) };
}

/**
 * Returns a row as it is stored. A text of a person that holds an address is named like a person.
 */
export function storedRow({ body, ...row }: RecordedRow, names: Names) {
  const { kind, id, ownership, shown, desired, seenAt } = row;
  const named = (_: string, value: unknown): unknown =>
    kind === 'contact' && typeof value === 'string' ? names({ kind, key: value }) : value;
  const parsed: unknown = JSON.parse(body, named);
  const rest = { shown: shown ?? null, desired: desired ?? null, seen_at: seenAt };
  return { id: id ?? null, ownership, ...rest, body: parsed };
}

export const ownerships = ['created', 'adopted', 'noted'] as const satisfies Ownership[];
export const statuses = ['subscribed', 'unsubscribed', 'all_mail', 'vanished'] as const;

export interface RowFilter {
  channel?: string | undefined;
  /** Those with this status, in any channel or in `channel`. */
  status?: (typeof statuses)[number] | undefined;
  ownership?: Ownership | undefined;
}

const rowsAtOnce = 500;

/** Yields the entries that match, in the order of their keys. */
export function* selected(
  recording: { snapshot: Snapshot; names: Names },
  kind: RecordTypeName,
  { channel, status, ownership }: RowFilter,
): Generator<RecordedEntry> {
  const describe = describeRows(recording);
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
  for (let after = ''; ;) {
    const page = recording.snapshot.recorded.next(kind, after, rowsAtOnce);
    yield* page.map(describe).filter(isWanted);
    if (page.length < rowsAtOnce) break;
    after = page.at(-1)?.key ?? after;
  }
}

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
  const templates = [...selected({ snapshot, names: ({ key }) => key }, 'template', {})];
  const byName = templates.find(({ name }) => name === word);
  if (byName) return { kind: 'template', key: byName.key };
  throw new Invalid(`"${word}" names nothing that is recorded`, {
    fix: 'give an address, a hash as `crm-mirror export people` shows it, a CRM id, or the key or name of a template',
  });
}

/** Formats what is recorded for a channel, such as: opted out by this mirror */
export function memberWords(
  member: ReturnType<typeof membershipOf> & { doubtful: boolean },
): string {
  const { is, by, after, until, doubtful } = member;
  const state = is.replace('_', ' ');
  if (by === null) return state;
  const made = until === null ? '' : `, made ${timeWords({ after, until })}`;
  const doubt = doubtful ? ', doubtful: no opt-out is known' : '';
  const whose = by === 'us' ? 'by this mirror' : 'on the platform';
  return `${is === 'opt_out' ? 'opted out' : state} ${whose}${made}${doubt}`;
}

export const ownershipNames = { created: 'created by us', adopted: 'adopted', noted: 'not ours' };

export function entriesSection(entries: readonly RecordedEntry[]): Section {
  const rows = entries.map(({ kind, key, ownership, seenAt, id, name, channels, allMail }) => {
    const states = present(
      id === null && 'vanished from the platform',
      name !== null && `named ${JSON.stringify(name)}`,
      allMail && `opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})`,
      ...Object.entries(channels).map(
        ([channel, is]) => `${channel} ${memberWords({ ...is, after: null, until: null })}`,
      ),
    );
    const what = kind === 'template' ? `template ${key}` : key;
    const state = states.join(', ') || 'nothing is recorded of a channel';
    return [what, ownershipNames[ownership], seenAt ?? '–', state];
  });
  const columns = ['Record', 'Ownership', 'Last seen', 'State'];
  const table = { columns, rows, leavesOut: ['Last seen', 'Ownership'] };
  return { table, none: 'Nothing is recorded.' };
}

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

/** Describes what the snapshot records of one contact or template, as a document. */
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { isDoubtful } from '../../records/contact/consent/platform-opt-outs.ts';
import { decodeContact, type RecordedContact } from '../../records/contact/observe/contact-state.ts';
import { decodeTemplate } from '../../records/template/template-state.ts';
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

/** A recorded row as a document. */
export type RecordedEntry = ReturnType<ReturnType<typeof entriesIn>>;

/** A template has nothing of what is recorded of a person. */
const nobody: RecordedContact = { channels: {}, contacts: [], defaults: [], outgrown: [] };

/** Returns a function that describes recorded rows. `names` names records. */
export function entriesIn({ snapshot, names }: { snapshot: Snapshot; names: Names }) {
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
             * How an operator resolved the opt-out; null if nobody did. `inBy`: the CRM records that
             * stated the opt-in.
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

const ownershipWords = { created: 'created by us', adopted: 'adopted', noted: 'not ours' };

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
    return [what, ownershipWords[ownership], state, seenAt ?? '–'];
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

/** Selects recorded rows, page by page, so that a large snapshot needs no more memory. */
import { type Command, Option } from 'commander';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Ownership, RecordTypeName } from '../../domain/record.ts';
import { entriesIn, type RecordedEntry, type Recording } from './recorded-entry.ts';

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

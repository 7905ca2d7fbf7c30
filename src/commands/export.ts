import {
  countOf,
  type FlagsOf,
  looking,
  naming,
  output,
  type Called,
  sinceOf,
} from '../compose/command-options.ts';
import { Invalid, isExpected } from '../domain/errors.ts';
import type { RecordTypeName } from '../domain/record.ts';
import { counted } from '../domain/values/counted.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { csvLines, openExport } from '../compose/output/write-export.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import {
  csvHead,
  csvOf,
  entriesSection,
  ownerships,
  type RecordedEntry,
  selected,
  statuses,
} from '../views/person/recorded-rows.ts';
import { renderLine } from '../compose/output/text-style.ts';
import { sectionLines } from '../views/render/text.ts';
import { look } from '../app/snapshot-command.ts';
import type { Config } from '../config/config.ts';
import {
  optOutOf,
  optOutsOf,
  type PlatformOptOut,
} from '../records/contact/consent/platform-opt-outs.ts';
import { decodeContact } from '../records/contact/observe/contact-state.ts';
import { type Memory, withMemory } from '../store/memory/memory.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { boundMemory } from '../engine/context/do-not-contact-binding.ts';
import { factsIn } from '../engine/context/platform-knowledge.ts';
import { exactInstant } from '../compose/output/format-values.ts';

const formats = ['jsonl', 'csv', 'text'] as const;

const shared = {
  'ownership <ownership>': { text: 'only this one', choices: ownerships },
  'format <format>': {
    text: 'a JSON document a line, CSV, or a table to read',
    choices: formats,
    default: 'jsonl',
  },
  'limit <n>': 'how many at most',
  ...output,
};
const peopleOptions = {
  ...naming,
  ...shared,
  'channel <channel>': 'only people with a record of this channel',
  'status <status>': { text: 'only this one, in any channel or in --channel', choices: statuses },
};
type Flags = FlagsOf<typeof peopleOptions>;

const optOutOptions = {
  ...looking,
  'since <time>': 'only opt-outs that may be later than this: 2026-03-01T12:00:00Z, 2026-03-01, 7d',
  spreadsheet: 'write texts that a spreadsheet would take for formulas as texts',
};

const ownershipHelp =
  '  ownership   created or adopted: ours; noted: not ours, but its opt-out is remembered\n';
const reading = '\nReads the snapshot only and changes nothing, so it works during a run.';

export const parts = {
  people: {
    options: peopleOptions,
    help:
      '  status      subscribed or unsubscribed (in a channel), all_mail: opted out of all mail, ' +
      'blocked or suppressed; vanished: no longer on the platform\n' +
      `${ownershipHelp}${reading} ` +
      'People are hashes unless --addresses is given; a table at a terminal names them. The file ' +
      'is readable for you alone (0600), and no cell of the CSV is a formula to a spreadsheet. ' +
      'With --output, --json prints how many records were written.',
    run: ({ flags }: Called<typeof peopleOptions>, shell) => writeRecords('contact', flags, shell),
  },
  templates: {
    options: { ...looking, ...shared },
    help: `${ownershipHelp}${reading}`,
    run: ({ flags }: Called<typeof peopleOptions>, shell) => writeRecords('template', flags, shell),
  },
  optouts: {
    options: optOutOptions,
    help: `
For the CRM: shows addresses, as CSV (email,crm id,channel,cause,after,by) or with --json, the
earliest first. A person with several ids in the CRM has a line for each.

  channel  one of the mirror, or * for all mail
  cause    opt_out: opted out of the channel; of all mail: unsubscribed, blocked, complaint,
           bounce or suppressed; all_mail: opted out of all mail, and which of these is not known;
           doubtful: it may be the channel's default, or our own request without an answer, so it
           is not reported to the CRM
  after    the opt-out is later than this; empty if no run saw the person subscribed
  by       the opt-out is not later than this: when a run first saw it

Lists what runs have seen. Only full runs, events and \`sync --person\` see an opt-out of a single
channel. Reads the snapshot, and the do-not-contact list for people that the CRM wants in again
after their contact was deleted. Works during a run, and changes nothing. A day begins at midnight
UTC; 7d, 12h or 30m means so long ago.`,
    run: listOptOuts,
  },
} satisfies Record<string, CommandModule>;

async function writeRecords(kind: RecordTypeName, flags: Flags, shell: Shell): Promise<number> {
  const { path, write, written } = openExport(flags, shell);
  const { format } = flags;
  const limit = countOf(flags.limit, '--limit') ?? Infinity;
  return look(flags, shell, ({ config, snapshot }) => {
    const { contacts, file } = config;
    const channels = contacts?.channels.flatMap(({ id, replaces = id }) => [id, replaces]) ?? [];
    if (flags.channel !== undefined && !channels.includes(flags.channel)) {
      throw new Invalid(`--channel ${flags.channel}: ${file} has no such channel`, {
        fix: `give one of ${[...new Set(channels)].join(', ')}`,
      });
    }
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    // An export is passed on, so a terminal alone does not allow addresses, but in a table.
    const addresses =
      flags.addresses ?? (format === 'text' && path === undefined && shell.terminal);
    const rows = snapshot
      ? selected({ snapshot, names: namesOf(snapshot, addresses) }, kind, flags)
      : [];
    let records = 0;
    let isMore = false;
    const linesOf = function* (entries: Iterable<RecordedEntry>): Generator<string> {
      const shown: RecordedEntry[] = [];
      if (format === 'csv') yield csvHead;
      for (const entry of entries) {
        isMore = records === limit;
        if (isMore) break;
        records += 1;
        if (format === 'csv') yield* csvOf(entry);
        else if (format === 'jsonl') yield JSON.stringify(entry);
        // The columns are as wide as the longest cell.
        else shown.push(entry);
      }
      if (format !== 'text') return;
      const { width } = path === undefined ? shell : {};
      for (const line of sectionLines([entriesSection(shown)], { width }))
        yield renderLine(line, false);
    };
    write(linesOf(rows));
    if (isMore) shell.note(`crm-mirror: there are more than the ${limit} of --limit`);
    const document = { mirror: config.mirror, file: path, format, records };
    return { document, lines: written(counted(records, 'record')) };
  });
}

async function listOptOuts({ flags }: Called<typeof optOutOptions>, shell: Shell): Promise<number> {
  return look(flags, shell, ({ config, snapshot, now }) => {
    const since = sinceOf(flags.since, now);
    const remembered = snapshot ? rememberedIn(snapshot, config, shell) : [];
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    const optOuts = (snapshot ? leavers(snapshot, since, remembered) : []).map(
      ({ email, crmIds, channel, cause, after, by }) => {
        const times = { after: after === null ? null : exactInstant(after), by: exactInstant(by) };
        return { email, crmIds, channel, cause, ...times };
      },
    );
    const document = { mirror: config.mirror, since: since === null ? null : exactInstant(since) };
    const rows = optOuts.flatMap(({ email, crmIds, channel, cause, after, by }) => {
      const ids = crmIds.length === 0 ? [''] : crmIds;
      return ids.map((id) => [email, id, channel, cause, after ?? '', by]);
    });
    const head = ['email', 'crm id', 'channel', 'cause', 'after', 'by'];
    return {
      document: { ...document, optOuts },
      data: csvLines([head, ...rows], { spreadsheet: flags.spreadsheet ?? false }),
    };
  });
}

type Left = PlatformOptOut & { email: string };

/** In the order in which they became known. */
function leavers(
  { recordHistory, recorded, meta }: Snapshot,
  since: number | null,
  remembered: readonly Left[],
) {
  const isRecent = ({ by }: PlatformOptOut): boolean => since === null || by >= since;
  const found = remembered.filter(isRecent);
  const facts = factsIn({ meta });
  for (const row of recordHistory.records('contact')) {
    for (const optOut of optOutsOf(decodeContact.recorded(row), facts)) {
      if (isRecent(optOut)) found.push({ email: row.key, ...optOut });
    }
  }
  return found
    .toSorted((a, b) => a.by - b.by)
    .map((one) => ({ ...one, crmIds: recorded.originsOf('contact', one.email) }));
}

/**
 * The opt-outs that only the do-not-contact list knows, of people that the CRM wants subscribed:
 * their contact was deleted, or the snapshot was lost.
 */
function rememberedIn(snapshot: Snapshot, config: Config, shell: Shell): Left[] {
  const barred = snapshot.recordHistory.barred('contact').filter((email) => !email.startsWith('#'));
  if (barred.length === 0) return [];
  try {
    const facts = factsIn(snapshot);
    const find = ({ list }: Memory): Left[] => {
      const { concerning } = list();
      return barred.flatMap((email) =>
        concerning({ key: email, ids: [] })
          .flatMap((entry) => optOutOf(entry, facts) ?? [])
          .map((optOut) => ({ email, ...optOut })),
      );
    };
    return withMemory(config.memory, find, boundMemory(snapshot.meta)) ?? [];
  } catch (error) {
    if (!isExpected(error)) throw error;
    shell.note(
      `crm-mirror: people who are only on the do-not-contact list are left out: ${error.message}`,
    );
    return [];
  }
}

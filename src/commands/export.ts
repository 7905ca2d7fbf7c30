import { resolve } from 'node:path';
import { countOf, type FlagsOf, looking, naming, output } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import type { RecordTypeName } from '../domain/record.ts';
import { counted } from '../domain/values/counted.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { writeLines } from '../compose/output/write-export.ts';
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
  'status <status>': {
    text: 'only this one, in any channel or in --channel',
    choices: statuses,
  },
};
type Flags = FlagsOf<typeof peopleOptions>;

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
    run: async (command, shell) => write('contact', command.opts<Flags>(), shell),
  },
  templates: {
    options: { ...looking, ...shared },
    help: `${ownershipHelp}${reading}`,
    run: async (command, shell) => write('template', command.opts<Flags>(), shell),
  },
} satisfies Record<string, CommandModule>;

async function write(kind: RecordTypeName, flags: Flags, shell: Shell): Promise<number> {
  const path = flags.output === undefined ? undefined : resolve(flags.output);
  if (path === undefined && flags.json) {
    throw new Invalid('--json: the export itself goes to stdout', {
      fix: 'add --output FILE, or leave --json out',
    });
  }
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
    if (path === undefined) for (const line of linesOf(rows)) shell.print(line);
    else writeLines(path, linesOf(rows));
    if (isMore) shell.note(`crm-mirror: there are more than the ${limit} of --limit`);
    const told = path === undefined ? [] : [`${counted(records, 'record')} written to ${path}`];
    return { document: { mirror: config.mirror, file: path, format, records }, lines: told };
  });
}

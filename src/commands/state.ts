import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { Invalid } from '../domain/errors.ts';
import {
  documentOf,
  recordNamed,
  recordLines,
  type FilterFlags,
  filterHelp,
  filterOptions,
  refuseUnknownChannel,
  selected,
  type RecordedEntry,
  csvHead,
  csvOf,
  tableRows,
} from '../views/state/record-document.ts';
import { writeLines } from '../views/state/write-export.ts';
import { look, type LookFlags, lookOptions, namingOptions } from '../app/snapshot-command.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { counted } from '../domain/values/counted.ts';
import { table } from '../compose/output/table.ts';
import { resetRecord } from '../engine/erasure/person-decisions.ts';
import { createLog } from '../app/run/run-log.ts';
import { personOptions, type PersonFlags, withPerson } from '../app/run/person-command.ts';
import { operatorName } from '../compose/output/operator-name.ts';
import { requiredText } from '../compose/output/reason-option.ts';
import { instant } from '../compose/output/format-values.ts';

export const parts = {
  list: {
    options: (command) => {
      filterOptions(namingOptions(command))
        .option('--limit <n>', `how many at most (${listed})`)
        .addHelpText(
          'after',
          `\n${filterHelp}\nReads the snapshot only and changes nothing, so it works during a run.`,
        );
    },
    run: list,
  },
  show: {
    options: (command) => {
      namingOptions(command)
        .argument('<record>', 'an address, a hash, a CRM id, or the key or name of a template')
        .addHelpText(
          'after',
          '\nReads the snapshot only, works during a run, and changes nothing. `explain` reads the CRM\n' +
            'and the platform too, and says what a run would do.',
        );
    },
    run: show,
  },
  export: {
    options: (command) => {
      filterOptions(namingOptions(command))
        .addOption(
          new Option('--format <format>', 'jsonl: a JSON document a line; csv: a line a channel')
            .choices(['jsonl', 'csv'])
            .default('jsonl'),
        )
        .option('--output <file>', 'write to this file, which must not exist, and not to stdout')
        .addHelpText(
          'after',
          `\n${filterHelp}\nPeople are hashes, in a file too, unless --addresses is given. The file is readable for\n` +
            'you alone (0600), and no cell of the CSV is a formula to a spreadsheet. With --output, --json\n' +
            'prints how many records were written.',
        );
    },
    run: exportAll,
  },
  reset: {
    options: (command) => {
      personOptions(lookOptions(command))
        .requiredOption('--reason <text>', 'why')
        .option('--by <name>', 'who decides (the user and host that call it)')
        .addHelpText(
          'after',
          '\nForgets how the platform last showed the person, what the last run decided, and refusals. It\n' +
            'sends nothing: the next run, a fast one too, reads the person on the platform and decides by\n' +
            'the ordinary rules. What protects the person is kept: every opt-out and who made it, the\n' +
            'do-not-contact list, what an operator decided, what awaits approval, and whose contact it is.\n' +
            'While the outcome of a change of the person is unknown, it exits with 75.\n\n' +
            'Reason and name are logged: name no address in them.',
        );
    },
    run: reset,
  },
} satisfies Record<string, CommandModule>;

const listed = 50;

interface ListFlags extends LookFlags, FilterFlags {
  limit?: string;
}

async function list(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<ListFlags>();
  const limit = limitOf(flags.limit);
  return look(flags, shell, ({ config, snapshot, names }) => {
    refuseUnknownChannel(flags, config);
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    const found: RecordedEntry[] = [];
    let more = false;
    for (const entry of snapshot ? selected({ snapshot, names }, flags) : []) {
      more = found.length === limit;
      if (more) break;
      found.push(entry);
    }
    const rest = more ? [`… and more (--limit ${limit * 10} shows more)`] : [];
    const lines = found.length === 0 ? ['Nothing is recorded.'] : table(tableRows(found));
    return {
      document: { mirror: config.mirror, records: found, more },
      lines: [...lines, ...rest],
    };
  });
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return listed;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Invalid(`--limit ${text}: write a number from 1 on`);
}

async function show(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<LookFlags>();
  return look(flags, shell, async ({ config, snapshot, names }) => {
    if (!snapshot) {
      throw new Invalid(`${config.snapshot}: there is no snapshot yet`, {
        fix: 'the first sync makes it',
      });
    }
    const named = await recordNamed(command.args[0] ?? '', snapshot);
    const document = documentOf({ config, snapshot, names }, named);
    return { document, lines: recordLines(document) };
  });
}

interface ExportFlags extends LookFlags, FilterFlags {
  format: 'jsonl' | 'csv';
  output?: string;
}

async function exportAll(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<ExportFlags>();
  const path = flags.output === undefined ? undefined : resolve(flags.output);
  if (path === undefined && flags.json) {
    throw new Invalid('--json: the export itself goes to stdout', {
      fix: 'add --output FILE, or leave --json out',
    });
  }
  return look(flags, shell, ({ config, snapshot }) => {
    refuseUnknownChannel(flags, config);
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    // An export is passed on, so a terminal alone does not allow addresses.
    const names = snapshot && namesOf(snapshot, flags.addresses ?? false);
    const count = { records: 0 };
    const lines = linesOf(snapshot && names ? selected({ snapshot, names }, flags) : [], {
      format: flags.format,
      count,
    });
    if (path === undefined) for (const line of lines) shell.print(line);
    else writeLines(path, lines);
    const told =
      path === undefined ? [] : [`${counted(count.records, 'record')} written to ${path}`];
    const document = { mirror: config.mirror, file: path, format: flags.format, ...count };
    return { document, lines: told };
  });
}

function* linesOf(
  entries: Iterable<RecordedEntry>,
  { format, count }: { format: ExportFlags['format']; count: { records: number } },
): Generator<string> {
  if (format === 'csv') yield csvHead;
  for (const entry of entries) {
    count.records += 1;
    if (format === 'csv') yield* csvOf(entry);
    else yield JSON.stringify(entry);
  }
}

interface ResetFlags extends PersonFlags {
  reason: string;
  by?: string;
}

async function reset(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<ResetFlags>();
  const fix = 'fill it: it is logged with the reset';
  const reason = requiredText('--reason', flags.reason, fix);
  const by = requiredText('--by', flags.by ?? operatorName(shell), fix);
  return withPerson(command, shell, async ({ mirror, part, key, hash }) => {
    const done = resetRecord(mirror, { part, key, by, caller: operatorName(shell), reason });
    const told = { person: hash, by, reason, at: instant(done.at) };
    createLog(shell, mirror.name).reset(told);
    const { recorded, changes, reports } = done;
    const document = { mirror: mirror.name, ...told, recorded, changes, reports };
    return {
      document,
      lines: [
        recorded
          ? `${hash} is reset: the next run reads this person on the platform and decides anew.`
          : `Nothing is recorded of ${hash}: each run that reads this person decides anew.`,
        ...(changes > 0 ? [`It tries ${counted(changes, 'refused change')} again.`] : []),
        ...(reports > 0 ? [`It reports ${counted(reports, 'opt-out')} to the CRM again.`] : []),
      ],
      code: 0,
    };
  });
}

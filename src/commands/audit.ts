import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { knownHead } from '../audit/drain-unaudited.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import { verifyLog } from '../audit/verify-log.ts';
import { documentsOf } from '../cli/audit/entry-document.ts';
import { csvHead, csvOf, entryLines } from '../cli/audit/entry-text.ts';
import { alteredText, verificationLines } from '../cli/audit/verification-text.ts';
import { auditLogOf } from '../cli/compose/audit-trail.ts';
import type { CommandPart, Shell } from '../cli/compose/process-shell.ts';
import { sinceOf } from '../cli/lookup/list-options.ts';
import { wordOf } from '../cli/lookup/person-names.ts';
import { recordNamed } from '../cli/state/record-document.ts';
import {
  type CommandAnswer,
  type LookFlags,
  lookOptions,
  print,
  see,
  type Seen,
} from '../cli/lookup/snapshot-command.ts';
import { exitCode } from '../cli/output/exit-codes.ts';
import { writeLines } from '../cli/state/write-export.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import { counted } from '../domain/values/counted.ts';

/** The parts of `audit`. */
export const parts: readonly CommandPart[] = [
  {
    name: 'verify',
    summary: 'prove that no entry was changed, removed, added or moved',
    options: verifyOptions,
    run: verify,
  },
  {
    name: 'show',
    summary: 'show every write about one person: why, who allowed it, and what came of it',
    options: showOptions,
    run: show,
  },
  {
    name: 'export',
    summary: 'write the log for others, a line for each entry',
    options: exportOptions,
    run: exportAll,
  },
];

interface VerifyFlags extends LookFlags {
  publicKey?: string[];
}

function verifyOptions(command: Command): void {
  lookOptions(command)
    .option(
      '--public-key <file...>',
      'accept only these keys (PEM), so that a log that was signed anew is found',
    )
    .addHelpText(
      'after',
      '\nThe exit code is 0 only if the log is whole. It reads the log only and works during a run.',
    );
}

async function verify(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<VerifyFlags>();
  const trusted = (flags.publicKey ?? []).map((file) => readFileSync(file, 'utf8'));
  return withLog(flags, shell, ({ log, seen }) => {
    const known = seen.snapshot && knownHead(seen.snapshot.meta);
    const found = verifyLog(log, { known, trusted });
    const { mirror } = seen.config;
    const code = exitCode(found.faults.length === 0 ? 'done' : 'failed');
    const document = { mirror, log: log.id, whole: found.faults.length === 0, ...found };
    return { document, lines: verificationLines(mirror, found), code };
  });
}

interface ShowFlags extends LookFlags {
  since?: string;
}

function showOptions(command: Command): void {
  lookOptions(command)
    .argument('<record>', 'an address, a hash, a CRM id, or the key of a template')
    .option('--since <time>', 'only entries from then on: 2026-03-01T12:00:00Z, 2026-03-01, 7d')
    .addHelpText(
      'after',
      '\nThe oldest first. The log itself contains no address: it is found by a keyed hash, which\n' +
        '`forget` drops. It reads the log only and works during a run.',
    );
}

async function show(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<ShowFlags>();
  const [who = ''] = command.args;
  return withLog(flags, shell, ({ log, seen }) => {
    const code = codeOf({ log, seen }, shell);
    const since = sinceOf(flags.since, seen.now) ?? 0;
    const documentOf = documentsOf(log);
    const entries = rowsAbout(who, { log, seen })
      .map(documentOf)
      .filter(({ at }) => Date.parse(at) >= since);
    const none = `The audit log knows nothing about ${who}: no write, or forgotten since.`;
    const lines = entries.flatMap((entry) => [...entryLines(entry), '']);
    return {
      document: { mirror: seen.config.mirror, log: log.id, entries },
      lines: entries.length > 0 ? lines.slice(0, -1) : [none],
      code,
    };
  });
}

/** Returns the entries about a person or a template, oldest first. */
function rowsAbout(who: string, { log, seen }: Opened) {
  const word = wordOf(who);
  const { snapshot } = seen;
  const named = snapshot && !word.includes('@') ? recordNamed(who, snapshot) : undefined;
  const { kind, key } = named ?? { kind: 'contact' as const, key: word };
  if (kind === 'template') return log.aboutTemplate(key);
  const person = log.people.find(key);
  return person ? log.about(person) : [];
}

interface ExportFlags extends LookFlags {
  since?: string;
  format: 'jsonl' | 'csv';
  output?: string;
}

function exportOptions(command: Command): void {
  lookOptions(command)
    .option('--since <time>', 'only entries from then on: 2026-03-01T12:00:00Z, 2026-03-01, 7d')
    .addOption(
      new Option('--format <format>', 'jsonl: a JSON document a line; csv: for a spreadsheet')
        .choices(['jsonl', 'csv'])
        .default('jsonl'),
    )
    .option('--output <file>', 'write to this file, which must not exist, and not to stdout')
    .addHelpText(
      'after',
      '\nIt contains no address: people are marks of this log (person), which `audit show` finds by\n' +
        'the address. It reads the log only and works during a run.',
    );
}

async function exportAll(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<ExportFlags>();
  const path = flags.output === undefined ? undefined : resolve(flags.output);
  if (path === undefined && flags.json) {
    throw new Invalid('--json: the export itself goes to stdout', {
      fix: 'add --output FILE, or leave --json out',
    });
  }
  return withLog(flags, shell, ({ log, seen }) => {
    const code = codeOf({ log, seen }, shell);
    const count = { entries: 0 };
    const since = sinceOf(flags.since, seen.now) ?? 0;
    const lines = exported(log, { since, format: flags.format, count });
    if (path === undefined) for (const line of lines) shell.print(line);
    else writeLines(path, lines);
    const told =
      path === undefined
        ? []
        : [`${counted(count.entries, 'entry', 'entries')} written to ${path}`];
    const document = { mirror: seen.config.mirror, log: log.id, file: path, ...count };
    return { document, lines: told, code };
  });
}

function* exported(
  log: AuditLog,
  {
    since,
    format,
    count,
  }: { since: number; format: ExportFlags['format']; count: { entries: number } },
): Generator<string> {
  const documentOf = documentsOf(log);
  if (format === 'csv') yield csvHead;
  for (const row of log.entriesSince(since)) {
    count.entries += 1;
    const entry = { ...documentOf(row), hash: row.hash.toString('hex') };
    // The text is what the hash covers, so that others can verify the chain.
    yield format === 'csv' ? csvOf(entry) : JSON.stringify({ ...entry, text: row.body });
  }
}

interface Opened {
  log: AuditLog;
  seen: Seen;
}

type Told = CommandAnswer & { code: number };

/** Verifies the whole log; says so, and returns the exit code, if it is not as it was written. */
function codeOf({ log, seen }: Opened, shell: Shell): number {
  const known = seen.snapshot && knownHead(seen.snapshot.meta);
  const altered = alteredText(verifyLog(log, { known }));
  if (altered === undefined) return exitCode('done');
  shell.note(`crm-mirror: ${altered}`);
  return exitCode('failed');
}

/** Opens the log for reading, and prints what `tell` returns. Throws Invalid if there is none. */
async function withLog(
  flags: LookFlags,
  shell: Shell,
  tell: (opened: Opened) => Told,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const seen = see(config, false);
  const log = auditLogOf(config);
  try {
    if (!log) {
      throw new Invalid(`${config.audit.path}: there is no audit log yet`, {
        fix: 'the first run that writes makes it; if there was one, restore it',
      });
    }
    const told = tell({ log, seen });
    print(told, flags, shell);
    return told.code;
  } finally {
    log?.close();
    seen.snapshot?.close();
  }
}

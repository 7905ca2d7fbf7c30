import { readFileSync } from 'node:fs';
import {
  type FlagsOf,
  type LookFlags,
  looking,
  output,
  sinceOf,
} from '../compose/command-options.ts';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { knownHead } from '../store/memory/audit-trail.ts';
import type { AuditLog } from '../store/memory/audit-log.ts';
import type { StoredEntry } from '../store/memory/audit-entry.ts';
import { readMemory } from '../store/memory/memory.ts';
import { verifyLog } from '../store/memory/verify-log.ts';
import {
  documentsOf,
  isBy,
  withSameTimes,
  csvHead,
  csvOf,
  entrySection,
} from '../views/audit/entry-document.ts';
import {
  verifyExport,
  alteredText,
  exportSection,
  headIn,
  verificationSection,
  withoutLog,
} from '../views/audit/log-verification.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { wordOf } from '../views/lookup/person-names.ts';
import { recordNamed } from '../views/person/recorded-rows.ts';
import { type CommandAnswer, print } from '../app/snapshot-command.ts';
import { see, type Seen } from '../views/lookup/seen-mirror.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { writeLines } from '../compose/output/write-export.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import { counted } from '../domain/values/counted.ts';

const times = '2026-03-01T12:00:00Z, 2026-03-01, 7d';
const since = { 'since <time>': `only entries from then on: ${times}` };
const verifyOptions = {
  ...looking,
  'public-key <file...>':
    'accept only these keys (PEM), so that a log that was signed anew is found',
  'file <file>': 'verify an export in JSON lines instead, without a configuration',
  'head <seq:hash>':
    'an end of this log that you kept elsewhere (head in the JSON), so that a cut end is found',
};
const showOptions = {
  ...looking,
  '[record]':
    'an address, a hash, a CRM id, the key of a template, the hash of a plan, or the mark of a person in an export',
  'by <name>': 'only what they decided or asked for; without a record, all of it but single writes',
  ...since,
};
const exportOptions = {
  ...looking,
  ...since,
  'format <format>': {
    text: 'jsonl: a JSON document a line; csv: for a spreadsheet',
    choices: ['jsonl', 'csv'] as const,
    default: 'jsonl',
  },
  ...output,
};
type ExportFlags = FlagsOf<typeof exportOptions>;

export const parts = {
  verify: {
    options: verifyOptions,
    help: 'The exit code is 0 only if the log is whole. It reads the log only and works during a run.',
    run: verify,
  },
  show: {
    options: showOptions,
    help:
      'The oldest first; without a record, all decisions and runs. The log itself contains no address: it is found by a keyed hash, which ' +
      '`forget` drops. It reads the log only and works during a run.',
    run: show,
  },
  export: {
    options: exportOptions,
    help:
      'It contains no address: people are marks of this log (person), which `audit show` finds by ' +
      'the address. It reads the log only and works during a run.',
    run: async (command, shell) => {
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
        const lines = exported(log, since, flags.format, count);
        if (path === undefined) for (const line of lines) shell.print(line);
        else writeLines(path, lines);
        const told =
          path === undefined
            ? []
            : [`${counted(count.entries, 'entry', 'entries')} written to ${path}`];
        const document = { mirror: seen.config.mirror, log: log.id, file: path, ...count };
        return { document, lines: told, code };
      });
    },
  },
} satisfies Record<string, CommandModule>;

async function verify(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<FlagsOf<typeof verifyOptions>>();
  const trusted = (flags.publicKey ?? []).map((file) => readFileSync(file, 'utf8'));
  const kept = flags.head === undefined ? undefined : headIn(flags.head);
  if (flags.file !== undefined) {
    const file = resolve(flags.file);
    const found = verifyExport(file, { trusted, kept });
    const whole = found.faults.length === 0;
    const document = { file, whole, ...found };
    const code = exitCode(whole ? 'done' : 'failed');
    return print({ document, sections: [exportSection(file, found, kept)], code }, flags, shell);
  }
  return withLog(flags, shell, ({ log, seen }) => {
    const known = seen.snapshot && knownHead(seen.snapshot.meta);
    const found = verifyLog(log, { known, kept, trusted });
    const { mirror } = seen.config;
    const code = exitCode(found.faults.length === 0 ? 'done' : 'failed');
    const document = { mirror, log: log.id, whole: found.faults.length === 0, ...found };
    return { document, sections: [verificationSection(`The audit log of ${mirror}`, found)], code };
  });
}

async function show(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<FlagsOf<typeof showOptions>>();
  const [who = ''] = command.args;
  return withLog(flags, shell, async ({ log, seen }) => {
    const code = codeOf({ log, seen }, shell);
    const since = sinceOf(flags.since, seen.now) ?? 0;
    const documentOf = documentsOf(log);
    const { rows, isPlan = false } = await rowsAbout(who, { log, seen }, since);
    const all = rows.map(documentOf);
    const { by = '' } = flags;
    const entries = (isPlan ? all : withSameTimes(all)).filter(
      (entry) => Date.parse(entry.at) >= since && (by === '' || isBy(entry, by)),
    );
    const none =
      who === ''
        ? 'The audit log has no such entry.'
        : `The audit log knows nothing about ${who}: no write, or forgotten since.`;
    return {
      document: { mirror: seen.config.mirror, log: log.id, entries },
      sections:
        entries.length > 0
          ? entries.map((entry) => entrySection(entry, { isNamed: isPlan }))
          : [{ none }],
      isAll: true,
      code,
    };
  });
}

async function rowsAbout(
  who: string,
  { log, seen }: Opened,
  since: number,
): Promise<{ rows: StoredEntry[]; isPlan?: boolean }> {
  if (who === '') return { rows: log.noWrites({ from: since }).toReversed(), isPlan: true };
  const word = wordOf(who);
  const ofPlan = isHash(word, 16) ? log.aboutPlan(word) : [];
  if (ofPlan.length > 0) return { rows: ofPlan, isPlan: true };
  const marked = isHash(word, 32) ? log.people.marked(Buffer.from(word, 'hex')) : undefined;
  if (marked) return { rows: log.about(marked.id) };
  const { snapshot } = seen;
  const named = snapshot && !word.includes('@') ? await recordNamed(who, snapshot) : undefined;
  const { kind, key } = named ?? { kind: 'contact' as const, key: word };
  if (kind === 'template') return { rows: log.aboutTemplate(key) };
  const person = log.people.find(key);
  return { rows: person ? log.about(person.id) : [] };
}

function isHash(word: string, digits: number): boolean {
  return word.length === digits && /^[0-9a-f]+$/.test(word);
}

function* exported(
  log: AuditLog,
  since: number,
  format: ExportFlags['format'],
  count: { entries: number },
): Generator<string> {
  const documentOf = documentsOf(log);
  const signed = new Map(log.checkpoints().map((one) => [one.seq, one]));
  if (format === 'csv') yield csvHead;
  let before: StoredEntry | undefined;
  for (const row of log.entriesSince(since)) {
    count.entries += 1;
    const entry = { ...documentOf(row), hash: row.hash.toString('hex') };
    if (format === 'csv') yield csvOf(entry);
    else {
      // What others need to verify the entry: what the hash covers, and the signature.
      const previous = before?.hash ?? log.hashAt(row.seq - 1);
      const one = signed.get(row.seq);
      const checkpoint = one && {
        log: log.id,
        at: one.at,
        publicKey: one.publicKey,
        signature: one.signature.toString('base64'),
      };
      const proof = {
        text: row.body,
        /** Null if the entry before it was removed as too old: an entry `pruning` has its hash. */
        previousHash: previous?.toString('hex') ?? null,
        checkpoint: checkpoint ?? null,
      };
      yield JSON.stringify({ ...entry, ...proof });
    }
    before = row;
  }
}

interface Opened {
  log: AuditLog;
  seen: Seen;
}

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
  tell: (opened: Opened) => CommandAnswer | Promise<CommandAnswer>,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const seen = see(config, false);
  // Every memory that its key fits: what is wrong with its log is to be said.
  const memory = readMemory(config.memory);
  try {
    if (!memory) return withoutLog(config, seen.snapshot, shell.note);
    return print(await tell({ log: memory.log, seen }), flags, shell);
  } finally {
    memory?.close();
    seen.snapshot?.close();
  }
}

import { readFileSync } from 'node:fs';
import {
  type Called,
  type FlagsOf,
  type LookFlags,
  looking,
  output,
  sinceOf,
  countOf,
  naming,
  verbose,
} from '../compose/command-options.ts';
import { resolve } from 'node:path';
import { knownHead } from '../store/memory/audit-trail.ts';
import type { AuditLog } from '../store/memory/audit-log.ts';
import type { StoredEntry } from '../store/memory/audit-entry.ts';
import { readMemory, withMemory } from '../store/memory/memory.ts';
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
import { wordOf, masked, namedBy } from '../views/lookup/person-names.ts';
import { recordNamed } from '../views/person/recorded-rows.ts';
import { type CommandAnswer, print, look } from '../app/snapshot-command.ts';
import { see, type Seen } from '../views/lookup/seen-mirror.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { openExport } from '../compose/output/write-export.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import { counted, withCommas } from '../domain/values/counted.ts';
import { operations } from '../platform/operations.ts';
import type { RequestFilter } from '../store/memory/requests.ts';
import { exactInstant, instant } from '../compose/output/format-values.ts';
import { numbers, type TableRow } from '../views/sections.ts';

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

const shownUsually = 20;

const requestsOptions = {
  ...naming,
  ...verbose,
  'person <who>': 'only requests about this person: an address or a hash',
  failed: 'only requests that were refused or not answered',
  'route <name>': 'only requests of a route (contacts.enrol), or of several (contacts)',
  'run <id>': 'only requests of this run',
  'since <time>': 'only requests since then: 2026-03-01T12:00:00Z, 2026-03-01, 12h',
  'limit <n>': `how many, the newest first (${shownUsually})`,
};
type RequestsFlags = FlagsOf<typeof requestsOptions>;

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
    run: async ({ flags }: Called<typeof exportOptions>, shell) => {
      const { path, write, written } = openExport(flags, shell);
      return withLog(flags, shell, ({ log, seen }) => {
        const code = codeOf({ log, seen }, shell);
        const count = { entries: 0 };
        write(exported(log, sinceOf(flags.since, seen.now) ?? 0, flags.format, count));
        const lines = written(counted(count.entries, 'entry', 'entries'));
        const document = { mirror: seen.config.mirror, log: log.id, file: path, ...count };
        return { document, lines, code };
      });
    },
  },
  requests: {
    options: requestsOptions,
    help: `
Shows what the commands that write, and the worker, sent to the platform, and what it answered.
Each attempt is a request of its own (Try). Of a list only the size is kept. --verbose and --json
show the run and the texts. Addresses appear as hashes, except at a terminal or with --addresses.
\`requests\` in the configuration states how long requests are kept (14 days).`,
    run: showRequests,
  },
} satisfies Record<string, CommandModule>;

async function verify({ flags }: Called<typeof verifyOptions>, shell: Shell): Promise<number> {
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
    const awaiting = seen.snapshot?.unaudited.count() ?? 0;
    const whole = found.faults.length === 0;
    const document = { mirror, log: log.id, whole, ...found, awaiting };
    const section = verificationSection(`The audit log of ${mirror}`, document);
    return { document, sections: [section], code };
  });
}

async function show({ flags, args: [who = ''] }: Called<typeof showOptions>, shell: Shell) {
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

async function rowsAbout(who: string, { log, seen }: Opened, since: number) {
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
      const signature = one?.signature.toString('base64');
      const checkpoint = one && { log: log.id, at: one.at, publicKey: one.publicKey, signature };
      // Null if the entry before it was removed as too old: an entry `pruning` has its hash.
      const previousHash = previous?.toString('hex') ?? null;
      const proof = { text: row.body, previousHash, checkpoint: checkpoint ?? null };
      yield JSON.stringify({ ...entry, ...proof });
    }
    before = row;
  }
}

interface Opened {
  log: AuditLog;
  seen: Seen;
}

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

async function showRequests({ flags }: Called<typeof requestsOptions>, shell: Shell) {
  const last = countOf(flags.limit) ?? shownUsually;
  return look(flags, shell, (seen) => {
    const { config, snapshot, names } = seen;
    const { mirror, requests, memory } = config;
    const filter = filterOf(flags, seen);
    const found = snapshot && withMemory(memory, (opened) => opened.requests.read(filter, last));
    const { newest, more } = found ?? { newest: [], more: 0 };
    const isPlain = flags.addresses ?? shell.terminal;
    const shown = isPlain ? newest : newest.map((one) => masked(one, names));
    const told = shown.map(
      ({ at, run, route, method, path, status, failure, ms, attempt, ...one }) => {
        const { person, requestId, size, rows, request, answer } = one;
        const sent = { at: exactInstant(at), run, route, method, path, status, failure };
        return { ...sent, ms, attempt, person, requestId, size, rows, request, answer };
      },
    );
    const document = { mirror, since: exactInstant(filter.since), requests: told, more };
    let none = `No requests of ${mirror} are logged yet; a run logs them in ${memory.path}`;
    if (found !== undefined) none = `No such requests of ${mirror} are logged`;
    if (!requests.isOn) none = `The requests of ${mirror} are not logged (requests.log is off)`;
    const leavesOut = ['Try', 'ms'];
    const columns = ['Sent', 'Route', 'Status', numbers('ms'), numbers('Try'), 'Person'];
    const rows = shown.map((one): TableRow => {
      const { run, method, path, requestId, request, answer, failure, status, size } = one;
      const isFailed = status === null || status < 200 || status > 299;
      const ids = [
        ...(run === null ? [] : [`run ${run}`]),
        ...(requestId === null ? [] : [`request id ${requestId}`]),
      ];
      const bytes = size === null ? '' : `${withCommas(size)} bytes`;
      return {
        cells: [
          instant(one.at),
          one.route,
          String(status ?? '–'),
          withCommas(one.ms),
          String(one.attempt),
          one.person ?? (one.rows === null ? '–' : `– (${withCommas(one.rows)} listed)`),
        ],
        notes: [
          ...(flags.verbose ? [[`${method} ${path}`, ...ids].join(', ')] : []),
          ...(flags.verbose && request !== null ? [`sent      ${request}`] : []),
          ...(flags.verbose || isFailed
            ? [`answered  ${(failure ?? answer ?? bytes) || '–'}`]
            : []),
        ],
      };
    });
    const rest = `… and ${withCommas(more)} more (--limit ${last + more} shows all)`;
    return {
      document,
      sections: [{ table: { columns, rows, leavesOut }, none }, { lines: more > 0 ? [rest] : [] }],
    };
  });
}

function filterOf(flags: RequestsFlags, { config, snapshot, now }: Seen): RequestFilter {
  const { run, route, failed } = flags;
  const routes = [...new Set(Object.values(operations).map((one) => one.route))];
  const isKnown = routes.some((one) => one === route || one.startsWith(`${route}.`));
  if (route !== undefined && !isKnown) {
    throw new Invalid(`--route ${route}: there is no such route`, {
      fix: `write one of ${routes.join(', ')}`,
    });
  }
  const word = flags.person === undefined ? undefined : wordOf(flags.person);
  const isMeant = word !== undefined && snapshot ? namedBy(word, snapshot) : () => false;
  if (word !== undefined && !/^#|@/.test(word)) {
    throw new Invalid(`--person ${word}: this is no person`, {
      fix: 'give an address, or a hash as runs and status show it (#9cc428f416d4)',
    });
  }
  const asked = sinceOf(flags.since, now);
  const kept = now - config.requests.keepMs;
  return {
    since: asked === null ? kept : Math.max(asked, kept),
    run,
    route,
    failed,
    person: word?.startsWith('#') ? (key) => isMeant({ kind: 'contact', key }) : word,
  };
}

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { problemCauses } from '../domain/problem-causes.ts';
import { shownValue } from '../domain/unknown-words.ts';
import { wordOf } from '../domain/values/record-field.ts';
import type { ProblemClass } from '../domain/record-problem.ts';
import type { ProblemGroup } from '../engine/report/problem-groups.ts';
import type { Snapshot } from '../store/snapshot.ts';
import {
  standingGroups,
  type StandingProblem,
  standingProblems,
  type ApprovalOf,
  approvalFinder,
} from '../views/lookup/standing-problems.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import { look, type LookFlags, namingOptions } from '../app/snapshot-command.ts';
import { writeLines } from '../views/state/write-export.ts';
import type { Shell } from '../compose/process-shell.ts';
import { csvLines } from '../compose/output/csv-text.ts';
import { counted } from '../domain/values/counted.ts';
import { instant } from '../compose/output/format-values.ts';
import { classWords, problemsSection, shownGroups } from '../views/lookup/problem-groups.ts';

interface Flags extends LookFlags {
  csv?: string;
  class?: string;
  all?: true;
}

const mostListed = 100;

export function options(command: Command): void {
  namingOptions(command)
    .option('--class <class>', 'only rejected, invalid, conflict or held (awaiting approval) ones')
    .option('--all', 'list every record as well')
    .option('--csv <file>', 'write a line for each record to this file; nothing is overwritten')
    .addHelpText(
      'after',
      '\nLists what the last runs recorded, grouped by cause. It reads the snapshot only, works during\n' +
        'a run, and ends with 0 also if there are problems. A plan records nothing: `plan` lists what\n' +
        'a run would find now.\n\n' +
        '  invalid   records of the CRM that cannot be used\n' +
        '  conflict  the CRM and the platform disagree, and the person counts; see `resolve`\n' +
        '  rejected  the platform refused a change, or the CRM an opt-out; see `retry`\n' +
        '  held      awaiting approval; see `approve`\n\n' +
        'The CSV names the ids in the CRM and the place in the source (as of that reading). It shows\n' +
        'addresses, and values that may be personal data, only with --addresses. Its file is readable\n' +
        'for you alone (0600), and no cell is a formula to a spreadsheet.',
    );
}

/** Prints the recorded problems, or writes them to a file. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const isAsked = classOf(flags.class);
  return look(flags, shell, ({ config, snapshot, names, now }) => {
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    const found = snapshot ? standingGroups(snapshot).filter(isAsked) : [];
    const addresses = flags.addresses ?? shell.terminal;
    const groups = shownGroups(found, { names, addresses });
    const { approvers } = config;
    const approvalOf = snapshot ? approvalFinder(snapshot, { approvers, now }) : () => undefined;
    const sight = { snapshot, found, isAsked, approvalOf };
    const rows = flags.all || flags.json ? rowsOf(sight, addresses) : [];
    const file = flags.csv === undefined ? null : writeCsv(resolve(flags.csv), sight, flags);
    const last = snapshot?.runs.newest(1)[0];
    const document = {
      mirror: config.mirror,
      run: last ? { id: last.id, at: instant(last.endedAt ?? last.startedAt) } : null,
      groups,
      problems: flags.all ? rows : rows.slice(0, mostListed),
      file,
    };
    const cells = rows.map(({ class: of, cause, key, crmIds, place, part, reason }) => {
      const channel = part.replace(/^opt_(in|out)\b/, 'opt $1');
      return [classWords[of], cause, key, crmIds.join(' '), place ?? '', channel, reason];
    });
    const columns = ['class', 'cause', 'record', 'CRM id', 'place', 'channel', 'reason'];
    const written = file && `${counted(file.records, 'record')} written to ${file.path}`;
    const sections = [
      groups.length === 0
        ? { none: 'No problems are recorded.' }
        : problemsSection(groups, { found, config }),
      { table: { columns, rows: flags.all ? cells : [] } },
      { lines: written === null ? [] : [written] },
    ];
    return { document, sections };
  });
}

type Is = (one: { class: ProblemClass }) => boolean;

const classes = Object.keys(problemCauses).filter((name) => name !== 'unknown');

function classOf(asked: string | undefined): Is {
  if (asked === undefined) return () => true;
  if (classes.includes(asked)) return (one) => one.class === asked;
  throw new Invalid(`--class ${asked}: there is no such class`, {
    fix: `give one of ${classes.join(', ')}`,
  });
}

interface Sight {
  snapshot: Snapshot | undefined;
  found: readonly ProblemGroup[];
  isAsked: Is;
  approvalOf: ApprovalOf;
}

function rowsOf({ snapshot, found, isAsked, approvalOf }: Sight, addresses: boolean) {
  if (!snapshot) return [];
  const names = namesOf(snapshot, addresses);
  const valueOf = values(found, addresses);
  return [...standingProblems(snapshot, approvalOf)].filter(isAsked).map((problem) => {
    const { class: of, kind, cause, part, place, reason, fix, since } = problem;
    // An id may be an address, too.
    const crmIds = problem.crmIds.filter((id) => addresses || !id.includes('@'));
    const about = { class: of, kind, cause, key: names(problem), crmIds, place, part };
    return { ...about, value: valueOf(problem), reason, fix, since: instant(since) };
  });
}

/** Returns the function that shows a value: as it is, or by its form if it may be personal. */
function values(found: readonly ProblemGroup[], addresses: boolean) {
  const known = new Map(
    found.flatMap(({ option = '', values: all }) =>
      all.map((value) => [`${option} ${wordOf(value.text ?? '')}`, value]),
    ),
  );
  return ({ option, value: text }: StandingProblem): string | null => {
    if (text === null) return null;
    const one = known.get(`${option ?? ''} ${wordOf(text)}`);
    return shownValue({ text, records: one?.records ?? 1 }, addresses);
  };
}

const columns = [
  'class',
  'kind',
  'cause',
  'key',
  'crm_ids',
  'place',
  'part',
  'value',
  'reason',
  'fix',
  'since',
] as const;

/**
 * Writes the CSV. It may be passed on, so it holds addresses only if they are asked for. Throws
 * Invalid if the file exists.
 */
function writeCsv(path: string, sight: Sight, { addresses = false }: { addresses?: boolean }) {
  const rows = rowsOf(sight, addresses);
  const cells = rows.map(({ crmIds, place, value, ...row }) =>
    columns.map((name) => ({ ...row, place, value, crm_ids: crmIds.join(' ') })[name] ?? ''),
  );
  const lines = csvLines([columns, ...cells], { spreadsheet: true });
  writeLines(
    path,
    lines.map((line) => `${line}\r`),
  );
  return { path, records: rows.length };
}

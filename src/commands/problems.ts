import { resolve } from 'node:path';
import { type Called, type FlagsOf, naming, quiet, verbose } from '../compose/command-options.ts';
import { problemCauses } from '../domain/problem-causes.ts';
import { shownValue } from '../domain/unknown-words.ts';
import { wordOf } from '../domain/values/record-field.ts';
import type { ProblemClass } from '../domain/record-problem.ts';
import { approvalIds } from '../engine/judge/plan-decisions.ts';
import type { ProblemGroup } from '../engine/report/problem-groups.ts';
import type { Snapshot } from '../store/snapshot.ts';
import {
  standingGroups,
  type StandingProblem,
  standingProblems,
} from '../views/lookup/standing-problems.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import { exitCode, codeOfStop } from '../compose/output/failure-report.ts';
import { look, print } from '../app/snapshot-command.ts';
import { csvLines, writeLines } from '../compose/output/write-export.ts';
import { type Shell, operatorName } from '../compose/process-shell.ts';
import { counted } from '../domain/values/counted.ts';
import { instant } from '../compose/output/format-values.ts';
import { classWords, problemsSection, shownGroups } from '../views/lookup/problem-groups.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { driftGroups, driftSection, type OtherChannel } from '../views/lookup/drift-groups.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import { followRun, outletsOf } from '../compose/run-progress.ts';
import { runNow } from '../app/run/run-command.ts';
import { hushed } from '../app/run/run-log.ts';

const mostListed = 100;
const classes = Object.keys(problemCauses).filter((name) => name !== 'unknown');

export const options = {
  ...naming,
  ...verbose,
  ...quiet,
  drift: {
    text: 'what differs on the platform and no run mends, read now',
    conflicts: ['class', 'output'],
  },
  'class <class>': { text: 'only these problems; held ones await approval', choices: classes },
  all: 'list every record as well; with --drift, all of a cause, not three',
  'exit-code': `exit ${exitCode('changes')} when anything is listed`,
  'output <file>': 'write a line for each record to this file, as CSV; nothing is overwritten',
};
type Flags = FlagsOf<typeof options>;

export const help = `
Lists what the last runs recorded, grouped by cause. It reads the snapshot only, works during a
run, and ends with 0 also if there are problems, unless --exit-code is given. A plan records
nothing: \`plan\` lists what a run would find now.

  invalid   records of the CRM that cannot be used
  conflict  the CRM and the platform disagree, and the person counts; see \`resolve\`
  rejected  the platform refused a change, or the CRM an opt-out; see \`retry\`
  held      awaiting approval; see \`approve\`

The CSV names the ids in the CRM and the place in the source (as of that reading). It shows
addresses, and values that may be personal data, only with --addresses. Its file is readable for
you alone (0600), and no cell is a formula to a spreadsheet.

--drift reads both sides as \`plan\` does, takes no lease, and writes nothing. It lists what
people or colleagues did on the platform, what is not of this mirror, and what the configuration
does not name. What the next run does is in \`plan\`. The API cannot write names and properties,
and the configuration maps none, so they are not compared.`;

export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  if (flags.drift) return printDrift(flags, shell);
  const { class: asked } = flags;
  const isAsked: Sight['isAsked'] = (one) => asked === undefined || one.class === asked;
  return look(flags, shell, ({ config, snapshot, names, now }) => {
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    const found = snapshot ? standingGroups(snapshot).filter(isAsked) : [];
    const addresses = flags.addresses ?? shell.terminal;
    const groups = shownGroups(found, { names, addresses });
    const { approvers } = config;
    const inForce = snapshot ? approvalIds(snapshot, { approvers, now }) : [];
    const sight = { snapshot, found, isAsked, inForce };
    const rows = flags.all || flags.json ? rowsOf(sight, addresses) : [];
    const file = flags.output === undefined ? null : writeCsv(resolve(flags.output), sight, flags);
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
      { table: { columns, rows: flags.all ? cells : [], leavesOut: ['place', 'CRM id', 'cause'] } },
      { lines: written === null ? [] : [written] },
    ];
    const isAny = flags.exitCode && found.length > 0;
    return { document, sections, code: exitCode(isAny ? 'changes' : 'done') };
  });
}

interface Sight {
  snapshot: Snapshot | undefined;
  found: readonly ProblemGroup[];
  isAsked(one: { class: ProblemClass }): boolean;
  inForce: readonly string[];
}

function rowsOf({ snapshot, found, isAsked, inForce }: Sight, addresses: boolean) {
  if (!snapshot) return [];
  const names = namesOf(snapshot, addresses);
  const valueOf = values(found, addresses);
  return [...standingProblems(snapshot, inForce)].filter(isAsked).map((problem) => {
    const { class: of, kind, cause, part, place, reason, fix, since } = problem;
    // An id may be an address, too.
    const crmIds = problem.crmIds.filter((id) => addresses || !id.includes('@'));
    const about = { class: of, kind, cause, key: names(problem), crmIds, place, part };
    return { ...about, value: valueOf(problem), reason, fix, since: instant(since) };
  });
}

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

const csvColumns = [
  ...(['class', 'kind', 'cause', 'key', 'crm_ids', 'place'] as const),
  ...(['part', 'value', 'reason', 'fix', 'since'] as const),
];

/** It may be passed on, so it holds addresses only on request. Throws Invalid if it exists. */
function writeCsv(path: string, sight: Sight, { addresses }: Flags) {
  const cells = rowsOf(sight, addresses === true).map(({ crmIds, ...row }) => {
    const named = { ...row, crm_ids: crmIds.join(' ') };
    return csvColumns.map((column) => named[column] ?? '');
  });
  const lines = csvLines([csvColumns, ...cells], { spreadsheet: true }).map((line) => `${line}\r`);
  writeLines(path, lines);
  return { path, records: cells.length };
}

/** With --all, every record is named, not three of each cause. */
async function printDrift(flags: Flags, own: Shell): Promise<number> {
  const config = loadConfig(flags.config, own.env);
  const shell = hushed(own, flags, false);
  const { mirror, close } = await assemble(config, shell, { writes: false });
  const channels = new Map<string, OtherChannel>();
  const about = { config, mode: 'full', writes: false, isForAll: true } as const;
  const heard = flags.quiet ? { ...shell, note: () => undefined } : shell;
  const followed = followRun(heard, mirror, { ...about, outlets: outletsOf(shell) });
  try {
    const by = { by: 'command', name: operatorName(shell) } as const;
    const asked = { mode: 'full', because: ['asked'], writes: false, only: undefined, by } as const;
    const counting = countingChannels(mirror, channels);
    const summary = await runNow(counting, shell, { ...asked, progress: followed.progress });
    const names = namesOf(mirror.snapshot, flags.addresses ?? shell.terminal);
    const most = flags.all ? Number.MAX_SAFE_INTEGER : 3;
    const groups = driftGroups({ mirror, summary, channels: [...channels.values()], names, most });
    const { certificate, reasons, status } = summary;
    const document = { mirror: config.mirror, status, certificate, reasons, groups };
    const isRead = status !== 'failed' && status !== 'interrupted';
    const sections = isRead ? [driftSection(config.mirror, groups)] : [];
    print({ document, sections }, flags, shell);
    if (!isRead) {
      for (const reason of reasons) shell.note(`crm-mirror: ${reason}`);
      return status === 'interrupted' ? codeOfStop(shell.stop.reason) : exitCode('failed');
    }
    return flags.exitCode && groups.length > 0 ? exitCode('changes') : exitCode('done');
  } finally {
    followed.close();
    await close();
  }
}

function countingChannels(mirror: Mirror, channels: Map<string, OtherChannel>): Mirror {
  const [firstLimit] = mirror.pageSizes;
  const { contacts } = mirror;
  if (!contacts) return mirror;
  const list: typeof contacts.list = async (page, signal) => {
    const found = await contacts.list(page, signal);
    // Later passes show the same people again.
    if (page.limit !== firstLimit) return found;
    for (const { id, name } of found.others) {
      const one = channels.get(id) ?? { id, name, count: 0 };
      channels.set(id, { ...one, count: one.count + 1 });
    }
    return found;
  };
  return { ...mirror, contacts: { ...contacts, list } };
}

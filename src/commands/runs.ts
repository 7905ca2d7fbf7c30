import type { Command } from 'commander';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { approvalWords } from '../compose/output/decision-words.ts';
import { fullWords } from '../compose/output/summary-text.ts';
import { changeName, outcomeName } from '../compose/output/change-words.ts';
import { table } from '../compose/output/table.ts';
import { verboseOption } from '../compose/output/verbosity.ts';
import { withCommas } from '../domain/values/counted.ts';
import type { KeptRun } from '../store/tables/run-history.ts';
import {
  type CommandAnswer,
  look,
  type LookFlags,
  namingOptions,
} from '../app/snapshot-command.ts';
import type { Seen } from '../views/lookup/seen-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import { countOf } from '../views/lookup/list-options.ts';
import {
  askedWords,
  changeOf,
  changeWords,
  type ListedRun,
  listedRuns,
  modeWords,
  type ToldChange,
  totalOf,
} from '../views/status/run-history.ts';
import * as history from '../views/status/run-history.ts';

interface Flags extends LookFlags {
  last?: string;
  verbose?: true;
}

const runsShown = 20;
const changesShown = 100;

export function options(command: Command): void {
  verboseOption(namingOptions(command))
    .argument('[id]', 'one run, with its changes')
    .option(
      '--last <n>',
      `how many: runs, the newest first (${runsShown}), or changes of one, the gravest first (${changesShown})`,
    )
    .addHelpText(
      'after',
      '\nShows the runs of the time that `keep` states. A run that was killed counts as interrupted.\n' +
        'Of the changes of one run, those that failed come first. A change that was no\n' +
        'longer right when it was to be sent is not sent: the same run or the next one decides again.',
    );
}

/** Lists the latest runs, or one run with its changes. Throws Invalid for an unknown run. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [id] = command.args;
  const isVerbose = flags.verbose === true;
  const last = countOf(flags.last) ?? (id === undefined ? runsShown : changesShown);
  return look(flags, shell, (seen) => {
    if (id !== undefined) return tellOne(seen, { id, last, isVerbose });
    const { config, snapshot } = seen;
    const runs = listedRuns(seen, snapshot?.runs.newest(last) ?? []);
    const document = { mirror: config.mirror, runs };
    if (runs.length > 0) return { document, lines: linesOf(runs, isVerbose) };
    const why = snapshot ? '' : `: there is no snapshot yet at ${config.snapshot}`;
    return { document, lines: [`No runs of ${config.mirror} yet${why}`] };
  });
}

function linesOf(runs: readonly ListedRun[], isVerbose: boolean): string[] {
  const [head = '', ...rows] = table([
    ['RUN', 'STARTED', 'MODE', 'STATUS', 'TOOK', ...(isVerbose ? ['REQUESTS'] : []), 'CHANGES'],
    ...runs.map((run) => [
      run.run,
      run.startedAt,
      isVerbose ? modeWords(run) : run.mode,
      history.statusWords(run),
      history.tookWords(run),
      ...(isVerbose ? [run.requests ? withCommas(run.requests.total) : '–'] : []),
      changeWords(run.changes),
    ]),
  ]);
  const told = rows.flatMap((row, at) => {
    const [first, ...more] = runs[at]?.reasons ?? [];
    if (first === undefined) return [row];
    return [row, `    ${first}${more.length > 0 ? ` (and ${more.length} more)` : ''}`];
  });
  return [head, ...told];
}

function tellOne(
  { config, snapshot, leased, names }: Seen,
  { id, last, isVerbose }: { id: string; last: number; isVerbose: boolean },
): CommandAnswer {
  const kept: KeptRun | undefined = snapshot?.runs.get(id);
  if (!snapshot || !kept) {
    throw new Invalid(`no run ${id} in ${config.snapshot}`, {
      fix: '`crm-mirror runs` lists them',
    });
  }
  const run = history.tellRun(kept, history.runningOf(snapshot, leased));
  const { plan, requests, certificate } = run;
  const yes = (value: boolean) => (value ? 'yes' : 'no');
  const counts = history.tellChanges(snapshot, id);
  const listed = snapshot.outcomes.gravest(id, last);
  const more = totalOf(counts) - listed.length;
  const shown = listed.map((one) => changeOf(one, names(one)));
  return {
    document: { mirror: config.mirror, ...run, changes: counts, listed: shown, more },
    lines: [
      `Run ${id} of ${config.mirror}: ${history.statusWords(run)} (${run.mode}, ${history.tookWords(run)})`,
      `started ${run.startedAt}, ended ${run.endedAt ?? '–'}`,
      ...(isVerbose && plan !== null ? [`plan ${plan}`] : []),
      ...(isVerbose && requests
        ? [`requests ${requests.total}, delayed by a rate limit ${requests.rateLimited}`]
        : []),
      ...(isVerbose && certificate
        ? [
            `complete readings: source ${yes(certificate.source)}, ` +
              `platform ${yes(certificate.platform)}`,
          ]
        : []),
      ...(askedWords(run) === '' ? [] : [`asked for by ${askedWords(run)}`]),
      ...(run.undoes === undefined ? [] : [`undoes run ${run.undoes}`]),
      ...fullWords(run),
      ...run.reasons.map((reason) => `  ${reason}`),
      '',
      `Changes: ${changeWords(counts)}`,
      ...shown.map(lineOf),
      ...(more > 0 ? [`  … and ${more} more (--last ${last + more} shows all)`] : []),
    ],
  };
}

function lineOf({ kind, key, op, part, outcome, reason, fix, approval }: ToldChange): string {
  const where = part === '' ? '' : ` in ${part}`;
  const about = kind === 'template' ? `template ${key}` : key;
  const what = `${outcomeName(outcome)}: ${changeName(op, false)} ${about}${where}`;
  if (reason === null) return `  ${what}${approvalWords(approval)}`;
  const isDropped = outcome === 'stale';
  return `  ${what}${isDropped ? ', because ' : ': '}${renderProblem({ reason, fix })}`;
}

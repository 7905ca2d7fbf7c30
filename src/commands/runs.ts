import type { Command } from 'commander';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { table } from '../cli/output/table.ts';
import type { KeptChange, KeptRun } from '../snapshot/tables/run-history.ts';
import {
  type CommandAnswer,
  look,
  type LookFlags,
  namingOptions,
  type Seen,
} from '../cli/lookup/snapshot-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant, instantOrNull } from '../cli/output/format-values.ts';
import * as history from '../cli/status/run-history.ts';

interface Flags extends LookFlags {
  last?: string;
}

const runsShown = 20;
const changesShown = 100;

/** Declares the flags of `runs`. */
export function options(command: Command): void {
  namingOptions(command)
    .argument('[id]', 'one run, with its changes')
    .option(
      '--last <n>',
      `how many: runs, the newest first (${runsShown}), or changes of one, the gravest first (${changesShown})`,
    )
    .addHelpText(
      'after',
      '\nRuns older than `keep` are dropped. A run that was killed is interrupted; one that is\n' +
        'still running is shown as such.',
    );
}

/** Lists the latest runs, or one run with its changes. Throws Invalid for an unknown run. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [id] = command.args;
  const last = countOf(flags.last) ?? (id === undefined ? runsShown : changesShown);
  return look(flags, shell, (seen) =>
    id === undefined ? tellAll(seen, last) : tellOne(seen, id, last),
  );
}

function countOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Invalid(`--last ${text}: write a number from 1 on`);
}

type ListedRun = history.ToldRun & { changes: history.ToldChanges };

function tellAll({ config, snapshot, leased }: Seen, last: number): CommandAnswer {
  const isRunning = snapshot ? history.runningOf(snapshot, leased) : () => false;
  const runs: ListedRun[] = (snapshot?.runs.newest(last) ?? []).map((run) => ({
    ...history.tellRun(run, isRunning),
    changes: snapshot ? history.tellChanges(snapshot, run.id) : { contacts: {}, templates: {} },
  }));
  const document = { mirror: config.mirror, runs };
  if (runs.length > 0) return { document, lines: linesOf(runs) };
  const why = snapshot ? '' : `: there is no snapshot yet at ${config.snapshot}`;
  return { document, lines: [`No runs of ${config.mirror} yet${why}`] };
}

/** Returns a line for each run, followed by the reason if it did not complete successfully. */
function linesOf(runs: readonly ListedRun[]): string[] {
  const [head = '', ...rows] = table([
    ['RUN', 'STARTED', 'MODE', 'STATUS', 'TOOK', 'REQUESTS', 'CHANGES'],
    ...runs.map((run) => [
      run.run,
      run.startedAt,
      run.mode,
      history.statusWords(run),
      history.tookWords(run),
      String(run.requests?.total ?? '–'),
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

/**
 * Formats counts such as: 3 create, 1 opt_in rejected, 2 template update. Counts without a state
 * were acknowledged.
 */
function changeWords({ contacts, templates }: history.ToldChanges): string {
  const words = (of: history.ToldChanges['contacts'], prefix: string): string[] =>
    Object.entries(of).flatMap(([op, states]) =>
      Object.entries(states).map(
        ([state, n]) => `${n} ${prefix}${op}${state === 'acked' ? '' : ` ${state}`}`,
      ),
    );
  return [...words(contacts, ''), ...words(templates, 'template ')].join(', ') || 'none';
}

function tellOne(seen: Seen, id: string, last: number): CommandAnswer {
  const { config, snapshot, leased, names } = seen;
  const kept: KeptRun | undefined = snapshot?.runs.get(id);
  if (!snapshot || !kept) {
    throw new Invalid(`no run ${id} in ${config.snapshot}`, {
      fix: '`crm-mirror runs` lists them',
    });
  }
  const run = history.tellRun(kept, history.runningOf(snapshot, leased));
  const counts = history.tellChanges(snapshot, id);
  const listed = snapshot.outcomes.gravest(id, last);
  const more = totalOf(counts) - listed.length;
  const shown = listed.map((one) => changeOf(one, names(one)));
  return {
    document: { mirror: config.mirror, ...run, changes: counts, listed: shown, more },
    lines: [
      `Run ${id} of ${config.mirror}: ${history.statusWords(run)} (${run.mode}, ${history.tookWords(run)})`,
      `started ${run.startedAt}, ended ${run.endedAt ?? '–'}${run.plan ? `, plan ${run.plan}` : ''}`,
      ...proofOf(run),
      ...run.reasons.map((reason) => `  ${reason}`),
      '',
      `Changes: ${changeWords(counts)}`,
      ...shown.map(lineOf),
      ...(more > 0 ? [`  … and ${more} more (--last ${last + more} shows all)`] : []),
    ],
  };
}

function proofOf({ requests, certificate }: history.ToldRun): string[] {
  if (!requests || !certificate) return [];
  const yes = (value: boolean) => (value ? 'yes' : 'no');
  return [
    `requests ${requests.total}, told to wait ${requests.rateLimited}; complete readings: ` +
      `source ${yes(certificate.source)}, platform ${yes(certificate.platform)}`,
  ];
}

function changeOf(change: KeptChange, key: string) {
  return {
    kind: change.kind,
    key,
    op: change.op,
    part: change.part,
    outcome: change.state,
    reason: change.reason,
    fix: change.fix,
    plannedAt: instant(change.plannedAt),
    sentAt: instantOrNull(change.sentAt),
    endedAt: instantOrNull(change.endedAt),
  };
}

function lineOf({
  kind,
  key,
  op,
  part,
  outcome,
  reason,
  fix,
}: ReturnType<typeof changeOf>): string {
  const where = part === '' ? '' : ` in ${part}`;
  const why = reason === null ? '' : `: ${renderProblem({ reason, fix })}`;
  return `  ${outcome} ${op} ${kind} ${key}${where}${why}`;
}

function totalOf({ contacts, templates }: history.ToldChanges): number {
  const states = [contacts, templates].flatMap((of) => Object.values(of));
  return states.flatMap((of) => Object.values(of)).reduce((sum, n) => sum + n, 0);
}

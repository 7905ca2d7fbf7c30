import type { Command } from 'commander';
import type { CommandPart, Shell } from '../cli/compose/process-shell.ts';
import { print } from '../cli/lookup/snapshot-command.ts';
import { exitCode } from '../cli/output/exit-codes.ts';
import { instant } from '../cli/output/format-values.ts';
import { table } from '../cli/output/table.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { counted } from '../domain/values/counted.ts';
import { systemClock } from '../http/system-clock.ts';
import { isRefused, openMirrorFolder } from '../worker/mirror-folder.ts';
import {
  drainNode,
  type Fleet,
  type FleetMirror,
  type FleetNode,
  readFleet,
} from '../worker/placement/fleet-store.ts';
import { mirrorsWithoutDisk, missingDiskWords } from '../worker/placement/missing-disks.ts';
import { weightOf } from '../worker/placement/place-mirrors.ts';
import { connectQuickly, type Quick } from '../worker/queues/redis-connections.ts';
import { namedTwice, workable, type Workable } from '../worker/workable-config.ts';

/** The parts of `fleet`. */
export const parts: readonly CommandPart[] = [
  {
    name: 'status',
    summary: 'list the workers, what each of them serves, and mirrors that nobody serves',
    options: fleetOptions,
    run: status,
  },
  {
    name: 'drain',
    summary: 'have a worker give all its mirrors away and take none, before it is stopped',
    options: drainOptions,
    run: drain,
  },
];

interface Flags {
  config?: string;
  mirrors?: string;
  json?: true;
  undo?: true;
}

function fleetOptions(command: Command): void {
  command
    .option('-c, --config <file>', 'the configuration of one mirror')
    .option('--mirrors <folder>', 'the folder of configurations that the workers serve')
    .option('--json', 'print one JSON document');
}

function drainOptions(command: Command): void {
  command.argument('<node>', 'the name of a worker in `fleet status`, or how it begins');
  fleetOptions(command);
  command.option('--undo', 'let it have mirrors again');
}

interface Row {
  node: string;
  host: string;
  since: string;
  mirrors: number;
  /** The sum of the weights of its mirrors: 1 for each, and 1 for each thousand people. */
  weight: number;
  draining: boolean;
}

async function status(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const nodes: Row[] = [];
  const withoutHome: string[] = [];
  const missing: FleetMirror[] = [];
  await withFleets(flags, shell, async (fleet, mirrors) => {
    nodes.push(...fleet.nodes.map((node) => rowOf(node, fleet)));
    const free = fleet.mirrors.filter(({ home, isElsewhere }) => !home && !isElsewhere);
    withoutHome.push(...free.map(({ name }) => name).filter((name) => mirrors.includes(name)));
    missing.push(...mirrorsWithoutDisk(fleet).filter(({ name }) => mirrors.includes(name)));
  });
  const withoutDisk = missing.map(({ name, diskHost: host }) => ({ mirror: name, host }));
  const lines = [...linesOf(nodes, withoutHome), ...missingDiskWords(missing)];
  print({ document: { nodes, withoutHome, withoutDisk }, lines }, flags, shell);
  return exitCode('done');
}

function rowOf({ name, host, since, isDraining }: FleetNode, { mirrors }: Fleet): Row {
  const own = mirrors.filter(({ home }) => home === name);
  const weight = own.reduce((sum, one) => sum + weightOf(one), 0);
  return {
    node: name,
    host,
    since: instant(since),
    mirrors: own.length,
    weight: Math.round(weight * 10) / 10,
    draining: isDraining,
  };
}

function linesOf(nodes: readonly Row[], withoutHome: readonly string[]): string[] {
  const head = ['node', 'host', 'since', 'mirrors', 'weight', 'draining'];
  const rows = nodes.map((row) => [
    row.node,
    row.host,
    row.since,
    String(row.mirrors),
    row.weight.toFixed(1),
    row.draining ? 'yes' : 'no',
  ]);
  const free = withoutHome.length;
  return [
    ...(rows.length > 0
      ? table([head, ...rows], { right: [3, 4] })
      : ['No worker of a folder is alive.']),
    '',
    free === 0
      ? 'Every mirror is served.'
      : `${counted(free, 'mirror')} without a home: ${withoutHome.join(', ')}`,
  ];
}

async function drain(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [asked = ''] = command.args;
  const isDraining = flags.undo !== true;
  let others = 0;
  const found: string[] = [];
  await withFleets(flags, shell, async ({ nodes }, _, quick) => {
    const named = nodes.filter(({ name }) => name === asked);
    const [node, ...more] = named.length > 0 ? named : nodes.filter(startsWith(asked));
    if (more.length > 0) throw new Invalid(`${asked} is the beginning of several workers' names`);
    if (!node || !(await drainNode(quick, node.name, isDraining))) return;
    found.push(node.name);
    others = nodes.filter((one) => one.name !== node.name && !one.isDraining).length;
  });
  const [node] = found;
  if (node === undefined) {
    throw new Invalid(`no living worker is named ${asked}`, { fix: 'look at `fleet status`' });
  }
  const lines = [isDraining ? drainWords(node, others) : `${node} may have mirrors again.`];
  print({ document: { node, draining: isDraining, others }, lines }, flags, shell);
  return exitCode('done');
}

const startsWith =
  (beginning: string) =>
  ({ name }: FleetNode): boolean =>
    beginning !== '' && name.startsWith(beginning);

function drainWords(node: string, others: number): string {
  if (others > 0) {
    return `${node} gives its mirrors away, each after its current run, and takes none.`;
  }
  const reason = `${node} takes no more mirrors, but keeps those it has: no other worker takes them`;
  return renderProblem({ reason, fix: 'start another worker' });
}

/** Calls `act` with the fleet of each Redis that the configurations name. */
async function withFleets(
  flags: Flags,
  shell: Shell,
  act: (fleet: Fleet, mirrors: readonly string[], quick: Quick) => Promise<void>,
): Promise<void> {
  const configs = await configsOf(flags, shell);
  for (const [url, own] of Map.groupBy(configs, ({ redis }) => redis)) {
    const mirrors = own.map(({ mirror }) => mirror);
    const quick = connectQuickly(url);
    try {
      await act(await readFleet(quick, mirrors), mirrors, quick);
    } finally {
      quick.close();
    }
  }
}

/** Returns the usable configurations, and prints which are not. */
async function configsOf({ config, mirrors }: Flags, shell: Shell): Promise<readonly Workable[]> {
  const load = (file: string): Workable => workable(loadConfig(file, shell.env));
  if (mirrors === undefined) {
    if (config === undefined) throw new Invalid('name a folder with --mirrors, or a file with -c');
    return [load(config)];
  }
  if (config !== undefined) throw namedTwice();
  const { note } = shell;
  const folder = openMirrorFolder({ folder: mirrors, clock: systemClock, load, note });
  const files = [...(await folder.read()).values()];
  for (const one of files) {
    if (isRefused(one)) note(`crm-mirror: ${one.file} cannot be used, and is left out`);
  }
  return files.flatMap((one) => (isRefused(one) ? [] : [one]));
}

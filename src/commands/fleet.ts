import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import type { Command } from 'commander';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { print } from '../app/snapshot-command.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import { instant } from '../compose/output/format-values.ts';
import { table } from '../compose/output/table.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { counted } from '../domain/values/counted.ts';
import { systemClock } from '../http/system-clock.ts';
import {
  askToMove,
  followMove,
  movedWords,
  type MovePlan,
  movingWords,
  planMove,
} from '../worker/moves/request-move.ts';
import {
  isRefused,
  namedTwice,
  openMirrorFolder,
  workable,
  type Workable,
} from '../worker/mirror-folder.ts';
import {
  drainNode,
  type Fleet,
  type FleetMirror,
  type FleetNode,
  mirrorsWithoutDisk,
  missingDiskWords,
  readFleet,
  servedBy,
  unserved,
  withoutDiskIn,
} from '../compose/placement/fleet-store.ts';
import { moveStore } from '../compose/placement/move-store.ts';
import { weightOf } from '../compose/placement/place-mirrors.ts';
import { connectQuickly, type Quick } from '../compose/queues/redis-connections.ts';

export const parts = {
  status: {
    options: fleetOptions,
    run: status,
  },
  drain: {
    options: (command) => {
      command.argument('<node>', 'the name of a worker in `fleet status`, or how it begins');
      fleetOptions(command);
      command.option('--undo', 'let it have mirrors again');
    },
    run: drain,
  },
  move: {
    options: (command) => {
      command.argument('<mirror>', 'the name of a mirror');
      fleetOptions(command);
      command.requiredOption(
        '--to <node>',
        'the name of a worker in `fleet status`, or how it begins',
      );
    },
    run: move,
  },
} satisfies Record<string, CommandModule>;

interface Flags {
  config?: string;
  mirrors?: string;
  json?: true;
  undo?: true;
  to?: string;
}

function fleetOptions(command: Command): void {
  command
    .option('-c, --config <file>', 'the configuration of one mirror')
    .option('--mirrors <folder>', 'the folder of configurations that the workers serve')
    .option('--json', 'print one JSON document');
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
  const moves: { mirror: string; from: string; to: string; state: string }[] = [];
  const unusable = await withFleets(flags, shell, async (fleet, mirrors) => {
    nodes.push(
      ...fleet.nodes.map((node) => {
        const own = servedBy(fleet, node.name);
        const weight = own.reduce((sum, one) => sum + weightOf(one), 0);
        return {
          node: node.name,
          host: node.host,
          since: instant(node.since),
          mirrors: own.length,
          weight: Math.round(weight * 10) / 10,
          draining: node.isDraining,
        };
      }),
    );
    const free = unserved(fleet).map(({ name }) => name);
    withoutHome.push(...free.filter((name) => mirrors.includes(name)));
    missing.push(...mirrorsWithoutDisk(fleet).filter(({ name }) => mirrors.includes(name)));
    for (const [mirror, { from, to, state }] of fleet.moves)
      moves.push({ mirror, from, to, state });
  });
  const withoutDisk = missing.map(({ name, diskHost: host }) => ({ mirror: name, host }));
  const rows = nodes.map((row) => [
    row.node,
    row.host,
    row.since,
    String(row.mirrors),
    row.weight.toFixed(1),
    row.draining ? 'yes' : 'no',
  ]);
  const head = ['node', 'host', 'since', 'mirrors', 'weight', 'draining'];
  const lines = [
    ...(rows.length > 0
      ? table([head, ...rows], { right: [3, 4] })
      : ['No worker of a folder is alive.']),
    '',
    withoutHome.length === 0
      ? `Every ${unusable.length === 0 ? '' : 'other '}mirror is served.`
      : `${counted(withoutHome.length, 'mirror')} without a home: ${withoutHome.join(', ')}`,
    ...(unusable.length === 0 ? [] : [`Not known, see above: ${unusable.join(', ')}`]),
    ...missingDiskWords(missing),
    ...moves.map(({ mirror, from, to }) => `${mirror} is being moved from ${from} to ${to}.`),
  ];
  print({ document: { nodes, withoutHome, withoutDisk, moves, unusable }, lines }, flags, shell);
  return exitCode(unusable.length === 0 ? 'done' : 'failed');
}

async function drain(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [asked = ''] = command.args;
  const isDraining = flags.undo !== true;
  let others = 0;
  const found: string[] = [];
  const stay: string[] = [];
  await withFleets(flags, shell, async (fleet, _, quick) => {
    const { nodes } = fleet;
    const node = nodeNamed(asked, nodes);
    if (!node || !(await drainNode(quick, node.name, isDraining))) return;
    found.push(node.name);
    const takers = nodes.filter((one) => one.name !== node.name && !one.isDraining);
    others += takers.length;
    stay.push(...withoutDiskIn(takers, servedBy(fleet, node.name)).map(({ name }) => name));
  });
  const [node] = found;
  if (node === undefined) throw noNode(asked);
  const lines = isDraining ? drainWords(node, others, stay) : [`${node} may have mirrors again.`];
  print({ document: { node, draining: isDraining, others, stay }, lines }, flags, shell);
  return exitCode('done');
}

/** Returns the node with this name, or whose name begins so. Throws Invalid if several do. */
function nodeNamed(asked: string, nodes: readonly FleetNode[]): FleetNode | undefined {
  const named = nodes.filter(({ name }) => name === asked);
  const like = nodes.filter(({ name }) => asked !== '' && name.startsWith(asked));
  const [node, ...more] = named.length > 0 ? named : like;
  if (more.length === 0) return node;
  throw new Invalid(`${asked} is the beginning of several workers' names`);
}

function noNode(asked: string): Invalid {
  return new Invalid(`no living worker is named ${asked}`, { fix: 'look at `fleet status`' });
}

function drainWords(node: string, others: number, stay: readonly string[]): string[] {
  if (others === 0) {
    const reason = `${node} takes no more mirrors, but keeps those it has: no other worker takes them`;
    return [renderProblem({ reason, fix: 'start another worker' })];
  }
  const gives = `${node} gives its mirrors away, each after its current run, and takes none.`;
  if (stay.length === 0) return [gives];
  const reason = `it keeps ${stay.join(', ')}: no other worker has their disk`;
  return [gives, renderProblem({ reason, fix: 'move them with `fleet move`' })];
}

async function move(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [mirror = ''] = command.args;
  const { to = '' } = flags;
  const { usable } = await configsOf(flags, shell);
  const config = usable.find((one) => one.mirror === mirror);
  if (!config) {
    throw new Invalid(`no usable file names the mirror ${mirror}`, {
      fix: 'name one of the mirrors in the folder',
    });
  }
  const quick = connectQuickly(config.redis);
  try {
    const fleet = await readFleet(quick, [mirror]);
    const node = nodeNamed(to, fleet.nodes);
    if (!node) throw noNode(to);
    const plan = planMove(fleet, mirror, node);
    if (plan) await moveBy(plan, mirror, { flags, shell, quick });
    else {
      const document = { mirror, from: node.name, to: node.name, moved: false };
      print({ document, lines: [`${mirror} is on ${node.name} already.`] }, flags, shell);
    }
    return exitCode('done');
  } finally {
    quick.close();
  }
}

async function moveBy(
  plan: MovePlan,
  mirror: string,
  { flags, shell, quick }: { flags: Flags; shell: Shell; quick: Quick },
): Promise<void> {
  const began = systemClock.monotonic();
  const id = randomBytes(8).toString('hex');
  const { from, to } = plan;
  await askToMove(quick, { mirror, id, plan });
  shell.note(`crm-mirror: ${mirror}: ${from} sends it to ${to}, once its current run has ended`);
  const told = await followMove(moveStore(quick, mirror, id), {
    clock: systemClock,
    stop: shell.stop,
    tell: (news) => shell.progress(movingWords(mirror, news)),
  });
  const ms = Math.round(systemClock.monotonic() - began);
  const { people, entries, files, kept = null } = told;
  const document = { mirror, from, to, moved: true, people, entries, files, kept, ms };
  print({ document, lines: movedWords(document) }, flags, shell);
}

/**
 * Calls `act` with the fleet of each Redis that the configurations name. Returns the files that
 * cannot be used.
 */
async function withFleets(
  flags: Flags,
  shell: Shell,
  act: (fleet: Fleet, mirrors: readonly string[], quick: Quick) => Promise<void>,
): Promise<readonly string[]> {
  const { usable, unusable } = await configsOf(flags, shell);
  for (const [url, own] of Map.groupBy(usable, ({ redis }) => redis)) {
    const mirrors = own.map(({ mirror }) => mirror);
    const quick = connectQuickly(url);
    try {
      await act(await readFleet(quick, mirrors), mirrors, quick);
    } finally {
      quick.close();
    }
  }
  return unusable;
}

/**
 * Returns the usable configurations, and the other files, after printing what is wrong with them.
 * Throws Invalid if none is usable.
 */
async function configsOf(
  { config, mirrors }: Flags,
  shell: Shell,
): Promise<{ usable: readonly Workable[]; unusable: readonly string[] }> {
  const load = (file: string): Workable => workable(loadConfig(file, shell.env));
  if (mirrors === undefined) {
    if (config === undefined) throw new Invalid('name a folder with --mirrors, or a file with -c');
    return { usable: [load(config)], unusable: [] };
  }
  if (config !== undefined) throw namedTwice();
  const { note } = shell;
  const folder = openMirrorFolder({ folder: mirrors, clock: systemClock, load, note });
  const files = [...(await folder.read()).values()];
  const refused = files.filter(isRefused);
  for (const { why } of refused) note(`crm-mirror: ${why.replaceAll('\n', '\ncrm-mirror: ')}`);
  const usable = files.flatMap((one) => (isRefused(one) ? [] : [one]));
  if (usable.length === 0) {
    const fix = 'correct the files, or name another folder with --mirrors';
    throw new Invalid(`${mirrors}: no file can be used`, { fix });
  }
  return { usable, unusable: refused.map(({ file }) => basename(file)) };
}

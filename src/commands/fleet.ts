import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { Option } from 'commander';
import type { CalledWith, FlagsOf } from '../compose/command-options.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import { print } from '../app/snapshot-command.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import {
  isRefused,
  namedTwice,
  nothingDue,
  openMirrorFolder,
  workable,
  type Workable,
} from '../worker/mirror-folder.ts';
import { drainNode, type Fleet, ownerOf, readFleet } from '../compose/fleet/fleet.ts';
import {
  fleetSections,
  type ShownFleet,
  shownFleet,
  mirrorRow,
  mirrorsSections,
  readListed,
  type ShownMirror,
  sortMirrors,
} from '../views/status/mirrors.ts';
import { withRedis, type Quick } from '../compose/queues/redis-connections.ts';

const options = {
  'config <file>': () => new Option('-c, --config <file>', 'the configuration of one mirror'),
  'mirrors <folder>': 'the folder of configurations that the workers serve',
  json: 'print one JSON document',
};
const drainOptions = {
  '<node>': 'the name of a worker in `fleet status`, or how it begins',
  ...options,
  undo: 'let it have mirrors again',
};
type Flags = Partial<FlagsOf<typeof drainOptions>>;

export const parts = {
  status: { options, run: status },
  drain: { options: drainOptions, run: drain },
} satisfies Record<string, CommandModule>;

async function status({ flags }: CalledWith<Flags>, shell: Shell): Promise<number> {
  const fleets: ShownFleet[] = [];
  const shown: ShownMirror[] = [];
  const elsewhere: string[] = [];
  const unusable = await withFleets(flags, shell, async (fleet, own) => {
    const names = own.map(({ mirror }) => mirror);
    fleets.push(shownFleet(fleet, names));
    const known = new Map(fleet.mirrors.map((one) => [one.name, one]));
    for (const config of own) {
      const { holder, isBegun } = known.get(config.mirror) ?? {};
      // It would look like a mirror that has lost its snapshot.
      if (isBegun && !existsSync(config.snapshot)) elsewhere.push(config.mirror);
      else shown.push({ ...readListed(config), config, worker: holder ?? 'nobody' });
    }
  });
  const all: ShownFleet = {
    workers: fleets.flatMap(({ workers }) => workers),
    withoutHome: fleets.flatMap(({ withoutHome }) => withoutHome),
  };
  const nodes = all.workers.map(({ row }) => row);
  const mirrors = sortMirrors(shown).map(mirrorRow);
  const { withoutHome } = all;
  const document = { nodes, withoutHome, unusable, mirrors, elsewhere };
  const code = exitCode(unusable.length + withoutHome.length === 0 ? 'done' : 'failed');
  const sections = [
    ...mirrorsSections(shown),
    { title: 'Their snapshot is not here: mount its folder', lines: elsewhere, isList: true },
    ...fleetSections(all, { unusable }),
  ];
  return print({ document, sections, code }, flags, shell);
}

async function drain({ flags, args: [asked = ''] }: CalledWith<Flags>, shell: Shell) {
  const isDraining = flags.undo !== true;
  let others = 0;
  const found: string[] = [];
  const stay: string[] = [];
  await withFleets(flags, shell, async (fleet, _, quick) => {
    const { nodes } = fleet;
    const named = nodes.filter(({ name }) => name === asked);
    const like = nodes.filter(({ name }) => asked !== '' && name.startsWith(asked));
    const [node, ...more] = named.length > 0 ? named : like;
    if (more.length > 0) throw new Invalid(`${asked} is the beginning of several workers' names`);
    if (!node || !(await drainNode(quick, node.name, isDraining))) return;
    found.push(node.name);
    const takers = nodes.filter((one) => one.name !== node.name && !one.isDraining);
    others += takers.length;
    for (const mirror of fleet.mirrors) {
      const stays = mirror.holder === node.name && ownerOf(mirror.name, takers) === undefined;
      if (stays) stay.push(mirror.name);
    }
  });
  const [node] = found;
  if (node === undefined) {
    throw new Invalid(`no living worker is named ${asked}`, { fix: 'look at `fleet status`' });
  }
  const lines = isDraining ? drainWords(node, others, stay) : [`${node} may have mirrors again.`];
  return print({ document: { node, draining: isDraining, others, stay }, lines }, flags, shell);
}

function drainWords(node: string, others: number, stay: readonly string[]): string[] {
  if (others === 0) {
    const reason = `${node} takes no more mirrors, but keeps those it has: no other worker takes them`;
    return [renderProblem({ reason, fix: 'start another worker' })];
  }
  const gives = `${node} gives its mirrors away, each after its current run, and takes none.`;
  if (stay.length === 0) return [gives];
  const reason = `it keeps ${stay.join(', ')}: no other worker has their snapshots`;
  return [gives, renderProblem({ reason, fix: 'start it again soon: they wait for it' })];
}

/** Calls `act` with the fleet of each Redis, and returns the files that cannot be used. */
async function withFleets(
  flags: Flags,
  shell: Shell,
  act: (fleet: Fleet, mirrors: readonly Workable[], quick: Quick) => Promise<void>,
): Promise<readonly string[]> {
  const { config, mirrors: folder } = flags;
  const load = (file: string): Workable => workable(loadConfig(file, shell.env));
  if (folder !== undefined && config !== undefined) throw namedTwice();
  if (folder === undefined && config === undefined)
    throw new Invalid('name a folder with --mirrors, or a file with -c');
  const { usable, unusable } =
    folder === undefined
      ? { usable: [load(config ?? '')], unusable: [] }
      : await readFolder(folder, load, shell);
  for (const [url, own] of Map.groupBy(usable, ({ redis }) => redis)) {
    const mirrors = own.map(({ mirror }) => mirror);
    await withRedis(url, async (quick) => act(await readFleet(quick, mirrors), own, quick));
  }
  return unusable;
}

/** Throws Invalid if no file is usable. */
async function readFolder(folder: string, load: (file: string) => Workable, shell: Shell) {
  const { note } = shell;
  const { read } = openMirrorFolder({ folder, clock: systemClock, load, note });
  const files = [...(await read()).values()];
  const refused = files.filter(isRefused);
  for (const { why } of refused) note(`crm-mirror: ${why.replaceAll('\n', '\ncrm-mirror: ')}`);
  const usable = files.flatMap((one) => (isRefused(one) ? [] : [one]));
  if (usable.length === 0) {
    const fix = 'correct the files, or name another folder with --mirrors';
    throw new Invalid(`${folder}: no file can be used`, { fix });
  }
  return { usable, unusable: refused.map(({ file }) => basename(file)) };
}

/** Prints a line for each mirror of a folder, whether workers serve them or cron runs them. */
export async function showFolder(
  folder: string,
  { isNamed, ...flags }: { json?: true | undefined; isNamed: boolean },
  shell: Shell,
): Promise<number> {
  if (isNamed) throw namedTwice();
  const load = (file: string) => {
    const config = loadConfig(file, shell.env);
    return { ...config, redis: config.redis ?? '', schedule: config.schedule ?? nothingDue };
  };
  const { usable, unusable } = await readFolder(folder, load, shell);
  const shown = usable.map((config) => ({ ...readListed(config), config }));
  const document = { mirrors: sortMirrors(shown).map(mirrorRow), unusable };
  const code = exitCode(unusable.length === 0 ? 'done' : 'failed');
  return print({ document, sections: mirrorsSections(shown), code }, flags, shell);
}

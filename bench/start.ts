/**
 * How long a command takes that has nothing to do: `npm run bench start [turns]`. Whole processes,
 * from this clone and from its package, in turns with `node -e 0`: the medians and their ratios.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment, folderOf, sync } from './stage/mirror.ts';
import { open } from './stage/open.ts';
import { compared, median, printTable, type Row } from './stage/row.ts';

const root = join(import.meta.dirname, '..');
const people = 1_000;
/** Before the first that count: what is compiled is kept for all later starts. */
const unmeasured = 2;

export async function main([turns]: readonly string[]): Promise<void> {
  await printTable([async () => start(turns === undefined ? undefined : Number(turns))]);
}

export async function start(turns = 15): Promise<Row[]> {
  const platform = await open({ limits: ['*=999999999/1'], people });
  const folder = await folderOf(platform.url, people);
  const packed = mkdtempSync(join(tmpdir(), 'bench-start-'));
  // The first one learns the contacts; the second one is the first that changes nothing.
  await sync(folder);
  await sync(folder);
  const own = ['-c', folder.config];
  const commands = [['--help'], ['status', ...own], ['sync', '--fast', ...own], ['sync', ...own]];
  const places = { clone: root, package: packInto(packed) };
  const jobs = Object.entries(places).flatMap(([place, path]) =>
    commands.map((words) => ({
      what: `${words.filter((word) => !own.includes(word)).join(' ')}, from the ${place}`,
      argv: [join(path, 'bin/crm-mirror.mjs'), ...words],
      tookMs: new Array<number>(),
    })),
  );
  const least = { argv: ['-e', '0'], tookMs: new Array<number>() };
  for (let turn = -unmeasured; turn < turns; turn += 1) {
    for (const { argv, tookMs } of [least, ...jobs]) {
      const ms = timed(argv);
      if (turn >= 0) tookMs.push(ms);
    }
  }
  platform.child.kill();
  await folder.remove();
  rmSync(packed, { recursive: true });
  const beside = { least: median(least.tookMs), unit: 'ms', peer: '`node -e 0`' };
  return jobs.map(({ what, tookMs }) => compared(what, median(tookMs), beside));
}

/** Packs the clone as it is published, beside the dependencies of the clone. */
function packInto(folder: string): string {
  execFileSync('npm', ['pack', '--ignore-scripts=false', '--pack-destination', folder], {
    cwd: root,
    stdio: 'ignore',
  });
  const [file = ''] = readdirSync(folder);
  execFileSync('tar', ['-xzf', file], { cwd: folder });
  const path = join(folder, 'package');
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return path;
}

function timed(argv: readonly string[]): number {
  const env = { ...process.env, NODE_OPTIONS: environment.NODE_OPTIONS };
  const beganMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, argv, { env, encoding: 'utf8' });
  const tookMs = performance.now() - beganMs;
  if (status !== 0) throw new Error(`${argv.join(' ')} ended with ${status}: ${stderr}`);
  return tookMs;
}

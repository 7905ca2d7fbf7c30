/**
 * Two machines: a folder of configurations each, with the same mirrors, and a local disk each for
 * the snapshots. They have one Redis, one platform for each mirror, and exports of one CRM.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { readFleet } from '../../../src/worker/placement/fleet-store.ts';
import { connectQuickly } from '../../../src/worker/queues/redis-connections.ts';
import { startFolder, until } from '../commands/worker-processes.ts';
import { createWorld, launch, type World } from '../engine/engine-world.ts';

interface Setting {
  redis: string;
  mirrors: readonly string[];
  /** Lines that every configuration has. */
  lines?: object;
}

/** The environment of a machine, with the folder of its snapshots. */
const machines = ['one', 'two'] as const;
type Machine = (typeof machines)[number];

export async function twoMachines({ redis, mirrors, lines = {} }: Setting) {
  const root = mkdtempSync(join(tmpdir(), 'crm-mirror-machines-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const worlds = new Map<string, World>();
  const folderOf = (machine: Machine): string => join(root, machine, 'mirrors');
  const stateOf = (machine: Machine): string => join(root, machine, 'state');
  for (const mirror of mirrors) {
    const world = await createWorld({ kinds: ['contact'], channels: ['ch_news'] });
    worlds.set(mirror, world);
    world.people([{ email: `ann@${mirror}.example`, news: 'yes' }]);
    const config = {
      mirror,
      redis,
      snapshot: `\${STATE}/${mirror}.sqlite`,
      ledgerKeyFile: `\${STATE}/${mirror}.key`,
      platform: { url: world.server.url, apiKey: 'key_live_world' },
      schedule: { full: '*/2 * * * * *' },
      guards: { optOuts: { percent: 100 } },
      contacts: {
        source: { type: 'csv', path: join(world.folder, 'people.csv') },
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', subscription: 'news' }],
      },
      ...lines,
    };
    for (const machine of machines) {
      mkdirSync(folderOf(machine), { recursive: true });
      writeFileSync(join(folderOf(machine), `${mirror}.yaml`), JSON.stringify(config));
    }
  }
  const quick = connectQuickly(redis);
  onTestFinished(() => quick.close());
  const look = async () => readFleet(quick);
  return {
    worlds,
    folderOf,
    stateOf,
    quick,
    look,
    /** Starts the worker of a machine, and answers once the others know it. */
    async start(machine: Machine, env: Record<string, string> = {}) {
      const before = new Set((await look()).nodes.map(({ name }) => name));
      const worker = startFolder(folderOf(machine), { STATE: stateOf(machine), ...env });
      onTestFinished(() => worker.kill('SIGKILL'));
      let node = '';
      await until(async () => {
        node = (await look()).nodes.find(({ name }) => !before.has(name))?.name ?? '';
        return node !== '';
      });
      return { ...worker, node };
    },
    /** Runs a command of `fleet` on the first machine. */
    async fleet(...words: string[]) {
      const args = ['fleet', ...words, '--mirrors', folderOf('one')];
      return launch(args, { STATE: stateOf('one') }).ended;
    },
    homeOf: async (mirror: string): Promise<string | undefined> =>
      (await look()).mirrors.find(({ name }) => name === mirror)?.home,
  };
}

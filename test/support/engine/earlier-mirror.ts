/** A mirror as an earlier version left it (test/snapshot/earlier-version), under these commands. */
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { openFile } from '../../../src/emulator/store/sqlite-file.ts';
import { calling } from '../commands/mirrored-contacts.ts';
import { servePlatform, type Arrival } from './platform-server.ts';

const KEY = 'key_live_world';
const files = join(import.meta.dirname, '../../snapshot/earlier-version');

interface Called {
  code: number;
  said: string;
  /** The document of --json. */
  json: ReturnType<typeof JSON.parse>;
}

export interface EarlierMirror {
  /** Of the snapshot. */
  path: string;
  /** Its file ('') or one beside it, by how its name goes on. */
  remove(...endings: string[]): void;
  /** The status and the subscriptions of everybody on the platform. */
  shown(): Record<string, string[]>;
  /** What was asked of the platform since the last call, or the beginning, beside reading. */
  writes(): string[];
  call(...argv: string[]): Promise<Called>;
}

/** All that is there, in a folder of its own. `policy`: what its configuration says besides. */
export async function earlierMirror(policy = ''): Promise<EarlierMirror> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(files, folder, { recursive: true });
  const [file, path] = [join(folder, 'mirror.yaml'), join(folder, 'acme.sqlite')];
  writeFileSync(file, readFileSync(file, 'utf8').replace('policy:\n', `policy:\n${policy}`));
  for (const ending of ['', '-ledger', '-ledger-key']) chmodSync(`${path}${ending}`, 0o600);
  const before = new Date(Date.now() - 60_000);
  utimesSync(join(folder, 'people.csv'), before, before);
  const { world, server } = await platformIn(join(folder, 'platform.sqlite'));
  const asked: string[] = [];
  const nameOf = (who = ''): string => (world.contact(who)?.email ?? who).split('@')[0] ?? '';
  const lineOf = ({ method, path: at, body, channel }: Arrival): string =>
    channel === ''
      ? `${method} ${nameOf(at.split('/').at(-1))}`
      : `${body.subscription} ${nameOf(body.email ?? body.contact_id)} ${channel}`;
  server.watch.arrived = (arrival) => {
    if (arrival.method !== 'GET') asked.push(lineOf(arrival));
  };
  return {
    path,
    remove: (...endings) => endings.forEach((ending) => rmSync(`${path}${ending}`)),
    shown: () =>
      Object.fromEntries(
        world.contacts().map(({ email, status, channels }) => {
          const said = channels.map(({ id, subscription }) => `${id} ${subscription}`);
          return [nameOf(email), [status, ...said]];
        }),
      ),
    writes: () => asked.splice(0),
    async call(...argv) {
      const env = { PLATFORM_URL: server.url, PLATFORM_API_KEY: KEY };
      const { code, out, said } = await calling([...argv, '-c', file], { env });
      return { code, said, json: out.startsWith('{') && JSON.parse(out) };
    },
  };
}

async function platformIn(path: string) {
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    apiKey: KEY,
    limits: ['*=1000000/1'],
    storage: openFile(path),
  });
  onTestFinished(() => emulator.close());
  return { world: emulator.world, server: await servePlatform(emulator) };
}

/** The platform has another address by now than when the snapshot was written. */
export async function movedMirror(policy?: string): Promise<EarlierMirror> {
  const world = await earlierMirror(policy);
  expect(await world.call('rebind', '--json')).toMatchObject({ code: 0, json: { moved: true } });
  return world;
}

import Database from 'better-sqlite3';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import {
  createEmulator,
  type Emulator,
  type EmulatorOptions,
} from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { Gate } from '../../../src/http/rate-limit/request-gate.ts';
import { createSend } from '../../../src/http/send-request.ts';
import type { Clock } from '../../../src/domain/clock.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import type { Guards } from '../../../src/domain/guards/guard-limits.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Platform } from '../../../src/platform/api-client.ts';
import { type Memory, openMemory } from '../../../src/store/memory/memory.ts';
import type { DoNotContactList } from '../../../src/store/memory/do-not-contact.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import { csvSource } from '../../../src/sources/csv/csv-source.ts';
import { directorySource } from '../../../src/sources/directory/directory-source.ts';
import { createPersonLocks } from '../../../src/engine/context/person-locks.ts';
import type { Mirror, RunOptions } from '../../../src/engine/context/mirror-context.ts';
import { run } from '../../../src/engine/run.ts';
import { limits } from './engine-stage.ts';
import { assembleTypes } from '../records/record-types.ts';
import { servePlatform, type Arrival, type Server } from './platform-server.ts';
import {
  type Sighting,
  type Watching,
  watch,
} from '../../../src/engine/watch/unsubscribe-watch.ts';
import { scratchFolder } from '../waiting.ts';

// One mirror over a real HTTP server: a folder of its own, a snapshot on disk, and a platform that
// can be told to fail. Time passes as the code sleeps, without anybody waiting for it.

const KEY = 'key_live_world';
const columns = { ch_news: 'news', ch_product: 'product', ch_lost: 'lost' };
type ChannelId = keyof typeof columns;

/** How long answers that are on their way are waited for, before a sleep is over. */
const patienceMs = 2_000;

/**
 * The system’s clock, put forward by whatever is slept beyond a moment: not past an answer that is
 * on its way, however slow the machine is.
 */
export function quickClock(isBusy = () => false): Clock & { pass(ms: number): void } {
  let ahead = 0;
  const monotonic = () => performance.now() + ahead;
  return {
    now: () => Math.floor(Date.now() + ahead),
    monotonic,
    async sleep(ms, signal) {
      const until = monotonic() + ms;
      // What can be called off waits beside answers that are on their way: they come first.
      await pause(Math.min(ms, signal ? 20 : 2), undefined, { signal }).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw error;
      });
      const most = ms > 20 ? patienceMs : 0;
      for (let waited = 0; waited < most && isBusy(); waited += 1) await pause(1);
      signal?.throwIfAborted();
      ahead += Math.max(0, until - monotonic());
    },
    pass: (ms) => void (ahead += ms),
  };
}

/** What the CRM says of one person; a channel left out = no opinion. */
export interface Person {
  email: string;
  news?: string;
  product?: string;
  lost?: string;
}

export interface WorldOptions {
  /** Channels of the mirror, in this order; ch_lost does not exist on the platform. */
  channels?: ChannelId[];
  kinds?: ('contact' | 'template')[];
  policy?: {
    absent?: 'keep' | 'opt_out';
    deletes?: 'off' | 'created' | 'owned';
    missing?: 'respect' | 'recreate';
    optIns?: 'on' | 'off';
    templates?: 'keep' | 'overwrite';
    absentTemplates?: 'keep' | 'archive';
  };
  /** Addresses that are protected. */
  protect?: string[];
  guards?: Partial<Guards>;
  timeoutMs?: number;
  /** Who else is on the platform. */
  platform?: Pick<EmulatorOptions, 'seedFile' | 'quirks'>;
  /** Of the platform: `route=requests/seconds`; none that anybody would notice. */
  limits?: string[];
}

export interface Connected extends Pick<Mirror, 'contacts' | 'templates'> {
  platform: Platform;
  gate: Gate;
  close(): Promise<void>;
}

export interface World {
  folder: string;
  emulator: Emulator;
  server: Server;
  clock: ReturnType<typeof quickClock>;
  snapshot: Snapshot;
  snapshotPath: string;
  memory: Memory;
  ledger: DoNotContactList;
  /** Writes the CRM's export; five seconds old, so that nobody waits for it to be finished. */
  people(rows: readonly Person[]): void;
  csv(text: string): void;
  template(key: string, fields: object): void;
  /** `key`: with another API key. */
  sync(options?: Partial<RunOptions>, key?: string): Promise<Summary>;
  /** The client of the mirror, and its kinds, as a run has them. */
  connect(key?: string): Connected;
  /** The mirror that a run is of, by that client. */
  mirror(connected: Connected, key?: string): Mirror;
  /** Arrivals since the last call, or the beginning, that were to change something. */
  writes(): Arrival[];
  /** The journal: how many changes are in which state. */
  states(): Record<string, number>;
  /** What is recorded of a person, by channel. */
  recorded(email: string): Record<string, { is: string; by: string }>;
  /** What the platform has, by channel; undefined when there is no such person. */
  shown(email: string): Record<string, string> | undefined;
  /** Writes a configuration for the command line; answers its path. */
  config(lines?: Lines): string;
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const folder = scratchFolder();
  let onTheirWay = 0;
  const clock = quickClock(() => onTheirWay > 0);
  const random = seeded(7);
  const emulator = createEmulator({
    clock,
    random: seeded(1),
    apiKey: KEY,
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: options.limits ?? ['*=1000000/1'],
    ...options.platform,
  });
  const server = await servePlatform(emulator);
  const { channels = ['ch_news', 'ch_product'], timeoutMs = 10_000 } = options;
  const kinds = options.kinds ?? ['contact', 'template'];
  const snapshotPath = join(folder, 'snapshot.sqlite');
  const snapshot = openSnapshot(snapshotPath);
  onTestFinished(() => snapshot.close());
  const memory = openMemory(
    { path: `${snapshotPath}-memory`, keyFile: `${snapshotPath}-memory-key` },
    { known: undefined, acceptLost: false, randomHex: (bytes) => '7f'.repeat(bytes) },
  );
  onTestFinished(() => memory.close());
  const csvPath = join(folder, 'people.csv');
  const templatesPath = join(folder, 'templates');
  mkdirSync(templatesPath);
  let read = 0;
  const locks = createPersonLocks();

  function csv(text: string): void {
    writeFileSync(csvPath, text);
    const before = new Date(Date.now() - 5000);
    utimesSync(csvPath, before, before);
  }
  function connect(apiKey = KEY): Connected {
    const { send: sendOne, close } = createSend({ url: server.url, timeoutMs, userAgent: 'test' });
    const send: Send = (request, signal) => {
      onTheirWay += 1;
      return sendOne(request, signal).finally(() => (onTheirWay -= 1));
    };
    const { policy = {}, protect } = options;
    const { gate, platform, contact, template } = assembleTypes({
      send,
      clock,
      random,
      apiKey,
      fields: {
        id: 'id',
        email: 'email',
        protect,
        channels: channels.map((id) => ({ id, subscription: columns[id] })),
      },
      policy,
      absence: { deletes: policy.deletes ?? 'off' },
    });
    const people = csvSource({ type: 'csv', path: csvPath }, { clock, random: () => 1 });
    const letters = directorySource({ type: 'directory', path: templatesPath });
    const contacts = kinds.includes('contact') ? { ...contact, source: people } : undefined;
    const templates = kinds.includes('template') ? { ...template, source: letters } : undefined;
    return { platform, contacts, templates, gate, close };
  }
  const world: World = {
    folder,
    emulator,
    server,
    clock,
    snapshot,
    snapshotPath,
    memory,
    ledger: memory.list(),
    csv,
    connect,
    people: (rows) => csv(csvOf(rows)),
    template(key, fields) {
      writeFileSync(join(templatesPath, `${key}.json`), JSON.stringify(fields));
    },
    mirror({ platform, contacts, templates, gate }, apiKey = KEY) {
      const account = { mirror: 'world', url: server.url, apiKey, platform };
      const guards = { ...limits, ...options.guards };
      const { ledger: doNotContact } = world;
      const opened = { snapshot, memory, doNotContact };
      const both = { contacts, templates };
      const base = { name: 'world', ...both, ...opened, clock, random, guards, account };
      const { counts: requests, limits: allowed, platformNow } = gate;
      const pageSizes = [100, 83] as const;
      const rest = { locks, notes: [], pageSizes, reserve: 0, timeoutMs, keepMs: 1e10 };
      const none = { rules: [], windows: [], timezone: 'UTC' };
      return { ...base, ...rest, ...none, requests, limits: allowed, platformNow };
    },
    async sync(overrides = {}, apiKey = KEY) {
      const connected = connect(apiKey);
      const never = new AbortController().signal;
      try {
        return await run(world.mirror(connected, apiKey), {
          mode: 'full',
          writes: true,
          only: undefined,
          stop: never,
          abort: never,
          progress: () => undefined,
          ...overrides,
        });
      } finally {
        await connected.close();
      }
    },
    writes() {
      const fresh = server.arrived.slice(read);
      read = server.arrived.length;
      return fresh.filter(({ method }) => method !== 'GET');
    },
    states: () => statesIn(snapshotPath),
    recorded(email) {
      const row = snapshot.recorded.get('contact', email);
      return row ? JSON.parse(row.body).channels : {};
    },
    shown(email) {
      const contact = emulator.world.contact(email);
      return (
        contact &&
        Object.fromEntries(contact.channels.map(({ id, subscription }) => [id, subscription]))
      );
    },
    config: (lines = {}) => writeConfig({ folder, url: server.url, channels, kinds, ...lines }),
  };
  return world;
}

export function csvOf(rows: readonly Person[]): string {
  const lines = rows.map(
    ({ email, news = '', product = '', lost = '' }) =>
      `id-${email},${email},${news},${product},${lost}`,
  );
  return `${['id,email,news,product,lost', ...lines].join('\n')}\n`;
}

/** How many changes of a snapshot's journal are in which state. */
export function statesIn(path: string): Record<string, number> {
  const db = new Database(path, { readonly: true });
  try {
    const rows = db
      .prepare<[], { state: string; n: number }>(
        'select state, count(*) n from change group by state',
      )
      .all();
    return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
  } finally {
    db.close();
  }
}

/** What a configuration says beside the world it is about. */
export interface Lines {
  mirror?: string;
  timeoutMs?: number;
  key?: string;
  url?: string;
  snapshot?: string;
  /** Options of contacts, instead of those of the world or besides them. */
  contacts?: Record<string, unknown>;
  /** Blocks of their own. */
  policy?: Record<string, unknown>;
  guards?: Record<string, unknown>;
  rules?: Record<string, unknown>[];
  windows?: Record<string, unknown>[];
  schedule?: Record<string, unknown>;
  redis?: string;
  server?: Record<string, unknown>;
  notices?: Record<string, unknown>;
  requests?: Record<string, unknown>;
  alerts?: Record<string, unknown>;
}

function writeConfig({
  folder,
  url,
  channels,
  kinds,
  timeoutMs = 10_000,
  key = KEY,
  snapshot = 'cli/snapshot.sqlite',
  mirror = 'world',
  ...lines
}: {
  folder: string;
  url: string;
  channels: ChannelId[];
  kinds: string[];
} & Lines): string {
  const path = join(folder, 'mirror.yaml');
  const { contacts: own, guards, ...blocks } = lines;
  const contacts = {
    source: { type: 'csv', path: './people.csv' },
    id: 'id',
    email: 'email',
    channels: channels.map((id) => ({ id, subscription: columns[id] })),
    ...own,
  };
  const templates = { source: { type: 'directory', path: './templates' } };
  const config = {
    mirror,
    snapshot,
    platform: { url, apiKey: key, timeoutMs, reserve: 0 },
    ...(kinds.includes('contact') && { contacts }),
    ...(kinds.includes('template') && { templates }),
    ...blocks,
    guards: { optOuts: { percent: 100 }, templates: { percent: 100 }, ...guards },
  };
  // JSON is YAML.
  writeFileSync(path, JSON.stringify(config));
  return path;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** The command line as a process of its own; ends with the test. */
export function launch(
  args: readonly string[],
  env: Record<string, string> = {},
  program = join(import.meta.dirname, '../../../bin/crm-mirror.mjs'),
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const seen = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => void (seen.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => void (seen.stderr += chunk.toString()));
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...seen }));
  });
  return { child, ended };
}

// A sentinel beside the runs of one mirror, by a connection of its own to the snapshot.

export const NEWS = 'ch_news';
export const PRODUCT = 'ch_product';
export const at = (name: string): string => `${name}@example.com`;

export interface Watched extends World {
  /** One look; answers what it asked of the platform, too. */
  look(watching?: Partial<Watching>, key?: string): Promise<Sighting & { asked: string[] }>;
  /** A full run on a snapshot that knows nothing, with the same ledger. */
  syncAnew(): Promise<Summary>;
  /** By cause and part, what stands in the ledger against an address. */
  against(name: string): string[];
  /** Tells whether the snapshot has the contact as unsubscribed by the person. */
  hasLeft(name: string): boolean | undefined;
}

export async function watched(options: WorldOptions = {}): Promise<Watched> {
  const world = await createWorld({ kinds: ['contact'], ...options });
  const never = new AbortController().signal;
  const connected = world.connect();
  onTestFinished(async () => connected.close());
  return {
    ...world,
    async look(watching = {}, key) {
      const before = world.server.arrived.length;
      const snapshot = world.snapshot.sibling();
      const ledger = world.memory.list();
      const mirror = { ...world.mirror(connected, key), snapshot, doNotContact: ledger };
      try {
        const sighting = await watch(mirror, { stop: never, abort: never, ...watching });
        return { ...sighting, asked: world.server.arrived.slice(before).map(asked) };
      } finally {
        snapshot.close();
      }
    },
    async syncAnew() {
      const snapshot = openSnapshot('', { inMemory: true });
      onTestFinished(() => snapshot.close());
      const mirror = { ...world.mirror(connected), snapshot };
      const rest = { only: undefined, stop: never, abort: never, progress: () => undefined };
      return run(mirror, { mode: 'full', writes: true, ...rest });
    },
    against: (name) =>
      world.ledger
        .concerning({ key: at(name), ids: [`id-${at(name)}`] })
        .map(({ cause, part }) => `${cause} ${part}`)
        .toSorted(),
    hasLeft(name) {
      const row = world.snapshot.recorded.get('contact', at(name));
      if (!row) return undefined;
      const { contacts }: { contacts: { left: boolean }[] } = JSON.parse(row.body);
      return contacts.some(({ left }) => left);
    },
  };
}

/** GET list 1×100 unsubscribed */
function asked({ method, path, route }: Arrival): string {
  const query = new URL(path, 'http://x').searchParams;
  const page = `${query.get('page')}×${query.get('limit')}`;
  const what = [page, query.get('status')].filter(Boolean).join(' ');
  return route === 'contacts.list' ? `list ${what}` : `${method} ${route}`;
}

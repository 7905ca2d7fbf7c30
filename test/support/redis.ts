/**
 * A real Redis for tests, found or fetched without a manual step. In this order: the one that
 * TEST_REDIS_URL names; valkey-server or redis-server on PATH; Debian's package, unpacked into a
 * folder beside the temporary ones and kept there; as root, that package installed.
 */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeEach } from 'vitest';
import { freePort } from './waiting.ts';
import {
  exists,
  findProgram,
  launch,
  run,
  unpacked,
  untilAnswers,
  type Launched,
} from './program.ts';

const PACKAGES = ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'];
const NONE =
  'no Redis for the tests: install redis-server or valkey-server, or set TEST_REDIS_URL ' +
  '(neither was found, and Debian’s package could not be fetched)';

export interface TestRedis {
  url: string;
  /** Everything in it is forgotten. */
  flush(): Promise<void>;
  /** Removes the keys of this glob, as an eviction does. */
  remove(keys: string): Promise<void>;
  /** Has it drop keys by this policy when its memory is full. */
  evictBy(policy: string): Promise<void>;
  /** Has it refuse whatever needs memory, because it has none left. */
  fill(): Promise<void>;
  /** Gives it memory again. */
  empty(): Promise<void>;
  /** It stands still, its connections stay open. */
  pause(): void;
  resume(): void;
  /** At once, as by a crash. */
  kill(): Promise<void>;
  /** Again on the same port, empty. */
  start(): Promise<void>;
  /** How many scripts it was asked to run since it started. */
  scripts(): Promise<number>;
  close(): Promise<void>;
}

/** One of its own, on a free port; it ends with `close`, and with this process. */
export async function ownRedis(): Promise<TestRedis> {
  const program = await findServer();
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-redis-'));
  let running: Launched | undefined = await begin(program, { port, folder });
  const signal = (name: NodeJS.Signals) => running && process.kill(running.pid, name);
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };
  return {
    url,
    flush: () => asked(url, async (redis) => void (await redis.flushall())),
    remove: (keys) =>
      asked(url, async (redis) => {
        const found = await redis.keys(keys);
        if (found.length > 0) await redis.del(found);
      }),
    evictBy: (policy) =>
      asked(url, async (redis) => void (await redis.config('SET', 'maxmemory-policy', policy))),
    fill: () =>
      asked(url, async (redis) => {
        // So much that no buffer which it gives back meanwhile makes room.
        await redis.set('full', Buffer.alloc(8_000_000));
        await redis.config('SET', 'maxmemory', '2mb');
      }),
    empty: () =>
      asked(url, async (redis) => {
        await redis.config('SET', 'maxmemory', '0');
        await redis.del('full');
      }),
    pause: () => void signal('SIGSTOP'),
    resume: () => void signal('SIGCONT'),
    kill: stop,
    start: async () => void (running = await begin(program, { port, folder })),
    scripts: () => asked(url, countScripts),
    close: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** One of its own for all tests of a file, empty before each of them. */
export async function sharedRedis(): Promise<TestRedis> {
  const redis = await ownRedis();
  beforeEach(async () => redis.flush());
  afterAll(async () => redis.close());
  return redis;
}

/** The one that TEST_REDIS_URL names, else one of its own: for tests that harm nothing in it. */
export async function anyRedis(): Promise<{ url: string; close(): Promise<void> }> {
  const url = process.env['TEST_REDIS_URL'];
  return url ? { url, close: async () => undefined } : ownRedis();
}

async function asked<T>(url: string, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}

async function countScripts(redis: Redis): Promise<number> {
  const text = await redis.info('commandstats');
  const counts = [...text.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  return counts.reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** What starts it, and the environment it needs. */
interface Program {
  path: string;
  libraries?: string;
}

async function begin(
  { path, libraries }: Program,
  { port, folder }: { port: number; folder: string },
): Promise<Launched> {
  const quiet = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'];
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...quiet];
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  const launched = await launch([path, ...options], { env });
  const url = `redis://127.0.0.1:${port}`;
  await untilAnswers(path, () => answers(url));
  return launched;
}

async function answers(url: string): Promise<boolean> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return (await redis.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

async function findServer(): Promise<Program> {
  const found = (await onPath()) ?? (await fromPackage()) ?? (await installed());
  if (!found) throw new Error(NONE);
  return found;
}

async function onPath(): Promise<Program | undefined> {
  const path = await findProgram(['valkey-server', 'redis-server']);
  return path === undefined ? undefined : { path };
}

/** In redis-tools, the server goes by another name: it looks at the one it is started under. */
async function fromPackage(): Promise<Program | undefined> {
  const root = await unpacked('redis', { packages: PACKAGES, has: 'usr/bin/redis-check-rdb' });
  if (root === undefined) return undefined;
  const path = join(root, 'usr/bin/redis-server');
  // Another process may have been faster.
  await symlink('redis-check-rdb', path).catch(() => undefined);
  const libraries = join(root, 'usr/lib', `${triplets[process.arch] ?? process.arch}-linux-gnu`);
  return (await exists(path)) ? { path, libraries } : undefined;
}

const triplets: Record<string, string> = { x64: 'x86_64', arm64: 'aarch64' };

async function installed(): Promise<Program | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  try {
    await run('apt-get', ['update']);
    await run('apt-get', ['install', '-y', 'redis-server']);
  } catch {
    return undefined;
  }
  return onPath();
}

/**
 * `npm run bench failures [name …]`: one worker serves three mirrors with five receivers, a real
 * Redis and a platform in this process. Failures are made one after the other, and mended. Prints
 * for each failure after how many seconds each place said it, and that it was over, and how many
 * messages each receiver got.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { freePort } from '../test/support/waiting.ts';
import { ownRedis } from '../test/support/redis.ts';
import { program } from './stage/worker.ts';

const names = ['acme', 'beta', 'gamma'] as const;
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-failures-'));
const disk = join(folder, 'disk');
mkdirSync(disk);
const hasDisk = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk]).status === 0;
const redis = await ownRedis();

/** The platform: an emulator behind a gate that closes, refuses keys, or lies about the time. */
const emulatorPort = await freePort();
const emulator = spawn(
  process.execPath,
  [program, 'emulator', '--port', String(emulatorPort), '--key', 'key_live', '--json'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
await once(emulator.stdout, 'data');
const gate = { refusesKey: false, aheadMs: 0, port: await freePort() };
async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (gate.refusesKey) {
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"Unauthorized"}');
    return;
  }
  const { method = 'GET', url = '/', headers } = request;
  const body = method === 'GET' ? undefined : await text(request);
  const answer = await fetch(`http://127.0.0.1:${emulatorPort}${url}`, {
    method,
    headers: {
      'x-api-key': String(headers['x-api-key']),
      'content-type': headers['content-type'] ?? 'application/json',
    },
    ...(body !== undefined && { body }),
  });
  const type = answer.headers.get('content-type') ?? 'application/json';
  response.writeHead(answer.status, {
    'content-type': type,
    date: new Date(Date.now() + gate.aheadMs).toUTCString(),
  });
  response.end(await answer.text());
}
const open = async () => {
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(gate.port, '127.0.0.1');
  await once(server, 'listening');
  return server;
};
let platform = await open();

/** The receivers, and the titles that each has got. */
const titles = new Map<string, string[]>();
const slackBody = z.object({ text: z.string() });
const receivers = createServer((request, response) => {
  const take = async (): Promise<void> => {
    const body = await text(request);
    const name = request.url ?? '';
    const { text: told } = slackBody.parse(JSON.parse(body));
    titles.set(name, [...(titles.get(name) ?? []), told.split('\n')[0] ?? '']);
    response.end('ok');
  };
  void take();
}).listen(0, '127.0.0.1');
await once(receivers, 'listening');
const address = receivers.address();
const receiverPort = typeof address === 'object' ? address?.port : 0;
const receiverNames = ['one', 'two', 'three', 'four', 'five'];

const serverPort = await freePort();
const csvOf = (name: string): string => join(folder, `${name}.csv`);
const fileOf = (name: string): string => join(folder, `${name}.yaml`);
for (const name of names) {
  writeFileSync(csvOf(name), 'id,email,news\n1,ann@example.com,yes\n2,bob@example.com,yes\n');
  writeFileSync(
    fileOf(name),
    JSON.stringify({
      mirror: name,
      snapshot: join(disk, name, 'snapshot.sqlite'),
      redis: redis.url,
      platform: { url: `http://127.0.0.1:${gate.port}`, apiKey: 'key_live', reserve: 0 },
      contacts: {
        source: { type: 'csv', path: csvOf(name) },
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'news' }],
      },
      schedule: { full: '0 3 * * *', fast: '* * * * *', sentinel: '*/30 * * * * *' },
      notices: {
        to: receiverNames.map((one) => ({
          name: one,
          slack: { url: `http://127.0.0.1:${receiverPort}/${one}` },
        })),
      },
      server: { host: '127.0.0.1', port: serverPort },
    }),
  );
}

const call = async (...argv: string[]): Promise<string> => {
  const child = spawn(process.execPath, [program, ...argv], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const out = await text(child.stdout);
  return out;
};
for (const name of names) {
  await pause(1_500);
  await call('sync', '--quiet', '-c', fileOf(name));
}

async function begin(): Promise<ChildProcess> {
  const files = names.flatMap((name) => ['-c', fileOf(name)]);
  const child = spawn(process.execPath, [program, 'worker', ...files], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  while (said.split('worker serves').length < 4) {
    if (child.exitCode !== null) throw new Error(said);
    await pause(100);
  }
  return child;
}
let worker = await begin();

const page = async (path: string): Promise<string> => {
  try {
    const answer = await fetch(`http://127.0.0.1:${serverPort}${path}`, {
      signal: AbortSignal.timeout(3_000),
    });
    return await answer.text();
  } catch {
    return '';
  }
};
const statusSchema = z.object({ attention: z.array(z.object({ code: z.string() })) });
const readySchema = z.object({ failing: z.array(z.object({ code: z.string() })) });

/** A place that shows the health of the mirrors: whether it says the code. */
type Place = (failure: Failure) => Promise<boolean>;

const places: Readonly<Record<string, Place>> = {
  status: async ({ code }) => {
    const out = await call('status', '--json', '-c', fileOf('acme'));
    return statusSchema.parse(JSON.parse(out)).attention.some((one) => one.code === code);
  },
  console: async ({ words }) => (await page('/m/acme')).includes(words),
  'all mirrors': async ({ words }) => (await page('/')).includes(words),
  '/readyz': async ({ code }) => {
    const answer = await page('/readyz');
    if (answer === '') return false;
    return readySchema.parse(JSON.parse(answer)).failing.some((one) => one.code === code);
  },
  '/metrics': async ({ code }) =>
    (await page('/metrics')).includes(`crm_mirror_attention{mirror="acme",code="${code}"}`),
};

interface Failure {
  name: string;
  code: string;
  /** What the pages say, and the ends of the titles of the two messages. */
  words: string;
  begins: string;
  ends: string;
  make(): Promise<void>;
  mend(): Promise<void>;
}

const filler = join(disk, 'filler');
const failures: Failure[] = [
  {
    name: 'platform',
    code: 'platform_away',
    words: 'the platform does not answer',
    begins: 'the platform does not answer',
    ends: 'the platform answers again',
    make: async () => {
      platform.closeAllConnections();
      platform.close();
    },
    mend: async () => void (platform = await open()),
  },
  {
    name: 'export',
    code: 'source_away',
    words: 'the contacts of the CRM cannot be read',
    begins: 'the CRM cannot be read',
    ends: 'the CRM can be read again',
    make: async () => renameSync(csvOf('acme'), `${csvOf('acme')}.away`),
    mend: async () => renameSync(`${csvOf('acme')}.away`, csvOf('acme')),
  },
  {
    name: 'redis',
    code: 'redis_away',
    words: 'no run of the schedule starts',
    begins: 'Redis does not answer',
    ends: 'Redis answers again',
    make: redis.kill,
    mend: redis.start,
  },
  {
    name: 'key',
    code: 'key_refused',
    words: 'the platform refuses the API key',
    begins: 'the platform refuses the API key',
    ends: 'the platform accepts the API key again',
    make: async () => void (gate.refusesKey = true),
    mend: async () => void (gate.refusesKey = false),
  },
  {
    name: 'disk',
    code: 'disk_full',
    words: 'the disk of the snapshot is full',
    begins: 'the disk is full',
    ends: 'the disk has space again',
    make: async () => {
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k']);
    },
    mend: async () => rmSync(filler),
  },
  {
    name: 'clock',
    code: 'clock_differs',
    words: 'behind that of the platform',
    begins: 'the clocks differ',
    ends: 'the clocks agree again',
    make: async () => void (gate.aheadMs = 3_600_000),
    mend: async () => void (gate.aheadMs = 0),
  },
  {
    name: 'worker',
    code: 'worker_dead',
    words: '',
    begins: '',
    ends: '',
    make: async () => void worker.kill('SIGKILL'),
    mend: async () => void (worker = await begin()),
  },
];

const titlesOf = (one: string): string[] => titles.get(`/${one}`) ?? [];

/** Looks each second until every place says it, or says it no more; the seconds for each place. */
async function watch(failure: Failure, isBegun: boolean, mostSeconds: number) {
  const began = performance.now();
  const seconds = new Map<string, string>();
  const own = failure.words === '' ? ['status'] : [...Object.keys(places), 'message'];
  const end = isBegun ? failure.begins : failure.ends;
  while (seconds.size < own.length && performance.now() - began < mostSeconds * 1_000) {
    for (const name of own.filter((one) => !seconds.has(one))) {
      const place = places[name];
      const isSaid = place
        ? (await place(failure)) === isBegun
        : receiverNames.every((one) => titlesOf(one).some((title) => title.endsWith(end)));
      if (isSaid) seconds.set(name, ((performance.now() - began) / 1_000).toFixed(0));
    }
    await pause(500);
  }
  return own.map((name) => `${name} ${seconds.get(name) ?? 'NEVER'}`).join(' · ');
}

const asked = process.argv.slice(2);
try {
  await pause(12_000);
  for (const failure of failures) {
    const { name, make, mend } = failure;
    if ((asked.length > 0 && !asked.includes(name)) || (name === 'disk' && !hasDisk)) continue;
    titles.clear();
    await make();
    console.log(`${name}: said after s: ${await watch(failure, true, 75)}`);
    await mend();
    console.log(`${name}: over after s: ${await watch(failure, false, 150)}`);
    await pause(20_000);
    for (const one of receiverNames.slice(0, 1))
      console.log(`  ${one}: ${titlesOf(one).join(' | ')}`);
    const counts = receiverNames.map((one) => titlesOf(one).length);
    console.log(`  messages of the receivers: ${counts.join(', ')}`);
  }
} finally {
  worker.kill('SIGTERM');
  emulator.kill();
  platform.closeAllConnections();
  platform.close();
  receivers.close();
  await once(worker, 'exit').catch(() => undefined);
  await redis.close();
  if (hasDisk) spawnSync('umount', ['-l', disk]);
  rmSync(folder, { recursive: true, force: true });
}

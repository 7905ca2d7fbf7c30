/**
 * Whether the emulator could be a bottleneck: its requests per second beside those of a bare
 * fastify route that answers the same bytes, in one run:
 * `node bench/emulator.ts [seconds] [data file]`.
 * The client lives in a thread of its own, so that it costs neither of them anything.
 */
import { once } from 'node:events';
import { Agent, request as ask } from 'node:http';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import Fastify from 'fastify';
import { createEmulator } from '../src/emulator/emulator.ts';
import { seeded } from '../src/emulator/shared/seeded-random.ts';
import { serve } from '../src/emulator/http-listener.ts';
import { openFile } from '../src/emulator/store/sqlite-file.ts';

interface Task {
  url: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  seconds: number;
}

const CONNECTIONS = 16;

if (isMainThread) await compare();
else process.stdout.write(`${await load(workerData as Task)}\n`);

async function compare(): Promise<void> {
  const seconds = Number(process.argv[2] ?? 2);
  const data = process.argv[3];
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    channels: [{ id: 'ch_news', name: 'Newsletter' }],
    limits: ['*=999999999/1'],
    storage: data === undefined ? undefined : openFile(data),
  });
  for (let index = 0; index < 10_000; index += 1) {
    const channels = { ch_news: 'opt_in' } as const;
    emulator.seed.contact({ id: `con_${index}`, email: `person${index}@example.com`, channels });
  }
  const headers = { 'x-api-key': emulator.apiKey };
  const body = JSON.stringify({ contact_id: 'con_1', subscription: 'opt_in' });
  const tasks = [
    { method: 'GET', path: '/api/contacts/retrieve/con_1', headers, body: '' },
    { method: 'GET', path: '/api/contacts/list?limit=100&page=5', headers, body: '' },
    { method: 'POST', path: '/api/contacts/channel/ch_news', headers, body },
    { method: 'POST', path: '/api/template/v1/create', headers, body: '{"name":"Welcome"}' },
  ];
  const served = await serve(emulator, 0);
  for (const task of tasks) {
    const { status, headers: same, body: bytes } = emulator.handle(task);
    const bare = Fastify();
    bare.all('/*', (_request, reply) => reply.code(status).headers(same).send(bytes));
    const bareUrl = await bare.listen({ port: 0, host: '127.0.0.1' });
    const rates = { bare: 0, emulator: 0 };
    // By turns, so that neither has the quieter machine.
    for (let turn = 0; turn < 3; turn += 1) {
      rates.bare = Math.max(rates.bare, await measure({ ...task, url: bareUrl, seconds }));
      const own = await measure({ ...task, url: served.url, seconds });
      rates.emulator = Math.max(rates.emulator, own);
    }
    await bare.close();
    console.log(
      `${task.method} ${task.path} (${status}, ${bytes.length} bytes): ` +
        `emulator ${rates.emulator}/s, bare fastify ${rates.bare}/s, ` +
        `ratio ${(rates.emulator / rates.bare).toFixed(2)}`,
    );
  }
  await served.close();
  emulator.close();
}

async function measure(task: Task): Promise<number> {
  const worker = new Worker(import.meta.filename, { workerData: task, stdout: true });
  const [rate] = await once(worker.stdout.setEncoding('utf8'), 'data');
  await once(worker, 'exit');
  return Number(rate);
}

/** Requests per second over connections that are kept alive, after a while to warm up. */
async function load(task: Task): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const seen = { done: 0, ended: false };
  const keepAsking = async () => {
    while (!seen.ended) {
      await exchange(task, agent);
      seen.done += 1;
    }
  };
  const all = Array.from({ length: CONNECTIONS }, keepAsking);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [before, since] = [seen.done, performance.now()];
  await new Promise((resolve) => setTimeout(resolve, task.seconds * 1000));
  const rate = ((seen.done - before) / (performance.now() - since)) * 1000;
  seen.ended = true;
  await Promise.all(all);
  agent.destroy();
  return Math.round(rate);
}

function exchange({ url, method, path, headers, body }: Task, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    const sent = { ...headers, ...(body !== '' && length) };
    const asked = ask(url + path, { method, headers: sent, agent }, (response) => {
      response.resume().on('end', resolve).on('error', reject);
    });
    asked.on('error', reject).end(body);
  });
}

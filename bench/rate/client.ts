/** A process that sends requests as one client does, or as a program that knows nothing of us. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { createSend } from '../../src/http/send-request.ts';
import type { Answer } from '../../src/domain/exchange.ts';
import { given } from '../stage/child.ts';
import { clients, type Told } from './clients.ts';

export interface ClientTask extends Told {
  /** Of clients.ts; undefined: sends evenly, whatever is answered, until it is ended. */
  client: string | undefined;
  requests: number;
}

/** Times are milliseconds since the epoch. */
export interface ClientDone {
  beganMs: number;
  endedMs: number;
  /** Round trips of all that was sent, 429s included, in milliseconds. */
  tripsMs: number[];
  refused: number;
  /** What the headers said was left, in the order of the answers. */
  left: number[];
}

const task: ClientTask = JSON.parse(given());
const { send } = createSend({ url: task.url, timeoutMs: 10_000, userAgent: 'bench' });
const seen: ClientDone = { beganMs: 0, endedMs: 0, tripsMs: [], refused: 0, left: [] };
const now = (): number => performance.timeOrigin + performance.now();

process.send?.('ready');
await once(process, 'message');
seen.beganMs = now();
if (task.client === undefined) await sendEvenly();
else {
  const through = clients[task.client]?.(task);
  await Promise.all(Array.from({ length: task.requests }, async () => through?.(attempt)));
}
seen.endedMs = now();
process.send?.(seen);

async function attempt(): Promise<Answer> {
  const headers = { 'x-api-key': 'key_bench' };
  const sentMs = performance.now();
  const answer = await send({ method: 'GET', path: '/api/contacts/retrieve/con_1', headers });
  seen.tripsMs.push(performance.now() - sentMs);
  seen.refused += answer.status === 429 ? 1 : 0;
  seen.left.push(Number(answer.headers['x-ratelimit-remaining']));
  return answer;
}

async function sendEvenly(): Promise<void> {
  const { requests, windowSeconds } = task.limit;
  for (let nth = 1; ; nth += 1) {
    const dueMs = seen.beganMs + (nth * windowSeconds * 1000) / requests;
    await pause(Math.max(0, dueMs - now()));
    void attempt();
  }
}

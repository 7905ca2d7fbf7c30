/** A process that is to end ends, however Redis is, and what it worked on is finished first. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { openEventQueue } from '../../src/compose/queues/event-queue.ts';
import { sharedRedis } from '../support/redis.ts';
import { connectTo } from '../support/worker/connections.ts';

const redis = await sharedRedis();

test.each([
  ['there', async () => undefined, async () => undefined],
  ['lost before', async () => redis.kill(), async () => redis.start()],
  ['lost meanwhile', async () => void pause(200).then(redis.kill), async () => redis.start()],
  ['hanging', async () => redis.pause(), async () => redis.resume()],
])('a job is released on Redis %s', async (_, harm, mend) => {
  const connections = connectTo(redis.url);
  const queue = openEventQueue({ mirror: 'acme', clock: systemClock, connections });
  const taker = fileURLToPath(new URL('../support/worker/job-taker.ts', import.meta.url));
  const child = spawn(process.execPath, [taker, redis.url, 'acme'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  // Also when the test is out of time.
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await mend();
    await queue.close();
  });
  await queue.add(['a']);
  await once(child.stdout, 'data');
  await harm();
  // It ends while Redis is still away.
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

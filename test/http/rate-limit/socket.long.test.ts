/** The whole way, in real time: gate, HTTP client, sockets, and the emulator's own server. */
import { afterAll, describe, expect, test } from 'vitest';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { CEILING } from '../../../src/http/rate-limit/route-budget.ts';
import { createSend } from '../../../src/http/send-request.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { countLate } from '../../support/rate-limit/limit-scenario.ts';

const REQUESTS = 450;
const KEY = 'key_live_test';
const closing: (() => Promise<unknown>)[] = [];

afterAll(async () => {
  for (const close of closing) await close();
});

async function platform(algorithm: string): Promise<string> {
  // Windows since the epoch lie alike in each run.
  const offsetMs = 1000 - (systemClock.now() % 1000) + 300;
  const clock = { ...systemClock, now: () => systemClock.now() + offsetMs };
  const limits = ['*=100/1'];
  const emulator = createEmulator({
    clock,
    random: seeded(1),
    apiKey: KEY,
    channels: [],
    limits,
    algorithm,
  });
  const { url, close } = await serve(emulator, 0);
  closing.push(close);
  return url;
}

describe.concurrent('450 requests at 100 per second', () => {
  test.for(algorithms)('$name: all are answered, and hardly one refused', async ({ name }) => {
    const timeoutMs = 20_000;
    const made = createSend({ url: await platform(name), timeoutMs, userAgent: 'crm-mirror' });
    closing.unshift(made.close);
    const gate = createGate({ clock: systemClock, random: seeded(1) });
    const request = {
      method: 'GET' as const,
      path: '/api/contacts/list',
      headers: { 'x-api-key': KEY },
    };
    const late = countLate(REQUESTS);
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, () =>
        gate.through('list', (signal) => made.send(request, signal)),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
    const { total, rateLimited } = gate.counts();
    expect(total).toBe(REQUESTS + rateLimited);
    // Nobody can know of a sliding counter before it has refused to give back a window at once:
    // then all requests in flight are refused. How many those are is tested in virtual time.
    const most = name === 'sliding-counter' ? CEILING : total * 0.01;
    expect(rateLimited).toBeLessThanOrEqual(most + late());
    expect(gate.limits()['list']).toMatchObject({ limit: 100, windowMs: 1000 });
  });
});

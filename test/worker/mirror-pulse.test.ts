/** What a worker notices between runs, without a request to the platform or to the CRM. */
import { existsSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { readHealth, recordOutages } from '../../src/store/health-file.ts';
import { createProbe, pulse } from '../../src/worker/mirror-pulse.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { freePort, untilHolds } from '../support/waiting.ts';

/** A pulse whose seconds pass at once. */
async function beating(platformUrl?: string) {
  const world = await mirrored();
  await world.call('sync');
  const read = loadConfig(world.file, {});
  const { platform } = read;
  const config = { ...read, platform: { ...platform, url: platformUrl ?? platform.url } };
  const away: { why: string | undefined } = { why: undefined };
  const place = { isHere: true };
  const began = performance.now();
  // A second passes for each millisecond.
  const fast = () => (performance.now() - began) * 1_000;
  const clock = {
    now: () => Math.round(Date.now() + fast()),
    monotonic: fast,
    sleep: async (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 1_000, signal),
  };
  const outages = recordOutages(config.snapshot, clock.now);
  const stop = new AbortController();
  const ended = pulse(
    {
      config,
      outages,
      clock,
      probe: createProbe(clock),
      isHere: () => place.isHere,
      away: () => away.why,
      lookForOverdue: () => undefined,
    },
    stop.signal,
  );
  onTestFinished(async () => {
    stop.abort();
    await ended;
  });
  const parts = () => outages.outages().map(({ part }) => part);
  return { config, away, place, parts };
}

test('notices a missing export, and that it is there again', async () => {
  const { config, parts } = await beating();
  const { contacts } = config;
  if (!contacts || !('path' in contacts.source)) throw new Error('the world has a file');
  const { path } = contacts.source;
  renameSync(path, `${path}.away`);
  await untilHolds(() => expect(parts()).toEqual(['contacts']));
  renameSync(`${path}.away`, path);
  await untilHolds(() => expect(parts()).toEqual([]));
});

test('notices that the platform and Redis are away, and that they are back', async () => {
  const port = await freePort();
  const { away, parts } = await beating(`http://127.0.0.1:${port}`);
  away.why = 'it closed the connection';
  await untilHolds(() => expect(parts()).toEqual(['redis', 'platform']));
  away.why = undefined;
  await untilHolds(() => expect(parts()).toEqual(['platform']));
  const server = createServer().listen(port, '127.0.0.1');
  onTestFinished(() => void server.close());
  await untilHolds(() => expect(parts()).toEqual([]));
});

test('beats only while its worker has the mirror', async () => {
  const { config, place } = await beating();
  await untilHolds(() => expect(readHealth(config.snapshot).worker).not.toBeNull());
  place.isHere = false;
  await systemClock.sleep(100);
  const { worker } = readHealth(config.snapshot);
  await systemClock.sleep(100);
  expect(readHealth(config.snapshot).worker).toEqual(worker);
  expect(existsSync(`${config.snapshot}-health`)).toBe(true);
});

test('a probe knows which hosts take connections, and asks nothing of other addresses', async () => {
  const probe = createProbe(systemClock);
  const free = await freePort();
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((done) => server.once('listening', done));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  expect(await probe(`http://127.0.0.1:${port}/list?limit=1`)).toBeUndefined();
  expect(await probe(`postgres://crm@127.0.0.1:${port}/crm`)).toBeUndefined();
  expect(await probe(`https://127.0.0.1:${free}`)).toContain(`127.0.0.1:${free} cannot be reached`);
  expect(await probe('sqlite:/nowhere/crm.sqlite')).toBeUndefined();
  expect(await probe('no address')).toBeUndefined();
});

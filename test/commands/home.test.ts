/** Where a worker keeps a mirror: what is done in it, and when it is open. */
import { sealErasure } from '../../src/worker/mirror-host.ts';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { sealIn } from '../../src/compose/queues/payload-encryption.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { ann, hubspotMirror } from '../support/commands/mirrored-contacts.ts';
import { hostOf } from '../support/worker/mirror-host.ts';
import { createWorld } from '../support/engine/engine-world.ts';

async function homeOf(
  claim: () => Promise<void>,
  keep: () => Promise<boolean>,
  lines: { url?: string; timeoutMs?: number } = {},
  file?: string,
) {
  let doubts = 0;
  const doubt = Promise.withResolvers<void>();
  const node = { doubts: () => doubts, doubted: async () => doubt.promise };
  const at = file ?? (await createWorld({ kinds: ['contact'] })).config(lines);
  const stop = new AbortController();
  const said: string[] = [];
  const note = (line: string) => void said.push(line);
  const lock = { check: async () => undefined, claim, keep };
  return {
    stop,
    said,
    /** Has the lock checked. */
    doubt(): void {
      doubts += 1;
      doubt.resolve();
    },
    home: hostOf(at, { lock, node, note, stop }),
  };
}

test('does nothing before it knows which account the mirror belongs to', async () => {
  const asked = Promise.withResolvers<void>();
  const { home } = await homeOf(
    () => asked.promise,
    async () => true,
  );
  const taken = home.claim();
  expect(await home.record('1', 'changed', '')).toBe('elsewhere');
  let isDone = false;
  const held = home.hold('beside', async () => (isDone = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isDone).toBe(false);
  asked.resolve();
  await Promise.all([taken, held]);
  expect(isDone).toBe(true);
  await home.close();
});

test('stops a command that it was handed when it loses the mirror', async () => {
  let isKept = true;
  const { home, stop, doubt } = await homeOf(
    async () => undefined,
    async () => isKept,
  );
  await home.claim();
  const staying = home.stay();
  const held = home.hold('alone', async (_, stopped) => {
    isKept = false;
    doubt();
    await new Promise((resolve) => stopped.addEventListener('abort', resolve));
    return stop.signal.aborted;
  });
  expect(await held).toBe(false);
  await staying;
  await home.close();
});

test('keeps the current run when a look for unsubscribes fails', async () => {
  const { home, said } = await homeOf(
    async () => undefined,
    async () => true,
    { url: 'http://127.0.0.1:9', timeoutMs: 200 },
  );
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const held = home.hold('alone', async ({ mirror }) => {
    begun.resolve();
    await go.promise;
    return mirror.snapshot.meta.get('mine');
  });
  await begun.promise;
  await home.run('sentinel', 0);
  expect(said).not.toEqual([]);
  go.resolve();
  expect(await held).toBeUndefined();
  await home.close();
});

test('carries out, by the same order, an erasure that failed before', async () => {
  const world = await hubspotMirror({ policy: { absent: 'keep', deletes: 'off' } });
  const { hubspot, file, server, shown } = world;
  expect((await world.call('sync')).code).toBe(0);
  const order = sealErasure(sealIn(loadConfig(file, {}), randomBytes)!, '1', Date.now());
  hubspot.erase(1);
  const { home } = await homeOf(
    async () => undefined,
    async () => true,
    {},
    file,
  );
  await home.claim();
  const { undo } = server.fail(({ method }) => method === 'DELETE', { is: 'answer', status: 403 });
  expect(await home.record('1', 'erased', order)).toBe('again');
  expect(shown(ann)).toBeDefined();
  undo();
  expect(await home.record('1', 'erased', order)).toBe('done');
  expect(shown(ann)).toBeUndefined();
  await home.close();
});

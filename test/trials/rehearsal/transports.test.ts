/** The ways of a rehearsal to a platform. */
import { expect, test } from 'vitest';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Method, Request } from '../../../src/domain/exchange.ts';
import { onlyReads, sendInProcess } from '../../../src/trials/rehearsal/observe-original.ts';
import { virtualClock } from '../../support/waiting.ts';

const list: Request = {
  method: 'GET',
  path: '/api/contacts/list?page=1&limit=1',
  headers: { 'x-api-key': 'key' },
};

test('the way to the real platform lets a GET pass and nothing else', async () => {
  const left: Method[] = [];
  const { send, count } = onlyReads(async ({ method }) => {
    left.push(method);
    return { status: 200, headers: {}, body: '{}' };
  });
  await send(list);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const)
    await expect(send({ ...list, method })).rejects.toThrow(`this is a ${method}`);
  expect([left, count()]).toEqual([['GET'], 1]);
});

test('the way to the emulator takes virtual time, and ends as a connection does', async () => {
  const clock = virtualClock();
  const emulator = createEmulator({ clock, random: seeded(1), apiKey: 'key' });
  const send = sendInProcess(emulator.receive, clock, 50, 1000);
  expect(await clock.run(send(list))).toMatchObject({ status: 200 });
  expect(clock.monotonic()).toBe(50);
  emulator.fail(['timeout-after']);
  await expect(clock.run(send(list))).rejects.toThrow('did not answer within 1000 ms');
  expect(clock.monotonic()).toBe(1100);
  emulator.fail(['reset-after']);
  await expect(clock.run(send(list))).rejects.toThrow('cut the connection');
  const stop = new AbortController();
  const stopped = send(list, stop.signal);
  stop.abort(new Error('stop'));
  await expect(stopped).rejects.toThrow(Unavailable);
});

/** The events that wait in Redis, in a real browser. */
import { expect, test } from 'vitest';
import { openEventQueue } from '../../src/compose/queues/event-queue.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { ann, mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';
import { serve } from '../support/http/test-server.ts';
import { ownRedis } from '../support/redis.ts';

const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;

test('an event that waits is listed, and an operator has its record processed now', async () => {
  const redis = await ownRedis();
  const people = new Map(
    [ann, 'bob@example.com'].map((email, at) => [
      `/${at}`,
      { id: `${at}`, email, news: 'yes', product: '' },
    ]),
  );
  const crm = await serve(({ url = '' }, response) =>
    response.end(JSON.stringify(people.get(url) ?? [...people.values()])),
  );
  const world = await mirrored();
  world.config({
    redis: redis.url,
    schedule: { full: '0 3 * * *' },
    contacts: {
      source: { type: 'http', url: crm, one: `${crm}/{id}` },
      webhook: { format: 'standard', secret },
    },
  });
  expect((await world.call('sync')).code).toBe(0);
  people.set('/0', { id: '0', email: ann, news: 'no', product: '' });
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.goto('/m/world/events');
  await page.getByText('Every event is processed.').waitFor();
  const queue = openEventQueue({
    url: redis.url,
    mirror: 'world',
    clock: systemClock,
    notice: () => undefined,
  });
  await queue.add(['0']);
  await page.reload();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Process now' }).click();
  await page.getByRole('status').waitFor();
  expect(world.writes().at(-1)?.body).toMatchObject({ subscription: 'opt_out' });
  await redis.kill();
  await page.reload();
  await page.getByText('Redis cannot be asked').waitFor();
  expect([complaints, running.failures]).toEqual([[], []]);
  await queue.close();
  await redis.close();
});

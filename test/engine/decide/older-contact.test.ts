/** A contact that others made after the listing, and that our creation therefore finds there. */
import { expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

const lea = { id: '1', email: 'lea@example.com', ch_news: 'yes', ch_product: 'yes' };

const policy = { absent: 'opt_out', deletes: 'created' } as const;

interface Story {
  /** How long before our creation leaves. */
  ms: number;
  quirks?: readonly string[];
}

/** The person signs up elsewhere and refuses product mail; `ms` later we create the contact. */
async function older({ ms, quirks = [] }: Story): Promise<Stage> {
  let isThere = false;
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      if (request.method === 'POST' && !isThere) {
        isThere = true;
        stage.emulator.seed.contact({ email: lea.email, channels: { ch_product: 'opt_out' } });
        await stage.clock.sleep(ms);
      }
      return send(request, signal);
    };
  const stage = openStage({ wire, policy, platform: { quirks } });
  stage.people.push(lea);
  await stage.sync();
  return stage;
}

const minutes = 60_000;

test.each([[{ ms: 5 * minutes }], [{ ms: 5 * minutes, quirks: ['enrol-raw'] }]])(
  'an opt-out older than our request stays the person’s, whose contact is not deleted: %j',
  async (story) => {
    const stage = await older(story);
    expect(stage.writes().map(({ channelId }) => channelId)).toEqual(['ch_news']);
    await stage.sync();
    stage.people[0] = { ...lea, deleted: 'true' };
    await stage.sync();
    const writes = stage.writes().map(({ method, channelId }) => [method, channelId]);
    expect(writes).toEqual([['POST', 'ch_news']]);
  },
);

test('a contact as young as our creation counts as created by it', async () => {
  const stage = await older({ ms: 1_000 });
  stage.writes();
  stage.people[0] = { ...lea, deleted: 'true' };
  await stage.sync();
  expect(stage.writes().map(({ method }) => method)).toContain('DELETE');
});

test.each([
  [180, 150],
  [150, 180],
])(
  'neither of two contacts counts as ours because the other is older: %d s, %d s',
  async (...ages) => {
    let isThere = false;
    const people = ages.map((_, at) => ({ ...lea, id: `${at}`, email: `p${at}@example.com` }));
    const stage: Stage = openStage({
      wire: (send) => async (request, signal) => {
        if (request.method === 'POST' && !isThere) {
          isThere = true;
          for (const [at, { email }] of people.entries()) {
            const createdAt = stage.clock.now() - (ages[at] ?? 0) * 1000;
            stage.emulator.seed.contact({ email, createdAt, channels: { ch_product: 'opt_out' } });
          }
        }
        return send(request, signal);
      },
    });
    stage.people.push(...people);
    await stage.sync();
    await stage.sync();
    expect(stage.writes().map(({ channelId }) => channelId)).toEqual(['ch_news', 'ch_news']);
  },
);

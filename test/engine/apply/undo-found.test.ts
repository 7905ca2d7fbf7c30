/** An undo of an opt-in that the platform showed already when it was sent. */
import { expect, test } from 'vitest';
import { openStage } from '../../support/engine/engine-stage.ts';
import { createWorld } from '../../support/engine/engine-world.ts';

test('an undo leaves whom another program opted in while the run went on', async () => {
  let isDue = true;
  const stage = openStage({
    guards: { delete: { percent: 100, floor: 1000 } },
    wire: (send) => async (request, signal) => {
      if (isDue && request.path.startsWith('/api/contacts/channel/')) {
        isDue = false;
        const channels = { ch_news: 'opt_in' } as const;
        stage.emulator.seed.contact({ email: 'ann@example.com', channels });
      }
      return send(request, signal);
    },
  });
  stage.people.push({ id: '1', email: 'ann@example.com', ch_news: 'yes' });
  const { run } = await stage.sync();
  const undo = await stage.sync({ mode: 'undo', undo: { run } });
  expect(undo.contacts.applied).toMatchObject({ opt_out: 0, delete: 0 });
  const [ann] = stage.emulator.world.contacts();
  expect(ann?.channels).toMatchObject([{ id: 'ch_news', subscription: 'opt_in' }]);
});

test.each([503, 504])(
  'an undo takes back an opt-in of ours without an answer (%i)',
  async (status) => {
    const world = await createWorld({ kinds: ['contact'] });
    world.people([{ email: 'ann@example.com', news: 'yes' }]);
    const lost = { is: 'answer', status, acts: true } as const;
    world.server.fail(({ route }) => route === 'contacts.enrol', lost, 1);
    const { run } = await world.sync();
    await world.sync();
    await world.sync({ mode: 'undo', undo: { run } });
    expect(world.shown('ann@example.com')?.['ch_news']).not.toBe('opt_in');
  },
);

/** A contact that got another address on the platform is not taken for one that vanished. */
import { expect, test } from 'vitest';
import { ann, mirrored } from '../support/commands/mirrored-contacts.ts';

const anew = 'ann-new@example.org';

test.each(['left the channel', 'left all mail', 'stayed subscribed'])(
  'recreate: a person whose contact was renamed and who %s is not created again',
  async (did) => {
    const world = await mirrored({ lines: { policy: { missing: 'recreate' } } });
    await world.call('sync');
    const { dashboard, world: platform } = world.emulator;
    const id = platform.contact(ann)?.id ?? '';
    dashboard.editContact(id, { email: anew });
    if (did === 'left the channel') dashboard.leave(id, 'ch_news');
    if (did === 'left all mail') dashboard.unsubscribe(id);
    const before = world.shown(anew);
    for (const mode of [[], [], ['--fast']]) {
      const { json } = await world.call('sync', '--json', ...mode);
      expect(json.contacts.changes).toMatchObject({ create: 0, opt_in: 0 });
      expect(world.shown(ann)).toBeUndefined();
      if (mode.length === 0) expect(json.groups).toMatchObject([{ cause: 'renamed', count: 1 }]);
    }
    expect(world.shown(anew)).toEqual(before);
  },
);

test('recreate: a contact that was renamed and then deleted has vanished', async () => {
  const world = await mirrored({ lines: { policy: { missing: 'recreate' } } });
  await world.call('sync');
  const { dashboard, world: platform } = world.emulator;
  const id = platform.contact(ann)?.id ?? '';
  dashboard.editContact(id, { email: anew });
  await world.call('sync');
  dashboard.deleteContact(id);
  await world.call('sync');
  expect(world.shown(ann)?.['ch_news']).toBe('opt_in');
});

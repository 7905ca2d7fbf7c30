/** The command `problems --drift`: what differs on the platform and no run mends. */
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

interface Group {
  cause: string;
  count: number;
  examples: string[];
}

async function driftOf(world: Mirrored, ...more: string[]) {
  const { code, json } = await world.call('problems', '--drift', '--json', ...more);
  const groups: Group[] = json.groups;
  return { code, groups, of: (cause: string) => groups.find((one) => one.cause === cause) };
}

const quiet = async (options: Parameters<typeof mirrored>[0] = {}) => {
  const world = await mirrored({ kinds: ['contact', 'template'], ...options });
  world.template('welcome', { subject: 'Hi' });
  await world.call('sync');
  world.writes();
  return world;
};

describe('problems --drift', () => {
  test('finds nothing after a run, takes no lease, and writes nothing', async () => {
    const world = await quiet();
    const { code, groups } = await driftOf(world, '--exit-code');
    expect({ code, groups }).toEqual({ code: 0, groups: [] });
    expect((await world.call('problems', '--drift')).out).toContain('Nothing differs');
    expect(world.writes()).toEqual([]);
  });

  test('claims nothing about a platform that it could not read', async () => {
    const world = await quiet();
    world.server.fail(() => true, { is: 'answer', status: 401 });
    const { code, out, err } = await world.call('problems', '--drift');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('platform.apiKey');
  });

  test('counts what is not of the mirror, and what was done on the platform', async () => {
    const world = await quiet();
    const { emulator } = world;
    emulator.seed.channel({ id: 'ch_other', name: 'Other' });
    for (const name of ['x', 'y', 'z', 'w']) {
      emulator.seed.contact({ email: `${name}@example.org`, channels: { ch_other: 'opt_in' } });
    }
    emulator.seed.template({ name: 'Newsletter of May' });
    emulator.seed.contact({ email: bob });
    emulator.dashboard.leave(ann, 'ch_news');
    const { groups, of, code } = await driftOf(world, '--exit-code');
    expect(code).toBe(5);
    expect(of('foreign-contact')).toMatchObject({ count: 4 });
    expect(of('foreign-contact')?.examples).toHaveLength(3);
    expect(of('foreign-template')).toMatchObject({ count: 1, examples: ['Newsletter of May'] });
    expect(of('several-contacts')).toMatchObject({ count: 1 });
    expect(of('left-channel')).toMatchObject({ count: 1 });
    expect(of('other-channel')?.examples[0]).toMatch(/^ch_other.*: 4 subscribed$/);
    expect(groups.every(({ count }) => count > 0)).toBe(true);
    expect((await driftOf(world, '--all')).of('foreign-contact')?.examples).toHaveLength(4);
    const { out } = await world.call('problems', '--drift');
    expect(out).toContain('[left-channel]');
    expect(out).not.toContain(ann);
    expect(world.writes()).toEqual([]);
  });

  test('counts our contacts that vanished or were renamed, and templates that were edited there', async () => {
    const world = await quiet();
    const { emulator } = world;
    emulator.dashboard.deleteContact(ann);
    emulator.dashboard.editTemplate(emulator.world.templates()[0]?.id ?? '', { subject: 'Edited' });
    emulator.dashboard.editContact(bob, { email: 'robert@example.org' });
    const { of } = await driftOf(world, '--addresses');
    expect(of('renamed')).toMatchObject({ count: 1, examples: [bob] });
    expect(of('vanished')).toMatchObject({ count: 1 });
    const edited = 'was edited on the platform (subject); left as it is';
    expect(of('template-edited')).toMatchObject({
      count: 1,
      examples: ['welcome'],
      details: [{ key: 'welcome', reason: edited }],
    });
    expect((await world.call('problems', '--drift')).out).toContain(`     welcome: ${edited}\n`);
  });
});

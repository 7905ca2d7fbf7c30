/** One person, spelled in one way by the CRM and in another on the platform. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mirrored, type MirroredOptions } from '../support/commands/mirrored-contacts.ts';

/** Pairs of spellings that are one mailbox. */
const pairs = [
  ['ana@españa.example', 'ana@xn--espaa-rta.example'],
  ['jose\u0301@example.com', 'jos\u00e9@example.com'],
] as const;
const [crm] = pairs[0];

const channels = [{ id: 'ch_news', subscription: 'news' }];

async function begin(lines: MirroredOptions['lines'] = {}) {
  const world = await mirrored();
  world.config({ ...lines, contacts: { channels, ...lines?.contacts } });
  const contacts = () =>
    world.emulator.world
      .contacts()
      .map(({ email, channels }) => [email, channels[0]?.subscription]);
  return { ...world, contacts };
}

describe.each(pairs)('the CRM has %s, the platform %s', (crm, platform) => {
  test('an erased person does not come back', async () => {
    const world = await begin();
    world.emulator.seed.contact({ email: platform, channels: { ch_news: 'opt_in' } });
    world.people([{ email: crm, news: 'yes' }]);
    await world.call('sync');
    expect((await world.call('forget', crm, '--yes')).code).toBe(0);
    expect(world.contacts()).toEqual([]);
    world.people([{ email: platform, news: 'yes' }]);
    await world.call('sync');
    expect(world.contacts()).toEqual([]);
    expect((await world.call('allow', platform, '--reason', 'asked')).code).toBe(0);
    await world.call('sync');
    expect(world.contacts()).toEqual([[platform.toLowerCase(), 'opt_in']]);
  });

  test('protect and --people know the person', async () => {
    const world = await begin({ contacts: { protect: [platform] } });
    world.people([{ email: crm, news: 'yes' }]);
    await world.call('sync');
    expect(world.contacts()).toEqual([]);
    world.config({ contacts: { channels } });
    const few = join(world.folder, 'few.txt');
    writeFileSync(few, platform);
    const { json } = await world.call('sync', '--json', '--people', few);
    expect(json.contacts.applied.create).toBe(1);
  });
});

test('an opt-out is reported under the spelling of the CRM', async () => {
  const world = await begin({ contacts: { returns: { type: 'csv', path: './back.csv' } } });
  world.people([{ email: crm, news: 'yes' }]);
  await world.call('sync');
  world.emulator.dashboard.leave(crm, 'ch_news');
  await world.call('sync');
  const [, line = ''] = readFileSync(join(world.folder, 'back.csv'), 'utf8').split('\n');
  expect(line.split(',').slice(1, 5)).toEqual([crm, `id-${crm}`, 'ch_news', 'opt_out']);
});

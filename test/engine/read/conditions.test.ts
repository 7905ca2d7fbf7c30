/** Conditions, from the file to the platform. */
import { expect, test } from 'vitest';
import { createWorld, launch } from '../../support/engine/engine-world.ts';

const optOut = (email: string) => ({ email, channels: { ch_news: 'opt_in' as const } });
const person = (name: string) => `${name}@example.com`;

test('a second run with the same conditions finds nothing left to do', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  world.people([
    { email: person('in'), news: 'ja', product: 'yes' },
    { email: person('mute'), news: '', product: 'yes' },
    { email: person('out'), news: 'nein', product: 'yes' },
    { email: person('lead'), news: 'ja', product: 'yes', lost: '20' },
    { email: person('lead-out'), news: 'nein', product: 'yes', lost: '20' },
    { email: person('odd'), news: 'ja', product: 'yes', lost: 'sk_secret' },
    { email: person('odd-out'), news: 'nein', product: 'yes', lost: 'sk_secret' },
  ]);
  for (const name of ['out', 'lead-out', 'odd-out'])
    world.emulator.seed.contact(optOut(person(name)));
  const contacts = {
    include: 'record.lost == "" || int(record.lost) < 10',
    channels: [
      {
        id: 'ch_news',
        subscription: { when: 'record.news == "" ? null : record.news == "ja"' },
      },
      { id: 'ch_product', subscription: 'product' },
    ],
  };
  const file = world.config({ contacts });

  const { code, stdout, stderr } = await launch(['sync', '-c', file, '--json']).ended;
  const summary = JSON.parse(stdout);
  expect({ code, stderr: stderr.includes('sk_secret') }).toEqual({ code: 4, stderr: false });
  expect(summary.contacts).toMatchObject({ invalid: 2, rejected: 0, conflicts: 0 });
  expect(stdout).not.toContain('sk_secret');
  const why = 'contacts.include cannot be evaluated with this value of "lost"';
  expect(summary.problems).toMatchObject([
    { class: 'invalid', reason: `line 7: ${why}` },
    { class: 'invalid', reason: `line 8: ${why}` },
  ]);
  const both = { ch_news: 'opt_in', ch_product: 'opt_in' };
  expect(world.shown(person('in'))).toEqual(both);
  expect(world.shown(person('mute'))).toEqual({ ch_product: 'opt_in' });
  expect(world.shown(person('out'))).toEqual({ ch_news: 'opt_out', ch_product: 'opt_in' });
  expect(world.shown(person('lead'))).toBeUndefined();
  expect(world.shown(person('lead-out'))).toEqual({ ch_news: 'opt_out' });
  expect(world.shown(person('odd'))).toBeUndefined();
  expect(world.shown(person('odd-out'))).toEqual({ ch_news: 'opt_out' });

  world.writes();
  const again = await launch(['sync', '-c', file, '--json']).ended;
  expect({ code: again.code, writes: world.writes() }).toEqual({ code: 0, writes: [] });
});

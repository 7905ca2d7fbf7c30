/** What a guard holds of an undo, and how it is approved. */
import { expect, test } from 'vitest';
import { mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const news = (world: Mirrored, who: string) => world.shown(who)?.['ch_news'];

/** A mirror whose first run has created so many people that a guard holds the undo. */
async function crowded(options: Parameters<typeof mirrored>[0] = {}) {
  const people = Array.from({ length: 30 }, (_, at) => ({
    email: `p${at}@example.com`,
    news: 'yes',
  }));
  const world = await mirrored(options);
  world.people(people);
  const run: string = (await world.call('sync', '--json')).json.run;
  return { world, people, run };
}

test('is held by the guard for deletes, until somebody approves this plan', async () => {
  const { world, run } = await crowded();
  const held = await world.call('undo', run, '--yes', '--json');
  expect({ code: held.code, held: held.json.contacts.held }).toMatchObject({
    code: 3,
    held: { delete: 30 },
  });
  expect(news(world, 'p1@example.com')).toBe('opt_in');
  expect((await world.call('sync', '--json')).code).toBe(0);
  const { plan } = held.json;
  const wrong = await world.call('sync', '--approve', plan);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining(`undo ${run} --approve`) });
  const done = await world.call('undo', run, '--approve', plan, '--json');
  expect(done.code).toBe(0);
  expect(news(world, 'p1@example.com')).toBe('opt_out');
});

test('names itself wherever what a guard holds is shown, and a full run ends no approval', async () => {
  const { world, run } = await crowded();
  const held = await world.call('undo', run, '--yes');
  const { plan } = (await world.call('undo', run, '--dry-run', '--json')).json;
  const way = `undo ${run} --approve ${plan}`;
  expect(held.code).toBe(3);
  for (const { said } of [held, await world.call('status'), await world.call('problems')]) {
    expect(said).toContain(way);

    expect(said).not.toContain('missing from the CRM');
  }
  expect((await world.call('sync')).said).not.toContain(plan);
  expect((await world.call('status')).said).toContain(way);
  const approved = await world.call('approve', plan);
  expect(approved.out).toContain(`crm-mirror undo ${run} --yes`);
  expect((await world.call('reject', plan, '--reason', 'no')).code).toBe(2);
  await world.call('sync');
  expect(news(world, 'p1@example.com')).toBe('opt_in');
  expect((await world.call('undo', run, '--yes')).code).toBe(0);
  expect(news(world, 'p1@example.com')).toBe('opt_out');
  expect((await world.call('status')).said).not.toContain(plan);
});

/** What `status` says of all mirrors of a folder, in one line each. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calling, mirrored } from '../support/commands/mirrored-contacts.ts';
import { scratch } from '../support/sources/source-reading.ts';

test('each mirror has a row, the worst first, with what to do', async () => {
  const folder = await scratch();
  for (const mirror of ['calm', 'strict'] as const) {
    const snapshot = join(folder, `${mirror}.sqlite`);
    const optIns = { percent: 0, floor: 0 };
    const guards = mirror === 'strict' ? { optIns } : {};
    const world = await mirrored({ lines: { mirror, snapshot, guards } });
    const path = join(world.folder, 'people.csv');
    const source = { type: 'csv', path };
    const file = world.config({ mirror, snapshot, guards, contacts: { source } });
    await world.call('sync');
    world.people([{ email: 'new@example.com', news: 'yes' }]);
    await world.call('sync');
    copyFileSync(file, join(folder, `${mirror}.yaml`));
  }
  const status = async (...flags: string[]) => calling(['status', '--mirrors', folder, ...flags]);
  const text = await status();
  expect(text.code).toBe(0);
  const [titles, first, fix, last] = text.out.split('\n');
  expect(titles).toMatch(/^Mirror +State +Waiting +Last proof +Cause$/);
  expect(first).toMatch(
    /^strict +Needs attention +1 +\d+ s ago +changes await approval, for \d+ s$/,
  );
  expect(fix).toContain(`crm-mirror plan -c ${join(folder, 'strict.yaml')}\``);
  expect(last).toMatch(/^calm +In sync +\d+ s ago$/);
  writeFileSync(join(folder, 'odd.yaml'), 'mirror: odd');
  const { code, json } = await status('--json');
  expect(code).toBe(1);
  expect(json).toMatchObject({
    mirrors: [
      { mirror: 'strict', state: 'attention', ok: false, cause: { code: 'held' }, waiting: 1 },
      { mirror: 'calm', state: 'well', ok: true, cause: null, waiting: 0 },
    ],
    unusable: ['odd.yaml'],
  });
  expect(await status('-c', 'mirror.yaml')).toMatchObject({ code: 2 });
});

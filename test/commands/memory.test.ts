/** A memory that is not the one its snapshot knows, at the command line: nobody is written to. */
import { copyFileSync, rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  tamper,
} from '../support/commands/mirrored-contacts.ts';

const memoryOf = ({ path }: Mirrored) => `${path}-memory`;
const nightOf = ({ folder }: Mirrored) => `${folder}/last-night`;

/** Ann and Bob are ours, and a copy of the memory was made then. */
async function copied(): Promise<Mirrored> {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  copyFileSync(memoryOf(world), nightOf(world));
  world.writes();
  return world;
}

/** Ann leaves all mail, is seen to have, and is gone from platform and snapshot. */
async function goes(world: Mirrored): Promise<void> {
  world.emulator.dashboard.unsubscribe(ann);
  await world.call('sync');
  world.emulator.dashboard.deleteContact(ann);
  tamper(world.path, `delete from recorded where key = '${ann}'`);
}

const says = /memory is older than its snapshot.*→ put the newest one back/;

describe('an older memory, put back', () => {
  const ways: [string, (world: Mirrored) => Promise<unknown>][] = [
    ['who left', goes],
    ['who was erased', (world) => world.call('forget', ann, '--yes')],
  ];

  test.each(ways)(
    '%s in between keeps the person out: the memory is refused',
    async (_, happens) => {
      const world = await copied();
      await happens(world);
      copyFileSync(memoryOf(world), `${nightOf(world)}-newest`);
      copyFileSync(nightOf(world), memoryOf(world));
      world.writes();
      for (const argv of [
        ['sync'],
        ['plan'],
        ['sync', '--person', ann],
        ['forget', bob, '--yes'],
      ]) {
        const { code, err } = await world.call(...argv);
        expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(says) });
      }
      copyFileSync(`${nightOf(world)}-newest`, memoryOf(world));
      expect((await world.call('sync')).code).toBe(0);
      expect(world.writes()).toEqual([]);
    },
  );
});

describe('a fault of the memory in `status` and `check`', () => {
  const losses: [string, (world: Mirrored) => void, RegExp][] = [
    [
      'the memory is gone',
      (world) => rmSync(memoryOf(world)),
      /memory of this snapshot is missing/,
    ],
  ];

  test.each(losses)('is reported before a run fails: %s', async (_, lose, why) => {
    const world = await copied();
    await goes(world);
    expect((await world.call('check')).out).toMatch(/^ok +memory: .* belongs to this snapshot$/m);
    lose(world);
    const { code, json } = await world.call('status', '--json');
    expect({ code, ok: json.ok }).toEqual({ code: 0, ok: false });
    expect(json.attention[0].code).toBe('ledger');
    const { out } = await world.call('status');
    expect(out).toMatch(/NEEDS ATTENTION\n {2}every run is refused: .*memory.* → /);
    expect(out).toMatch(why);
    const checked = await world.call('check');
    expect(checked).toMatchObject({
      code: 2,
      out: expect.stringMatching(/^FAIL memory: /m),
    });
    expect(checked.out).toMatch(why);
    expect((await world.call('sync')).code).toBe(2);
    const verified = await world.call('audit', 'verify');
    expect(verified).toMatchObject({ code: 1, err: expect.stringContaining('is lost') });
  });

  test('is reported where the key is left of memory and snapshot', async () => {
    const world = await copied();
    await goes(world);
    world.writes();
    for (const file of [world.path, memoryOf(world)])
      for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
    const why = /the memory is missing that .*-key was made for.*--accept-lost-ledger/;
    for (const command of ['check', 'plan', 'sync']) {
      const { code, out, err } = await world.call(command);
      expect({ command, code }).toEqual({ command, code: 2 });
      expect(out + err).toMatch(why);
    }
    expect(world.writes()).toEqual([]);
    expect((await world.call('sync', '--accept-lost-ledger')).code).toBe(0);
    expect((await world.call('sync')).code).toBe(0);
  });

  test('is not reported where no memory exists yet', async () => {
    const world = await mirrored();
    expect((await world.call('check')).out).toMatch(/^ok +memory: none yet$/m);
    expect((await world.call('status', '--json')).json.memory).toMatchObject({
      fault: null,
      auditFault: null,
    });
  });
});

/** What a forgotten person leaves elsewhere, and the certificate names. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  storedBytes,
} from '../support/commands/mirrored-contacts.ts';

const before = 'ann@before.example';
const head = 'id,email,news,product\n';

/** The CRM has given Ann another address, and both are on the platform. */
async function moved(): Promise<Mirrored> {
  const world = await mirrored();
  for (const email of [before, ann]) {
    world.csv(`${head}1,${email},yes,\n2,${bob},yes,\n`);
    expect((await world.call('sync')).code).toBe(0);
  }
  world.writes();
  return world;
}

describe('another address of the same CRM record', () => {
  test.each([
    ['a former one', ann, before],
    ['a later one', before, ann],
  ])('%s is printed with the command to run, and left alone', async (_what, key, other) => {
    const world = await moved();
    const { code, json, err } = await world.call('forget', key, '--yes', '--json');
    expect({ code, also: json.also }).toEqual({
      code: 0,
      also: [expect.stringMatching(/^#[0-9a-f]{12}$/)],
    });
    expect(err).not.toContain('@');
    expect(JSON.stringify(json)).not.toContain('@');
    expect(world.shown(key)).toBeUndefined();
    expect(world.shown(other)).toBeDefined();
    // The hash is all it takes; then nobody of that name is known any more.
    const next = await world.seen('forget', json.also[0], '--yes', '--json');
    expect(next).toMatchObject({ code: 0, json: { person: json.also[0], deleted: 1, also: [] } });
    expect(world.shown(other)).toBeUndefined();
    expect(storedBytes(world).includes(other)).toBe(false);
    expect(world.shown(bob)).toBeDefined();
  });

  test('is printed in plain at a terminal, and elsewhere with --addresses', async () => {
    const world = await moved();
    const { out } = await world.seen('forget', ann, '--yes');
    expect(out).toContain('another address');
    expect(out).toContain(`crm-mirror forget ${before} -c ${world.file}`);
    const shown = await (await moved()).call('forget', ann, '--yes', '--addresses', '--json');
    expect(shown.json.also).toEqual([before]);
  });
});

test('forget names snapshots that were set aside, because it does not purge them', async () => {
  const world = await moved();
  const aside = `${world.path}.broken-20260101T000000Z`;
  for (const end of ['', '-wal']) writeFileSync(aside + end, ann);
  const { json } = await world.call('forget', ann, '--yes', '--json');
  expect(json.copies).toEqual([aside, `${aside}-wal`]);
  const { out } = await world.call('forget', ann, '--yes');
  expect(out).toContain(`${aside} was set aside`);
  expect(out).toMatch(/backups .* restoring one/);
});

/** What the files still say of somebody who was forgotten: nothing, wherever it stood. */
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  storedBytes,
} from '../support/commands/mirrored-contacts.ts';

async function forgets(world: Mirrored, who: string): Promise<Record<string, number>> {
  expect(storedBytes(world)).toContain(who);
  const { code, json } = await world.call('forget', who, '--yes', '--json');
  expect(code).toBe(0);
  expect(storedBytes(world)).not.toContain(who);
  return json.purged;
}

describe('after forget, the files hold no address of a person', () => {
  test('missing in the CRM', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.people([{ email: bob, news: 'yes' }]);
    await world.call('sync');
    expect(await forgets(world, ann)).toMatchObject({ recorded: 1, absences: 1 });
  });

  test('with a record in the CRM that becomes invalid afterwards', async () => {
    const world = await mirrored();
    await world.call('sync');
    await forgets(world, ann);
    world.people([{ email: ann, news: 'maybe' }]);
    const { code, json } = await world.call('sync', '--json', '--addresses');
    expect({ code, json }).toMatchObject({ code: 4, json: { contacts: { invalid: 1 } } });
    expect(json.problems).toMatchObject([{ class: 'invalid' }]);
    expect(JSON.stringify(json.problems)).not.toContain(ann);
    world.csv(`id,email,news,product\nid-${ann},no address,yes,\n`);
    expect((await world.call('sync', '--json')).json.contacts.invalid).toBe(1);
    expect(storedBytes(world)).not.toContain(ann);
  });
});

/** What `plan`, `status` and `explain` say of people who are missing from the CRM. */
import { expect, test } from 'vitest';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  tamper,
} from '../support/commands/mirrored-contacts.ts';

const day = 86_400_000;

async function missing(policy: Record<string, unknown>): Promise<Mirrored> {
  const world = await mirrored({ lines: { policy } });
  await world.call('sync');
  expect((await world.call('status')).out).toMatch(/^ +missing +nobody$/m);
  world.people([{ email: bob, news: 'yes', product: 'no' }]);
  await world.call('sync');
  return world;
}

/** Moves the recorded times back, so that the person is long past due. */
function wait(world: Mirrored, ms: number): void {
  tamper(world.path, `update absence set readings = 9, age_ms = ${40 * day}, waited_ms = ${ms}`);
}

test('explain names the time when a missing person becomes due', async () => {
  const world = await missing({ deletes: 'created' });
  const { out } = await world.call('explain', ann);
  expect(out).toMatch(/not in the CRM in 1 reading, .*; due after 2 readings and 20 h/);
  expect((await world.call('status')).out).toMatch(/^ +missing +1 person, 0 for long enough$/m);
});

test('explain says when a person who is due will be deleted', async () => {
  const world = await missing({ deletes: 'created' });
  wait(world, 18 * day);
  expect((await world.call('explain', ann)).out).toMatch(/; due, deleted after 12 d more/);
  const says = '1 person, 1 for long enough; the first is deleted after 12 d more';
  expect((await world.call('status')).out).toContain(says);
  expect((await world.call('plan')).out).toContain(`missing from the CRM: ${says}`);
  const { json } = await world.call('status', '--json');
  expect(json.missing).toEqual({ people: 1, due: 1, deletedInMs: 12 * day });
});

test('explain does not mention deletion where policy deletes nobody', async () => {
  const world = await missing({});
  wait(world, 18 * day);
  expect((await world.call('explain', ann)).out).not.toMatch(
    /; due, deleted |the first is deleted/,
  );
  expect((await world.call('status', '--json')).json.missing).toMatchObject({ deletedInMs: null });
});

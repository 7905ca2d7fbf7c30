/** An address that changed in the CRM where policy deletes: the old contact is deleted instead. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { moved, NEW, OLD, sent } from '../../support/engine/sample-people.ts';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

const policy = { deletes: 'created' } as const;

const optedOut = [`opt_out ${OLD} ch_news`, `opt_out ${OLD} ch_product`];
const made = [`opt_in ${NEW} ch_news`, `opt_in ${NEW} ch_product`];
const whole = [...made, `delete ${OLD}`];

test('one run creates the new contact, then deletes the old one; the next does nothing', async () => {
  const stage = await moved({}, { policy });
  const summary = await stage.sync();
  expect(summary).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 1, opt_in: 1, opt_out: 0, delete: 1 } },
  });
  const route = stage.emulator.world.requests().map(({ method, path }) => `${method} ${path}`);
  const at = route.findIndex((line) => line.startsWith('DELETE'));
  const id = route[at]?.split('/').at(-1);
  expect(route[at - 1]).toBe(`GET /api/contacts/retrieve/${id}`);
  expect(sent(stage)).toEqual(whole);
  for (const mode of ['fast', 'full'] as const) {
    expect((await stage.sync({ mode })).contacts.conflicts).toBe(0);
    expect(sent(stage)).toEqual([]);
  }
});

/** As a run leaves it that reads only what changed. */
async function changed(): Promise<Stage> {
  const stage = openStage({ policy, tellsChanges: true });
  stage.people.push({ id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' });
  await stage.sync();
  await stage.sync({ mode: 'fast' });
  Object.assign(stage.people[0] ?? {}, { email: NEW });
  stage.changed.push('1');
  stage.writes();
  await stage.sync({ mode: 'fast' });
  expect(sent(stage)).toEqual([...made, ...optedOut]);
  return stage;
}

test('a plan shows what it would do once the new contact exists', async () => {
  const stage = await changed();
  const plan = await stage.sync({ writes: false });
  expect(plan.contacts.changes).toMatchObject({ opt_out: 0, delete: 1 });
  expect(sent(stage)).toEqual([]);
  expect((await stage.sync()).plan).toBe(plan.plan);
  expect(sent(stage)).toEqual(whole.slice(2));
});

describe('the old contact is not deleted', () => {
  test('when it has the new address on the platform too, or anything else has changed', async () => {
    const renamed = await moved({}, { policy });
    renamed.emulator.dashboard.editContact(OLD, { email: NEW });
    for (const mode of ['fast', 'full', 'full'] as const) await renamed.sync({ mode });
    expect(sent(renamed)).toEqual([]);
    const now: { renames?(): void } = {};
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        if (request.method === 'POST' && request.path.endsWith('ch_product')) now.renames?.();
        return answer;
      };
    const stage = await moved({}, { policy, wire });
    now.renames = () => {
      delete now.renames;
      stage.emulator.dashboard.editContact(OLD, { email: 'other@example.com' });
    };
    await stage.sync();
    expect(sent(stage)).toEqual(made);
  });

  test('not even opted out above the limit of a guard', async () => {
    const guards = { delete: { percent: 0, floor: 0 } };
    const stage = await moved({}, { policy, guards });
    const summary = await stage.sync();
    expect(summary).toMatchObject({ status: 'held', contacts: { held: { delete: 1 } } });
    expect(summary.contacts.changes).toMatchObject({ delete: 1 });
    expect(sent(stage)).toEqual(made);
  });
});

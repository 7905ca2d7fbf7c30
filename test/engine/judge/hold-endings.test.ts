/** What a run could not plan still waits, and what was released once is released for that only. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import {
  approve,
  canaryOf,
  exportOf,
  hour,
  minute,
  person,
  policy,
  range,
  reject,
} from '../../support/engine/change-volume.ts';

const guards = {
  opt_in: { percent: 0, floor: 3 },
  opt_out: { percent: 10, floor: 3, holdForMs: 72 * hour },
};

/** Twenty people of ours, all of them subscribed. */
async function subscribed(options: StageOptions = {}): Promise<Stage> {
  const stage = openStage({ guards, ...options });
  stage.people.push(...range(0, 20));
  await stage.sync();
  stage.writes();
  return stage;
}

/** The first `many` want another channel, too; more about the first three. */
const wishing = (many: number, more: Record<string, unknown> = {}) =>
  range(0, 20).map((one, at) => ({
    ...one,
    ...(at < many && { ch_product: 'yes' }),
    ...(at < 3 && more),
  }));

/** A platform that can be told to leave the outcome of every change open. */
function vague() {
  const state = { isVague: false };
  const wire =
    (send: Send): Send =>
    async (request, signal) =>
      state.isVague && !request.path.includes('/contacts/list')
        ? { status: 502, headers: {}, body: '' }
        : send(request, signal);
  return { state, wire };
}

describe.each(['waits', 'rejected'] as const)('what a full run could not plan: %s', (is) => {
  async function waiting(options: StageOptions = {}): Promise<Stage> {
    const stage = await subscribed(options);
    exportOf(stage, wishing(10));
    const { plan, contacts } = await stage.sync();
    expect(contacts.held.opt_in).toBe(10);
    if (is === 'rejected') reject(stage, plan);
    return stage;
  }

  test('is still so once the records can be read again', async () => {
    const stage = await waiting();
    exportOf(stage, wishing(10, { ch_product: 'perhaps' }));
    await stage.sync();
    exportOf(stage, wishing(3));
    await stage.sync();
    expect(stage.writes()).toEqual([]);
  });

  test('is still so once the outcome of another change is known', async () => {
    const { state, wire } = vague();
    const stage = await waiting({ wire });
    exportOf(stage, [{ ...person(0, { ch_product: 'yes' }), ch_news: 'no' }, ...range(1, 20)]);
    state.isVague = true;
    for (let run = 0; run < 2; run += 1) expect((await stage.sync()).status).toBe('failed');
    state.isVague = false;
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_in: 0, opt_out: 1 });
  });

  test('is still so once an opt-out of the person is not held any more', async () => {
    const stage = await waiting();
    const out = range(10, 14).map((one) => ({ ...one, ch_news: 'no' }));
    exportOf(stage, [...wishing(10, { ch_news: 'no' }).slice(0, 10), ...out, ...range(14, 20)]);
    expect((await stage.sync()).contacts.held.opt_out).toBe(7);
    exportOf(stage, wishing(3));
    await stage.sync();
    expect(stage.writes()).toEqual([]);
  });
});

test('an approval of opt-ins does not cover that the CRM has stated opt-outs since', async () => {
  const stage = await subscribed();
  exportOf(stage, range(0, 30));
  const { plan } = await stage.sync();
  approve(stage, plan);
  exportOf(stage, [...range(0, 20), ...range(20, 30).map((one) => ({ ...one, ch_news: 'no' }))]);
  await stage.sync({ mode: 'fast' });
  exportOf(stage, range(0, 30));
  const again = await stage.sync({ mode: 'fast' });
  expect(again).toMatchObject({ status: 'held', contacts: { held: { opt_in: 10 } } });
  expect(stage.writes()).toEqual([]);
  approve(stage, again.plan);
  expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ create: 10 });
});

describe('opt-outs that were released and not sent', () => {
  const allOut = range(0, 20).map((one) => ({ ...one, ch_news: 'no' }));

  /** They are approved, and the process dies with the first of them. */
  async function interrupted(): Promise<Stage> {
    const dying = { isOn: false };
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        if (dying.isOn && request.method !== 'GET') throw new Error('killed');
        return send(request, signal);
      };
    const stage = await subscribed({ wire });
    exportOf(stage, allOut);
    const { plan } = await stage.sync();
    approve(stage, plan);
    dying.isOn = true;
    await expect(stage.sync()).rejects.toThrow('killed');
    dying.isOn = false;
    return stage;
  }

  test('are sent by the next run if the CRM still states them', async () => {
    const stage = await interrupted();
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 20 });
  });

  test('are judged anew if the CRM has stated something else meanwhile', async () => {
    const stage = await interrupted();
    exportOf(stage, range(0, 20));
    expect((await stage.sync()).status).toBe('done');
    await stage.clock.advance(240 * hour);
    exportOf(stage, allOut);
    expect((await stage.sync()).contacts.held.opt_out).toBe(20);
    expect(stage.writes()).toEqual([]);
  });
});

test('a failed canary is approved by nothing less than all that was shown', async () => {
  const many = { percent: 100, floor: 1000 };
  const options: StageOptions = {
    policy: { absent: 'opt_out' },
    guards: { delete: many, opt_in: many },
    absence: { absentReadings: 1, absentForMs: 0 },
  };
  const stage = openStage(options);
  stage.people.push(...range(0, 20));
  await stage.sync();
  await stage.sync();
  Object.assign(options, { canary: policy, manner: 'new' });
  exportOf(stage, range(0, 8));
  expect((await stage.sync()).contacts.applied['opt_out']).toBe(5);
  // Those of the slice are opted in again.
  for (const { email, channels } of stage.emulator.world.contacts()) {
    if (channels.some(({ subscription }) => subscription === 'opt_out'))
      stage.emulator.dashboard.signUp({ email, channels: ['ch_news'] });
  }
  await stage.clock.advance(31 * minute);
  exportOf(stage, [{ ...person(0), email: 'moved@example.com' }, ...range(1, 8)]);
  await stage.sync();
  const { plan } = await stage.sync();
  expect(canaryOf(stage, 'delete')).toMatchObject({ state: 'failed' });
  const people = { file: 'f', entries: [{ line: 1, word: person(0).email }] };
  approve(stage, plan, { people });
  // A fast run opts out nobody for absence, so that it plans only what is approved.
  expect((await stage.sync({ mode: 'fast' })).contacts.applied['opt_out']).toBe(1);
  stage.writes();
  exportOf(stage, [{ ...person(0), email: 'moved@example.com' }, ...range(1, 5)]);
  expect((await stage.sync()).contacts.held.delete).toBeGreaterThan(12);
  expect(stage.writes()).toEqual([]);
});

/** What outlasts a run: what it held, what was approved of that, and the first load. */
import { describe, expect, test, vi } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import type { Progress } from '../../../src/engine/context/mirror-context.ts';
import { changesOf, type Forecast } from '../../../src/engine/report/duration-forecast.ts';
import {
  approve,
  deletes,
  exportOf,
  flag,
  hour,
  leave,
  mirrored,
  person,
  range,
  staged,
} from '../../support/engine/change-volume.ts';

describe('a change held by a full run stays held', () => {
  test('when its people are synced one by one', async () => {
    const stage = await mirrored();
    stage.people.push(...range(20, 24));
    const { plan } = await stage.sync();
    for (const { email } of range(20, 24)) {
      expect(await stage.sync({ mode: { single: email }, only: 'contacts' })).toMatchObject({
        status: 'held',
        contacts: { held: { opt_in: 1 }, applied: { create: 0 } },
        problems: [{ class: 'held', reason: expect.stringContaining('since an earlier run') }],
      });
    }
    expect(stage.writes()).toEqual([]);
    stage.people.push(person(30));
    const other = await stage.sync({ mode: { single: person(30).email }, only: 'contacts' });
    expect(other.contacts.applied).toMatchObject({ create: 1 });
    approve(stage, plan);
    const one = await stage.sync({ mode: { single: person(20).email }, only: 'contacts' });
    expect(one).toMatchObject({ status: 'done', contacts: { applied: { create: 1 } } });
  });
});

/** A platform whose list counts one contact more than it shows, while `phantoms` is 1. */
function counting(phantoms: { count: number }) {
  return (send: Send): Send =>
    async (request, signal) => {
      const answer = await send(request, signal);
      const isList = request.path.includes('/contacts/list') && !request.path.includes('search=');
      if (phantoms.count === 0 || !isList) return answer;
      const body = JSON.parse(answer.body);
      return { ...answer, body: JSON.stringify({ ...body, total: body.total + phantoms.count }) };
    };
}

describe('an incomplete full run ends no approval and drops no held change', () => {
  test('when the platform cannot be listed completely', async () => {
    const phantoms = { count: 0 };
    const stage = await mirrored({ wire: counting(phantoms) });
    exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
    const { plan } = await stage.sync();
    approve(stage, plan);
    phantoms.count = 1;
    expect((await stage.sync()).certificate.platform).toBe(false);
    expect(stage.snapshot.holds.approvals(0)).toMatchObject([{ id: plan }]);
    expect(stage.snapshot.holds.current()).toMatchObject([{ plan }]);
    phantoms.count = 0;
    expect((await stage.sync()).contacts.applied).toMatchObject({ delete: 4 });
    expect(stage.snapshot.holds.approvals(0)).toEqual([]);
    expect(stage.snapshot.holds.current()).toEqual([]);
  });

  test.each(['the first listing', 'the first delete'])(
    'when the export is written anew at %s',
    async (what) => {
      let anew: (() => void) | undefined;
      const wire =
        (send: Send): Send =>
        async (request, signal) => {
          const is = request.method === 'DELETE' ? 'the first delete' : 'the first listing';
          if (is === what) anew?.();
          return send(request, signal);
        };
      const stage = await mirrored({ wire });
      await leave(stage, range(8, 20));
      const { plan } = await stage.sync();
      approve(stage, plan);
      anew = () => {
        Object.assign(stage.certificate, { reading: 'anew' });
        anew = undefined;
      };
      expect((await stage.sync()).contacts.applied['delete']).toBeLessThan(8);
      expect(stage.snapshot.holds.approvals(0)).toMatchObject([{ id: plan }]);
      await stage.sync();
      expect(deletes(stage)).toBe(8);
      expect(stage.snapshot.holds.approvals(0)).toEqual([]);
    },
  );

  test('when it is a first load', async () => {
    const stage = await mirrored();
    exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
    const { plan } = await stage.sync();
    approve(stage, plan);
    await stage.sync({ firstLoad: true });
    expect(stage.snapshot.holds.current()).toMatchObject([{ plan }]);
    expect((await stage.sync()).contacts.applied).toMatchObject({ delete: 4 });
    expect(deletes(stage)).toBe(4);
  });

  test.each(['full', 'fast'] as const)('when the CRM was not read completely: %s', async (mode) => {
    const stage = await mirrored();
    stage.people.push(...range(20, 24));
    const { plan } = await stage.sync({ mode });
    const whole = { ...stage.certificate };
    Object.assign(stage.certificate, { complete: false, why: 'cut off', fix: 'again' });
    await stage.sync({ mode });
    expect(stage.snapshot.holds.current()).toMatchObject([{ plan }]);
    Object.assign(stage.certificate, whole);
    stage.people.splice(20);
    await stage.sync({ mode });
    expect(stage.snapshot.holds.current()).toEqual([]);
  });
});

test('the time since a change is held does not reach back before an approval', async () => {
  const stage = await mirrored();
  const leaving = [...[0, 1, 2, 3].map(flag), ...range(4, 20)];
  const since = () => stage.snapshot.holds.current().map((held) => held.since);
  exportOf(stage, leaving);
  const first = stage.clock.now();
  const { plan } = await stage.sync();
  await stage.clock.advance(hour);
  await stage.sync();
  expect(since()[0]).toBeLessThan(first + hour);
  approve(stage, plan);
  exportOf(stage, range(0, 20));
  await stage.sync();
  expect(since()).toEqual([]);
  await stage.clock.advance(24 * hour);
  exportOf(stage, leaving);
  expect((await stage.sync()).plan).toBe(plan);
  expect(since()[0]).toBeGreaterThan(first + 24 * hour);
});

describe('a first load and approvals end although the run fails', () => {
  test('for a missing channel', async () => {
    const stage = staged({ platform: { channels: [{ id: 'ch_news', name: 'News' }] } });
    stage.people.push(...range(0, 8).map((one) => ({ ...one, ch_product: 'yes' })));
    expect((await stage.sync()).status).toBe('failed');
    stage.people.push(...range(8, 60));
    const summary = await stage.sync();
    // The eight are still to be opted into the channel that is not there.
    expect(summary.contacts).toMatchObject({ held: { opt_in: 60 }, applied: { create: 0 } });
    approve(stage, summary.plan);
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 52 });
    expect(stage.snapshot.holds.approvals(0)).toEqual([]);
  });

  test('for templates that cannot be listed', async () => {
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        if (!request.path.includes('/template')) return send(request, signal);
        return send({ ...request, path: '/api/template/v1/nothing' }, signal);
      };
    const stage = staged({ wire });
    stage.people.push(...range(0, 5));
    expect((await stage.sync()).status).toBe('failed');
    stage.people.push(...range(5, 50));
    expect((await stage.sync()).contacts.held.opt_in).toBe(45);
  });

  test('but not for people who could not be listed', async () => {
    const phantoms = { count: 1 };
    const stage = staged({ wire: counting(phantoms) });
    stage.people.push(...range(0, 5));
    expect((await stage.sync()).certificate.platform).toBe(false);
    stage.people.push(...range(5, 50));
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 45 });
  });
});

test('what is held or rejected counts neither in the total of a run nor in its forecast', async () => {
  const stage = await mirrored();
  exportOf(stage, [person(0, { ch_news: 'no' }), ...range(1, 24)]);
  const progress = vi.fn<(told: Progress) => void>();
  const foresees = vi.fn<(forecast: Forecast) => void>();
  const run = await stage.sync({ progress, foresees });
  expect(run.contacts).toMatchObject({ applied: { opt_out: 1 }, held: { opt_in: 4 } });
  const applying = progress.mock.calls.flat().filter(({ stage: at }) => at === 'applying');
  expect(applying.map(({ done, of }) => [done, of])).toEqual([[1, 1]]);
  const [forecast] = foresees.mock.calls.flat();
  expect([...changesOf(forecast ?? { routes: [] })]).toEqual([['contact', 1]]);
  expect(run.forecast?.routes).toMatchObject([{ requests: 1 }]);
});

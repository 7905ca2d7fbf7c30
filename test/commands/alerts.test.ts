/** alerts: thresholds of the configuration, in the output of a run and in `status`. */
import { describe, expect, test } from 'vitest';
import { alertsOf, type ToldRun } from '../../src/views/status/run-history.ts';
import {
  ann,
  mirrored,
  type Mirrored,
  tamper,
  attentionOf,
} from '../support/commands/mirrored-contacts.ts';

const runOf = (sent: number, more: Partial<ToldRun> = {}): ToldRun => ({
  run: 'r',
  mode: 'full',
  only: null,
  status: 'done',
  startedAt: '2026-01-01T00:00:00Z',
  endedAt: '2026-01-01T00:01:00Z',
  askedBy: null,
  ms: 60_000,
  plan: null,
  requests: null,
  certificate: null,
  attempted: { sent, refused: 0 },
  reasons: [],
  fullBecause: [],
  ...more,
});
const before = (...sent: number[]): ToldRun[] => sent.map((n) => runOf(n));
const steady = Array.from({ length: 30 }, (_, at) => 40 + (at % 5));

describe('a run', () => {
  test.each([
    ['of the usual size', 60, before(...steady), 0],
    ['much larger than those before', 63, before(...steady), 1],
    ['as the first ones', 5_000, before(...steady.slice(0, 9)), 0],
    ['after large runs, which are not usual', 70, before(...steady, 9_000, 8_000), 1],
    ['after runs of very different sizes', 400, before(...steady.map((_, at) => at * 20)), 0],
    ['smaller than those before', 0, before(...steady), 0],
    ['beside failed ones', 500, before(...steady).map((one) => ({ ...one, status: 'failed' })), 0],
    [
      'beside those of other parts',
      500,
      before(...steady).map((one) => ({ ...one, only: 'contacts' as const })),
      0,
    ],
    ['of an earlier version', 0, [runOf(0, { attempted: null })], 0],
  ])('%s', (_, sent, earlier, count) => {
    expect(alertsOf(runOf(sent), earlier, { deviation: 3 })).toHaveLength(count);
  });

  test('is told with the numbers', () => {
    const [alert] = alertsOf(runOf(1_240), before(...steady), { deviation: 3 });
    expect(alert?.text).toBe(
      'the last full run made 1,240 changes; the 30 before it made 42 at the median, and up to 62 ' +
        'are usual (alerts.deviation is 3)',
    );
  });

  test.each([
    [{ sent: 100, refused: 5 }, 0],
    [{ sent: 100, refused: 6 }, 1],
    [{ sent: 2, refused: 2 }, 0],
    [{ sent: 0, refused: 0 }, 0],
  ])('with %j is compared with alerts.refused', (attempted, count) => {
    const found = alertsOf(runOf(0, { attempted }), [], { refused: 5 });
    expect(found).toHaveLength(count);
  });

  test('is compared with alerts.runTime', () => {
    expect(alertsOf(runOf(0), [], { runTimeMs: 60_000 })).toEqual([]);
    expect(alertsOf(runOf(0), [], { runTimeMs: 59_000 })).toMatchObject([
      { threshold: 'runTime', text: 'the last full run took 60 s, and alerts.runTime is 59 s' },
    ]);
  });

  test('crosses nothing where nothing is set', () => {
    const bad = runOf(5_000, { attempted: { sent: 5_000, refused: 4_000 } });
    expect(alertsOf(bad, before(...steady), {})).toEqual([]);
  });
});

/** The platform refuses three of four people. */
async function refusing(alerts: Record<string, unknown>): Promise<Mirrored> {
  const world = await mirrored();
  world.people(
    ['a', 'b', 'c']
      .map((name) => ({ email: `${name}@example.com`, news: 'yes' }))
      .concat({ email: ann, news: 'yes' }),
  );
  world.config({ alerts });
  world.server.fail(({ body }) => body.email !== undefined && body.email !== ann, {
    is: 'answer',
    status: 422,
  });
  return world;
}

test('a crossed threshold is in the output and in status, and stops nothing', async () => {
  const world = await refusing({ refused: 5 });
  const { code, err } = await world.call('sync');
  expect(code).toBe(4);
  expect(err).toMatch(/the platform refused 3 of 4 changes \(75 %\).* alerts\.refused is 5 %/);
  expect(await attentionOf(world)).toEqual(['alert_refused']);
  const next = await world.call('sync');
  expect(next.err).not.toContain('alerts.refused');
  expect(await attentionOf(world)).toEqual([]);
});

test('alerts.proofAge replaces the age from which a proof is stale', async () => {
  const world = await mirrored();
  await world.call('sync');
  tamper(world.path, 'update run set started_at = started_at - 27 * 3600000');
  expect(await attentionOf(world)).toEqual([]);
  world.config({ alerts: { proofAge: '26h' } });
  expect(await attentionOf(world)).toEqual(['stale']);
  world.config({ alerts: { proofAge: '28h' } });
  expect(await attentionOf(world)).toEqual([]);
});

test.each([
  [{ refused: 101 }, 'alerts.refused'],
  [{ runTime: '0s' }, 'alerts.runTime'],
  [{ proofAge: 'soon' }, 'alerts.proofAge'],
  [{ deviation: 0 }, 'alerts.deviation'],
  [{ runtime: '5m' }, 'runtime'],
])('refuses %j', async (alerts, place) => {
  const world = await mirrored();
  world.config({ alerts });
  const { code, err } = await world.call('status');
  expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(place) });
});

/** What Prometheus is told, as text. */
import { byGuard } from '../../../src/domain/guard-classes.ts';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/http/system-clock.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import { nothingDone, type Summary } from '../../../src/engine/report/run-summary.ts';
import { openEventQueue } from '../../../src/compose/queues/event-queue.ts';
import { viewQueues } from '../../../src/compose/queues/run-queue.ts';
import {
  createMetrics,
  type GaugedStatus,
  type Watched,
} from '../../../src/worker/server/metrics.ts';
import { createWorld } from '../../support/engine/engine-world.ts';
import { connectTo } from '../../support/worker/connections.ts';
import { sharedRedis } from '../../support/redis.ts';

const redis = await sharedRedis();

const calm: GaugedStatus = {
  proven: null,
  attention: [],
  alerts: [],
  recorded: null,
  conflicts: null,
  rejected: null,
  invalid: null,
  held: [],
  optOutsUnreadable: { count: 0 },
  optOutsRefused: { count: 0 },
  returns: null,
  erasuresUnfinished: { count: 0 },
  open: { unknown: 0 },
  paused: null,
  quarantine: null,
};

function watched(of: Partial<Watched> = {}, standing: Partial<GaugedStatus> = {}): Watched {
  return {
    mirror: 'acme',
    isTold: () => true,
    standing: async () => ({ ...calm, ...standing }),
    faults: () => [],
    limits: () => ({}),
    depths: async () => [],
    lagMs: async () => undefined,
    ...of,
  };
}

/** The lines of our own, without those about the process and without help. */
async function told(metrics: { text(): Promise<string> }, name = ''): Promise<string[]> {
  const lines = (await metrics.text()).split('\n');
  return lines.filter(
    (line) => line.startsWith(`crm_mirror_${name}`) && !/^crm_mirror_(process|nodejs)/.test(line),
  );
}

const summary = (of: Partial<Summary>): Summary => ({
  ...nothingDone({ mirror: 'acme', mode: 'full', reasons: [] }),
  status: 'done',
  plan: 'p',
  ...of,
});

test('the metrics count runs and what they did', async () => {
  const metrics = createMetrics([]);
  const { contacts, templates } = summary({});
  const run = summary({
    ms: 61_000,
    templates: { ...templates, held: 3 },
    contacts: {
      ...contacts,
      changes: { ...contacts.changes, opt_in: 7 },
      applied: { create: 0, opt_in: 3, opt_out: 2, delete: 0 },
      held: { ...contacts.held, delete: 4, opt_out: 5 },
      refused: 1,
      rejected: 700,
    },
    requests: { total: 9, byRoute: { 'contacts.list': 8, 'contacts.optIn': 1 }, rateLimited: 2 },
  });
  metrics.ended('acme', run);
  metrics.ended('acme', { ...run, status: 'held' });
  metrics.ended('acme', summary({ mode: 'single', status: 'failed', plan: '' }));
  expect(await told(metrics)).toEqual(
    expect.arrayContaining([
      'crm_mirror_runs_total{mirror="acme",mode="full",status="done"} 1',
      'crm_mirror_runs_total{mirror="acme",mode="full",status="held"} 1',
      'crm_mirror_runs_total{mirror="acme",mode="single",status="failed"} 1',
      'crm_mirror_run_duration_seconds_bucket{le="60",mirror="acme",mode="full"} 0',
      'crm_mirror_run_duration_seconds_bucket{le="300",mirror="acme",mode="full"} 2',
      'crm_mirror_changes_total{mirror="acme",kind="contact",op="opt_in",outcome="acked"} 6',
      'crm_mirror_changes_total{mirror="acme",kind="contact",op="opt_out",outcome="acked"} 4',
      'crm_mirror_changes_total{mirror="acme",kind="contact",op="delete",outcome="held"} 8',
      'crm_mirror_changes_total{mirror="acme",kind="contact",op="opt_out",outcome="held"} 10',
      'crm_mirror_changes_total{mirror="acme",kind="template",op="template",outcome="held"} 6',
      'crm_mirror_changes_total{mirror="acme",kind="contact",op="",outcome="rejected"} 2',
      'crm_mirror_changes_wanted{mirror="acme",kind="contact",op="opt_in"} 7',
      'crm_mirror_requests_total{mirror="acme",route="contacts.list"} 16',
      'crm_mirror_requests_rate_limited_total{mirror="acme"} 4',
    ]),
  );
});

test('a change that the platform refuses is counted once, and not again in each later run', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  world.people([{ email: 'ann@example.com', news: 'yes' }]);
  world.server.fail(({ method }) => method === 'POST', { is: 'answer', status: 422 });
  const metrics = createMetrics([]);
  for (let nth = 0; nth < 3; nth += 1) {
    const run = await world.sync();
    expect(run.contacts.rejected).toBe(1);
    metrics.ended('acme', run);
  }
  expect(await told(metrics, 'changes_total')).toContain(
    'crm_mirror_changes_total{mirror="acme",kind="contact",op="",outcome="rejected"} 1',
  );
});

test('the metrics show the difference found by the last full run of a record type', async () => {
  const metrics = createMetrics([]);
  const { contacts, templates } = summary({});
  const wanting = (n: number) => ({
    contacts: { ...contacts, changes: { opt_in: n } },
    templates: { ...templates, changes: { update: n } },
  });
  metrics.ended('acme', summary(wanting(5)));
  metrics.ended('acme', summary({ ...wanting(1), only: 'templates' }));
  metrics.ended('acme', summary({ ...wanting(9), mode: 'fast' }));
  metrics.ended('acme', summary({ ...wanting(9), status: 'failed', plan: '' }));
  expect(await told(metrics, 'changes_wanted')).toEqual([
    'crm_mirror_changes_wanted{mirror="acme",kind="contact",op="opt_in"} 5',
    'crm_mirror_changes_wanted{mirror="acme",kind="template",op="update"} 1',
  ]);
});

test('the metrics show the state of a mirror when they are read', async () => {
  const limit = { limit: 100, left: 40, windowMs: 60_000, others: 0 };
  const standing: Partial<GaugedStatus> = {
    proven: { ageMs: 90_500, stale: false },
    recorded: { contacts: 12, templates: 3 },
    conflicts: { contacts: 2, templates: 0 },
    held: [
      { ...byGuard(() => 0), delete: 3, opt_out: 2 },
      { ...byGuard(() => 0), delete: 1, opt_in: 9, template: 6 },
    ],
    optOutsUnreadable: { count: 2 },
    optOutsRefused: { count: 5 },
    returns: { waiting: 7, rejected: { count: 6 } },
    alerts: [{ threshold: 'runTime' }],
    paused: { since: 'then' },
  };
  const limits = () => ({ 'contacts.list': limit, other: { ...limit, limit: undefined } });
  const metrics = createMetrics([watched({ limits, lagMs: async () => 1500 }, standing)]);
  const lines = await told(metrics);
  expect(lines).toEqual(
    expect.arrayContaining([
      'crm_mirror_last_proven_run_age_seconds{mirror="acme"} 90.5',
      'crm_mirror_records{mirror="acme",kind="contact"} 12',
      'crm_mirror_conflicts{mirror="acme",kind="contact"} 2',
      'crm_mirror_held{mirror="acme",class="delete"} 4',
      'crm_mirror_held{mirror="acme",class="opt_in"} 9',
      'crm_mirror_held{mirror="acme",class="opt_out"} 2',
      'crm_mirror_held{mirror="acme",class="template"} 6',
      'crm_mirror_unreadable_opt_outs{mirror="acme"} 2',
      'crm_mirror_opt_outs_refused{mirror="acme"} 5',
      'crm_mirror_returns_waiting{mirror="acme"} 7',
      'crm_mirror_returns_rejected{mirror="acme"} 6',
      'crm_mirror_alert{mirror="acme",threshold="run_time"} 1',
      'crm_mirror_alert{mirror="acme",threshold="proof_age"} 0',
      'crm_mirror_paused{mirror="acme"} 1',
      'crm_mirror_quarantined{mirror="acme"} 0',
      'crm_mirror_budget_limit{mirror="acme",route="contacts.list"} 100',
      'crm_mirror_budget_left{mirror="acme",route="contacts.list"} 40',
      'crm_mirror_event_lag_seconds{mirror="acme"} 1.5',
      'crm_mirror_events_accepted_total{mirror="acme"} 0',
      'crm_mirror_events_refused_total{mirror="acme",reason="forged"} 0',
    ]),
  );
  expect(lines.join('\n')).not.toMatch(/invalid\{|budget_limit\{mirror="acme",route="other"/);
});

test('a value that no longer holds is dropped from the metrics', async () => {
  let standing: GaugedStatus = { ...calm, proven: { ageMs: 1000, stale: false }, quarantine: {} };
  const metrics = createMetrics([watched({ standing: async () => standing })]);
  expect(await told(metrics, 'last_proven')).toHaveLength(1);
  standing = calm;
  expect(await told(metrics, 'last_proven')).toEqual([]);
  expect(await told(metrics, 'quarantined')).toEqual(['crm_mirror_quarantined{mirror="acme"} 0']);
});

test('one unreadable mirror hides no other one; a bug is not hidden', async () => {
  const failing = (error: Error): Partial<Watched> => ({
    mirror: 'globex',
    async standing() {
      throw error;
    },
  });
  const gone = new Unavailable('gone', { acted: 'no' });
  const metrics = createMetrics([watched(failing(gone)), watched()]);
  expect(await told(metrics, 'paused')).toEqual(['crm_mirror_paused{mirror="acme"} 0']);
  await expect(createMetrics([watched(failing(new Error('bug')))]).text()).rejects.toThrow('bug');
});

test('a mirror that goes takes its counters with it, and one that comes begins at 0', async () => {
  const mirrors = [watched(), watched({ mirror: 'globex' })];
  const metrics = createMetrics(mirrors);
  metrics.accepted('globex', 2);
  expect(await told(metrics, 'events_accepted')).toContain(
    'crm_mirror_events_accepted_total{mirror="globex"} 2',
  );
  mirrors.pop();
  expect(await told(metrics, 'events_accepted')).toEqual([
    'crm_mirror_events_accepted_total{mirror="acme"} 0',
  ]);
  expect((await told(metrics, 'events_refused')).join()).not.toContain('globex');
  mirrors.push(watched({ mirror: 'globex' }));
  expect(await told(metrics, 'events_accepted')).toContain(
    'crm_mirror_events_accepted_total{mirror="globex"} 0',
  );
});

test('the metrics show queues and the oldest event, and nothing of them without Redis', async () => {
  const connections = connectTo(redis.url);
  const events = openEventQueue({ mirror: 'acme', clock: systemClock, connections });
  const view = viewQueues('acme', { url: redis.url });
  const metrics = createMetrics([watched({ depths: view.depths, lagMs: events.lagMs })]);
  await events.add(['1', '2']);
  const depth = (queue: string, state: string) =>
    `crm_mirror_queue_jobs{mirror="acme",queue="${queue}",state="${state}"}`;
  const lines = await told(metrics);
  expect(lines).toEqual(
    expect.arrayContaining([`${depth('events', 'delayed')} 2`, `${depth('runs', 'active')} 0`]),
  );
  const lag = lines.find((line) => line.startsWith('crm_mirror_event_lag_seconds'));
  expect(Number(lag?.split(' ')[1])).toBeGreaterThan(0);
  await redis.kill();
  expect(await told(metrics, 'queue_jobs')).toEqual([]);
  expect(await told(metrics, 'event_lag')).toEqual([]);
  expect(await told(metrics, 'paused')).toHaveLength(1);
  view.close();
  await events.close();
  await redis.start();
});

test('every metric begins with the same word, and the process is among them', async () => {
  const text = await createMetrics([watched()]).text();
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(names.filter((name) => !name?.startsWith('crm_mirror_'))).toEqual([]);
  expect(names).toContain('crm_mirror_process_resident_memory_bytes');
});

test('of several workers, the one that has a mirror tells its state', async () => {
  const here = { mirror: 'here', isTold: () => true };
  const there = { mirror: 'there', isTold: () => false };
  const unserved = async () => 3;
  const metrics = createMetrics([watched(here), watched(there)], { unserved });
  const lines = await told(metrics);
  expect(lines).toContain('crm_mirror_fleet_unserved 3');
  expect(lines).toContain('crm_mirror_served{mirror="here"} 1');
  expect(lines.filter((line) => line.includes('"there"') && !line.includes('_events_'))).toEqual(
    [],
  );
});

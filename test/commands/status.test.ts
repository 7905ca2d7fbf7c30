import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { recordOutages } from '../../src/store/health-file.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { openRunQueue } from '../../src/compose/queues/run-queue.ts';
import { progressWords } from '../../src/views/status/status-sections.ts';
import { scratch } from '../support/sources/source-reading.ts';
import { ownRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';
import { launch } from '../support/engine/engine-world.ts';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  tamper,
  attentionOf,
  calling,
} from '../support/commands/mirrored-contacts.ts';
import { connectTo } from '../support/worker/connections.ts';
import { refusing } from '../support/commands/notice-receivers.ts';

const hashed = expect.stringMatching(/^#[0-9a-f]{12}$/);
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

/** The CRM opts Ann out of the newsletter, and the platform refuses it. */
async function refused(world: Mirrored): Promise<void> {
  world.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
  world.people([{ email: ann, news: 'no' }]);
  world.server.fail(({ body }) => body.subscription === 'opt_out', { is: 'answer', status: 422 });
  expect((await world.call('sync')).code).toBe(4);
}

describe('status', () => {
  test('without a snapshot knows nothing, claims no 0, and makes none', async () => {
    const world = await mirrored();
    const { code, json } = await world.call('status', '--json');
    expect(code).toBe(0);
    expect(json).toMatchObject({
      mirror: 'world',
      ok: false,
      attention: [{ code: 'no_snapshot' }],
    });
    expect(json).toMatchObject({ proven: null, recorded: null, conflicts: null, rejected: null });
    expect(json.snapshot).toEqual({ file: world.path, exists: false, bytes: null });
    const { out } = await world.call('status');
    expect(out).toMatch(/NEEDS ATTENTION\n {2}there is no snapshot at .*backfill/);
    expect(out).toMatch(/last complete run +unknown/);
    expect(out).toMatch(/recorded +unknown/);
    expect(existsSync(world.path)).toBe(false);
    expect(world.server.arrived).toEqual([]);
  });

  test('after a run needs no attention, and tells times, counts and limits', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    world.template('welcome', { subject: 'Hi' });
    expect((await world.call('sync')).code).toBe(0);
    const { json } = await world.call('status', '--json');
    const run = expect.stringMatching(/^\d{8}T\d{6}Z-[0-9a-f]{4}$/);
    expect(json).toMatchObject({
      ok: true,
      attention: [],
      proven: { run, startedAt: time, endedAt: time, ageMs: expect.any(Number), stale: false },
      lastRuns: { full: { run, status: 'done', attempted: { sent: 3, refused: 0 } }, fast: null },
      recorded: { contacts: 2, templates: 1 },
      limits: expect.arrayContaining([
        { route: 'contacts.enrol', limit: 1_000_000, windowMs: 1000, others: 0, at: time },
      ]),
      lease: { held: false },
      memory: { file: `${world.path}-memory`, fault: null, auditFault: null },
      snapshot: { file: world.path, exists: true, bytes: expect.any(Number) },
    });
    expect(json.snapshot.bytes).toBeGreaterThanOrEqual(statSync(world.path).size);
    const { out } = await world.call('status');
    expect(out).toMatch(/^world: nothing needs attention\n/);
    expect(out).toMatch(/last complete run +\d+ s ago/);
    expect(out).toMatch(/rate limits +contacts\.\w+ 1,000,000 every 1 s \(2/);
  });

  test('names problems of single records without calling for attention', async () => {
    const world = await mirrored();
    world.emulator.seed.contact({ email: bob, channels: { ch_news: 'opt_out' } });
    world.people([ann, bob, 'eve@', 'kim'].map((email) => ({ email, news: 'yes' })));
    const { code, out } = await world.call('sync');
    expect([code, out]).toEqual([4, expect.stringContaining('some records have problems')]);
    const { json } = await world.call('status', '--json');
    expect(json).toMatchObject({ ok: true, attention: [], invalid: { contacts: 2 } });
    const [first] = (await world.call('status')).out.split('\n');
    expect(first?.replaceAll(` -c ${world.file}`, '')).toBe(
      'world: nothing needs attention except single records (2 invalid, 1 in conflict) → `crm-mirror ' +
        'problems` lists them, `crm-mirror explain PERSON` says why',
    );
    expect((await world.call('plan')).out).toContain('  2 × invalid  ');
  });

  test('puts an opt-out that could not be applied first, and names nobody', async () => {
    const world = await mirrored();
    await refused(world);
    await world.call('pause');
    const { json, out } = await world.call('status', '--json');
    expect(json.attention.map(({ code }: { code: string }) => code)).toEqual([
      'opt_outs_refused',
      'paused',
    ]);
    expect(json.optOutsRefused).toMatchObject({
      count: 1,
      since: time,
      people: [{ key: hashed, channel: 'ch_news', attempts: 1, since: time, retryAt: time }],
    });
    expect(json).toMatchObject({ rejected: { contacts: 1 }, parked: { contacts: 1, since: time } });
    expect(out).not.toContain('@');
    const lines = (await world.call('status')).out.split('\n');
    expect(lines[1]).toMatch(/1 opt-out could not be applied.*still written to →/);
    expect(lines[2]).toMatch(/^ {6}#[0-9a-f]{12} in ch_news since .*tried 1 time, again from/);
    expect((await world.call('status', '--addresses')).out).toContain(`${ann} in ch_news`);
    expect((await world.seen('status')).out).toContain(`${ann} in ch_news`);
  });

  test('takes a run of one type, a fast one and a failed one for no proof', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    await world.call('sync', '--only', 'templates');
    await world.call('sync', '--fast');
    const { json } = await world.call('status', '--json');
    expect(json).toMatchObject({ proven: null, attention: [{ code: 'never_proven' }] });
    expect(json.lastRuns).toMatchObject({ full: { only: 'templates' }, fast: { status: 'done' } });
    await world.call('sync');
    const { run } = (await world.call('status', '--json')).json.proven;
    world.people([]);
    expect((await world.call('sync')).code).toBe(1);
    const failed = await world.call('status', '--json');
    expect(failed.json).toMatchObject({
      proven: { run },
      attention: [{ code: 'source_away' }, { code: 'run_failed' }],
    });
    expect(failed.json.attention[0].text).toContain('the source of contacts is empty');
  });

  test('a run of the templates alone ends no failure of the contacts', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    await world.call('sync');
    world.people([]);
    expect((await world.call('sync')).code).toBe(1);
    expect((await world.call('sync', '--only', 'templates')).code).toBe(0);
    expect(await attentionOf(world)).toEqual(['source_away', 'run_failed']);
    world.people([{ email: ann }, { email: bob }]);
    expect((await world.call('sync', '--only', 'contacts')).code).toBe(0);
    expect(await attentionOf(world)).toEqual([]);
  });

  test('tells since when runs fail, from the first one that did', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    await world.call('sync');
    refusing(world, 403);
    const failingNow = async () => {
      await world.call('sync', '--only', 'contacts');
      const { failedRuns, attention } = (await world.call('status', '--json')).json;
      const { since, text } = attention.at(-1);
      return { ...failedRuns[0].failing, ended: failedRuns[0].endedAt, said: since, text };
    };
    const first = await failingNow();
    expect(first).toMatchObject({ runs: 1, since: first.ended, said: first.ended });
    await world.call('sync', '--only', 'templates');
    await failingNow();
    const third = await failingNow();
    expect(third).toMatchObject({ runs: 3, since: first.ended, said: first.ended });
    expect(third.text).toMatch(/^the last 3 full runs, since \S+Z \(\d+ s\), failed: the platform/);
  });

  test('asks nobody to run a paused mirror that has never been loaded', async () => {
    const world = await mirrored();
    await world.call('pause', '--reason', 'the export is not ready');
    expect(await attentionOf(world)).toEqual(['paused']);
  });

  test('a pause stands before the runs that failed or are overdue, and nothing is next', async () => {
    const world = await mirrored();
    refusing(world, 403);
    await world.call('sync');
    await world.call('pause', '--reason', 'the export is being repaired');
    expect(await attentionOf(world)).toEqual(['paused', 'run_failed']);
    expect((await world.call('status')).out).toMatch(/^ *next +nothing, while it is paused$/m);
  });

  test('a run in progress hides no failure', async () => {
    const world = await mirrored();
    await world.call('sync');
    const fault = refusing(world, 403);
    expect((await world.call('sync')).code).toBe(1);
    fault.undo();
    const { runs, transaction, close } = openSnapshot(world.path);
    const asked = JSON.stringify({ by: 'schedule', name: null });
    transaction(() => runs.start({ id: 'next', mode: 'full', at: Date.now(), asked }));
    close();
    const lease = takeLease(world.path);
    const { json } = await world.call('status', '--json');
    lease.release();
    expect(json.lastRuns.full).toMatchObject({ run: 'next', endedAt: null });
    expect(json.attention).toMatchObject([{ code: 'run_failed', since: expect.any(String) }]);
  });

  const nobody = /next +nothing: no worker serves this mirror/;
  test.each([
    ['alive', 0, undefined, [], /next +unknown: Redis cannot be asked/],
    ['silent', 45_000, undefined, ['worker_dead'], nobody],
    ['left', 60_000, false, ['worker_dead'], nobody],
    // It opens the mirror anew, and may not get to it.
    ['alive', 9_000, true, [], /next +unknown: Redis cannot be asked/],
    ['silent', 45_000, true, ['worker_dead'], nobody],
  ])('a worker that is %s, silent for %d ms', async (is, silentFor, reopens, codes, next) => {
    const world = await mirrored();
    world.config({ redis: 'redis://127.0.0.1:1', schedule: { full: '0 3 * * *' } });
    await world.call('sync');
    const at = Date.now();
    const outages = recordOutages(world.path, () => at - silentFor);
    outages.beat();
    if (reopens !== undefined) outages.leave(reopens);
    const { json } = await world.call('status', '--json');
    expect(json.worker).toMatchObject({ is });
    expect(json.worker.reopens).toBe(is === 'alive' && reopens ? true : undefined);
    expect(json.attention.map(({ code }: { code: string }) => code)).toEqual(codes);
    expect(json.due).toEqual([]);
    expect((await world.call('status')).out).toMatch(next);
  });

  test('shows the next runs as Redis has them, and that it may lose them', async () => {
    const redis = await ownRedis();
    onTestFinished(redis.close);
    const world = await mirrored();
    const full = '0 3 * * *';
    const fast = '*/5 * * * *';
    world.config({ redis: redis.url, schedule: { full, fast } });
    await world.call('sync');
    recordOutages(world.path, systemClock.now).beat();
    const place = { mirror: 'world', clock: systemClock, connections: connectTo(redis.url) };
    const queue = openRunQueue(place);
    onTestFinished(queue.close);
    const nothing = { templates: undefined, sentinel: undefined };
    await queue.follow({ patterns: { full, fast, ...nothing }, timezone: 'UTC' });
    const ask = async () => {
      const { attention, due } = (await world.call('status', '--json')).json;
      const runs = due.map(({ run }: { run: string }) => run).toSorted();
      return { attention: attention.map(({ code }: { code: string }) => code), runs };
    };
    expect(await ask()).toEqual({ attention: [], runs: ['fast', 'full'] });
    await redis.remove('crm-mirror:runs-world:repeat:fast:*');
    await redis.evictBy('allkeys-lru');
    expect(await ask()).toEqual({ attention: ['redis_evicts'], runs: ['full'] });
  });

  test('shows an unknown age, not 0, when the clock was put back', async () => {
    const world = await mirrored();
    await world.call('sync');
    tamper(world.path, 'update run set started_at = started_at + 1e9, ended_at = ended_at + 1e9');
    const { json } = await world.call('status', '--json');
    expect(json.proven).toMatchObject({ ageMs: null });
    expect((await world.call('status')).out).toContain('in the future');
  });

  test('shows a stale proof when two due full runs, and 36 h, brought none', async () => {
    const world = await mirrored();
    await world.call('sync');
    const hoursAgo = 40 * 3_600_000;
    tamper(world.path, `update run set started_at = started_at - ${hoursAgo}`);
    const ask = async (schedule?: Record<string, unknown>): Promise<unknown> => {
      world.config(schedule && { schedule });
      const { json } = await world.call('status', '--json');
      const codes = json.attention.map(({ code }: { code: string }) => code);
      return { stale: json.proven.stale, codes };
    };
    const stale = { stale: true, codes: ['stale'] };
    const fresh = { stale: false, codes: [] };
    expect(await ask({ full: '0 * * * *' })).toEqual(stale);
    expect(await ask({ fast: '* * * * *' })).toEqual(stale);
    expect(await ask({ full: '0 0 1 * *' })).toEqual(fresh);
    expect(await ask()).toEqual(fresh);
    tamper(world.path, 'update run set started_at = started_at + 3_600_000 * 6');
    expect(await ask({ full: '0 * * * *' })).toEqual(fresh);
  });

  test('names clocks that differ, as check and runs do', async () => {
    const world = await mirrored();
    world.people([{ email: ann, news: 'yes' }]);
    world.clock.pass(96 * 3_600_000);
    for (const command of ['check', 'sync', 'status']) {
      const { code, out, err } = await world.call(command);
      expect({ command, code }).toEqual({ command, code: 0 });
      expect(`${out}${err}`).toMatch(/the clock of this machine is 4 days behind that of the plat/);
    }
    const { json } = await world.call('status', '--json');
    expect(json).toMatchObject({ ok: false, attention: [{ code: 'clock_differs', since: time }] });
  });

  test('does not disturb a process that holds the lease', async () => {
    const world = await mirrored();
    const met = Promise.withResolvers<void>();
    const door = Promise.withResolvers<void>();
    world.server.watch.arrived = ({ route }) => {
      if (route !== 'contacts.enrol') return undefined;
      met.resolve();
      return door.promise;
    };
    const { ended } = launch(['sync', '-c', world.file]);
    await met.promise;
    const { code, json } = await world.call('status', '--json');
    expect({ code, held: json.lease.held }).toEqual({ code: 0, held: true });
    expect(json).toMatchObject({ attention: [], lastRuns: { full: { status: 'running' } } });
    const { json: later } = await untilHolds(async () => {
      const seen = await world.call('status', '--json');
      expect(seen.json.running.phase).toBe('applying');
      return seen;
    });
    expect(later.running).toEqual({
      mode: 'full',
      command: 'sync',
      pid: expect.any(Number),
      since: time,
      at: time,
      phase: 'applying',
      kind: 'contact',
      done: 0,
      total: 2,
      share: 0,
      perSecond: null,
      leftMs: null,
      waitMs: null,
      limit: null,
    });
    expect((await world.call('status')).out).toMatch(
      /right now +a full run by `sync` since \S+: applying: 0 of 2 contact changes/,
    );
    expect((await world.call('runs')).out).toMatch(/ still running; still to send: 1 create/);
    door.resolve();
    expect((await ended).code).toBe(0);
    expect((await world.call('status', '--json')).json).toMatchObject({ ok: true });
  });

  test('after a kill shows an interrupted run and the unknown outcomes', async () => {
    const world = await mirrored();
    const { child, ended } = launch(['sync', '-c', world.file]);
    world.server.watch.acted = ({ route }) => void (route === 'contacts.enrol' && child.kill(9));
    await ended;
    world.server.watch = {};
    const { json } = await world.call('status', '--json');
    expect(json.lastRuns.full).toMatchObject({ status: 'interrupted', endedAt: null, ms: null });
    const codes = json.attention.map(({ code }: { code: string }) => code);
    expect(codes).toEqual(['never_proven', 'run_interrupted', 'outcomes_unknown']);
    // A full disk leaves the same traces.
    expect(json.attention[1].text).toMatch(
      /has not written down that it ended: .*killed, or could/,
    );
    expect(json.open.sent).toBeGreaterThan(0);
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    const beside = await world.call('status', '--json');
    expect(beside.json).toMatchObject({ lastRuns: { full: { status: 'running' } }, attention: [] });
    // The next holder of the lease raises the token: the run is not its own.
    tamper(world.path, "update meta set value = value + 1 where name = 'lease-token'");
    const after = await world.call('status', '--json');
    expect(after.json).toMatchObject({
      running: null,
      lease: { held: true },
      lastRuns: { full: { status: 'interrupted' } },
    });
  });

  test.each(['status', 'backup'])(
    'refuses a snapshot of a newer version, a corrupt one and a folder in one line: %s',
    async (command) => {
      const world = await mirrored();
      await world.call('sync');
      const words = command === 'backup' ? [command, `${world.folder}/copy`] : [command];
      tamper(world.path, 'pragma user_version = 999');
      expect(await world.call(...words)).toMatchObject({
        code: 2,
        err: expect.stringMatching(/^crm-mirror: .*newer version of crm-mirror.*→.*$/),
      });
      writeFileSync(world.path, readFileSync(world.path).fill('x'));
      expect(await world.call(...words)).toMatchObject({
        code: 2,
        err: expect.stringMatching(/^crm-mirror: .*this snapshot is damaged.*→.*$/),
      });
      rmSync(world.path);
      mkdirSync(world.path);
      expect(await world.call(...words)).toMatchObject({
        code: 2,
        err: expect.stringMatching(/snapshot.sqlite: this is a folder.*→ move/),
      });
    },
  );

  test('shows a channel that most people have lost, first of all', async () => {
    const world = await mirrored();
    const people = Array.from({ length: 12 }, (_, at) => `p${at}@example.com`);
    world.people(people.map((email) => ({ email, news: 'yes' })));
    await world.call('sync');
    for (const email of people) world.emulator.dashboard.removeFromChannel(email, 'ch_news');
    expect(await world.call('sync')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^crm-mirror: ch_news: more than half .*→ restore/m),
    });
    const { json } = await world.call('status', '--json');
    expect(json).toMatchObject({ channelsLost: [{ channel: 'ch_news', since: time }] });
    expect(json.attention[0]).toMatchObject({ code: 'channel_lost' });
  });
});

test('names runs by their ids with --verbose only', async () => {
  const world = await mirrored();
  await world.call('sync');
  expect((await world.call('status', '--verbose')).out).toMatch(
    /last complete run +\d s ago \(\d{8}T\d{6}Z-\w+, began .*\n *last full run +done \(\d{8}T\w+-/,
  );
  expect((await world.call('status')).out).toMatch(/last full run +done \(began \S+, took \S+ s\)/);
  expect((await world.call('status')).out).not.toMatch(/\d{8}T\d{6}Z-/);
});

test('names the process of a run with --verbose only', () => {
  const at = '2026-11-23T03:00:00Z';
  const about = { mode: 'full', command: 'sync', pid: 4711, since: at, at } as const;
  const measured = { phase: 'applying', kind: 'contact', done: 1, total: 2 } as const;
  const rest = { share: 0.5, perSecond: null, leftMs: null, waitMs: null, limit: null };
  const running = { ...about, ...measured, ...rest };
  const line = `since ${at}: applying: 1 of 2 contact changes`;
  expect(progressWords({ at, running }, true)).toBe(
    `a full run by \`sync\` (process 4711) ${line}`,
  );
  expect(progressWords({ at, running })).toBe(`a full run by \`sync\` ${line}`);
});

test('people are counted as ours whatever became of them', async () => {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.seed.contact({ email: 'foreign@example.com', channels: { ch_news: 'opt_in' } });
  world.people([{ email: bob, news: 'yes' }]);
  await world.call('sync');
  expect((await world.call('status', '--json')).json.recorded.contacts).toBe(2);
});

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
  expect(last).toMatch(/^calm +In sync +\d+ s ago +no worker serves it$/);
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

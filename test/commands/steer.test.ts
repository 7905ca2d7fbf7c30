/** retry, pause and resume: what they do, and that the audit log keeps who decided it, and why. */
import { existsSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { launch } from '../support/engine/engine-world.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

/** Both are refused; `mend` lets them in. */
async function parked(): Promise<Mirrored & { mend(): void }> {
  const world = await mirrored();
  const { undo } = world.server.fail(({ body }) => 'email' in body, {
    is: 'answer',
    status: 422,
  });
  expect((await world.call('sync')).code).toBe(4);
  expect((await world.call('status', '--json')).json.parked).toMatchObject({ contacts: 2 });
  world.writes();
  return { ...world, mend: undo };
}

describe('retry', () => {
  test('says that nothing is parked, with or without a snapshot, and makes none', async () => {
    const world = await mirrored();
    const { code, json } = await world.call('retry', '--json');
    expect({ code, json }).toEqual({
      code: 0,
      json: { mirror: 'world', records: 0, changes: 0, returns: 0, quarantineLifted: false },
    });
    expect(existsSync(world.path)).toBe(false);
    await world.call('sync');
    expect(await world.call('retry')).toMatchObject({
      code: 0,
      out: 'Nothing waits to be tried again.',
    });
    expect((await world.call('retry', ann)).out).toBe(
      `Nothing waits to be tried again for ${ann}.`,
    );
  });

  test('without a person makes the next run, and only that one, send everything again', async () => {
    const world = await parked();
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
    expect(await world.call('retry', '--json')).toMatchObject({
      code: 0,
      json: { mirror: 'world', records: 2, changes: 2 },
    });
    expect(world.writes()).toEqual([]);
    const since = (await world.call('status', '--json')).json.parked;
    expect(since).toMatchObject({ contacts: 2 });
    expect((await world.call('sync')).code).toBe(4);
    expect(world.writes()).toHaveLength(2);
    expect((await world.call('status', '--json')).json.parked).toEqual(since);
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
    world.mend();
    await world.call('retry');
    expect((await world.call('sync', '--fast')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    expect((await world.call('status', '--json')).json.parked).toMatchObject({ contacts: 0 });
  });

  test('with a person takes an address or a hash', async () => {
    const world = await parked();
    world.mend();
    const loud = await world.call('retry', ` ${ann.toUpperCase()}`, '--json');
    expect(loud.json).toMatchObject({ mirror: 'world', records: 1, changes: 1 });
    await world.call('sync');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    expect(world.shown(bob)).toBeUndefined();
    const [{ run }] = (await world.call('runs', '--json')).json.runs.slice(-1);
    const { listed } = (await world.call('runs', run, '--json')).json;
    const hashes: string[] = listed.map(({ key }: { key: string }) => key);
    for (const hash of hashes) {
      const isBob = (await world.call('retry', hash.slice(1), '--json')).json.records === 1;
      const again = await world.call('retry', hash);
      if (isBob) expect(again.out).toBe(`The next run tries 1 change of ${hash} again.`);
      else expect(again.out).toBe(`Nothing waits to be tried again for ${hash}.`);
    }
    await world.call('sync');
    expect(world.shown(bob)).toMatchObject({ ch_news: 'opt_in' });
  });

  test('exits with 75 while another process holds the lease', async () => {
    const world = await parked();
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    const { code, err } = await world.call('retry');
    expect({ code, err }).toEqual({ code: 75, err: expect.stringContaining('holds this mirror') });
  });
});

describe('pause', () => {
  test('stops sync and backfill, and nothing else, until resume', async () => {
    const world = await mirrored();
    const paused = await world.call(
      'pause',
      '--reason',
      ' the CRM\nis moving ',
      '--by',
      'anna',
      '--json',
    );
    expect(paused.json).toEqual({
      mirror: 'world',
      paused: { since: expect.any(String), reason: 'the CRM is moving', by: 'anna' },
      running: false,
    });
    const { since } = paused.json.paused;
    for (const command of ['sync', 'backfill']) {
      expect(await world.call(command)).toMatchObject({
        code: 75,
        err: `crm-mirror: world is paused since ${since} by anna: the CRM is moving → crm-mirror resume -c ${world.file}`,
      });
    }
    const { json } = await world.call('sync', '--json');
    expect(json).toMatchObject({ status: 'failed', reasons: [expect.stringContaining('paused')] });
    expect(world.server.arrived).toEqual([]);
    for (const command of ['plan', 'check', 'status', 'runs']) {
      expect({ command, code: (await world.call(command)).code }).toEqual({ command, code: 0 });
    }
    const standing = (await world.call('status', '--json')).json;
    expect(standing.paused).toEqual(paused.json.paused);
    expect(world.writes()).toEqual([]);
    const resumed = await world.call('resume', '--json');
    expect(resumed).toMatchObject({ code: 0, json: { mirror: 'world', was: paused.json.paused } });
    expect((await world.call('sync')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('resume of a mirror that is not paused does nothing, and makes no snapshot', async () => {
    const world = await mirrored();
    expect(await world.call('resume')).toMatchObject({ code: 0, out: 'world is not paused' });
    expect((await world.call('resume', '--json')).json).toEqual({ mirror: 'world', was: null });
    expect(existsSync(world.path)).toBe(false);
  });

  test('with --stop, ends a run in progress as a signal does, and the next run does the rest', async () => {
    const world = await mirrored();
    world.server.delayMs = 3_000;
    let paused: ReturnType<Mirrored['call']> | undefined;
    world.server.watch.arrived = () => void (paused ??= world.call('pause', '--stop'));
    const stopped = await world.call('sync', '--json');
    expect(stopped).toMatchObject({ code: 143, json: { status: 'interrupted' } });
    expect(stopped.err).toContain('a pause stops this run');
    expect(await paused).toMatchObject({
      code: 0,
      out: expect.stringContaining('stops once what it has sent is answered'),
    });
    world.server.delayMs = 0;
    expect((await world.call('sync')).code).toBe(75);
    await world.call('resume');
    expect((await world.call('sync')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('of a first load with --stop, `status` says how far it came', async () => {
    const world = await mirrored({ limits: ['*=1000000/1', 'contacts.enrol=1/60'] });
    world.server.watch.acted = ({ route }) =>
      void (route === 'contacts.enrol' && world.call('pause', '--stop'));
    expect((await world.call('sync')).code).toBe(143);
    const paused = (await world.call('status', '--json')).json;
    expect(paused).toMatchObject({ firstLoad: { done: 1, total: 2 } });
    await world.call('resume');
    const { attention } = (await world.call('status', '--json')).json;
    expect(attention[0].text).toMatch(/: first load stopped at 1 of 2 changes$/);
    expect((await world.call('runs')).out).toContain('1 created; left to the next run: 1 create');
  });

  test('lets a run in progress end, and prevents the next one', async () => {
    const world = await mirrored();
    world.server.delayMs = 5;
    let paused: ReturnType<Mirrored['call']> | undefined;
    world.server.watch.arrived = () => void (paused ??= world.call('pause'));
    expect((await launch(['sync', '-c', world.file]).ended).code).toBe(0);
    expect(await paused).toMatchObject({
      code: 0,
      out: expect.stringContaining('goes on to its end'),
    });
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    expect((await world.call('sync')).code).toBe(75);
    // Nothing was left open or locked by a run that did not begin.
    await world.call('resume');
    expect((await world.call('sync')).code).toBe(0);
  });
});

const caller = operatorName();

/** The decisions of the audit log, once a run has moved them there. */
async function decided(world: Mirrored) {
  await world.call('sync');
  const { out } = await world.call('audit', 'export');
  const entries = out.split('\n').map((line) => JSON.parse(line));
  return entries.filter(({ type }) => type === 'decision');
}

describe('in the audit log, pause and resume', () => {
  test('are kept with who decided, who gave the command, and why', async () => {
    const world = await mirrored();
    await world.call('sync');
    const why = ['--reason', 'the export is being repaired'];
    const { json } = await world.call('pause', ...why, '--by', 'anna', '--json');
    const { since } = json.paused;
    expect(json.paused).toEqual({ since, reason: 'the export is being repaired', by: 'anna' });
    const standing = (await world.call('status', '--json')).json;
    expect(standing.paused).toEqual(json.paused);
    const { out } = await world.call('status');
    expect(out).toContain(`yes, since ${since}, by anna`);
    expect(out).toMatch(/paused since \S+ \(.*\) by anna: the export is being repaired/);
    expect((await world.call('sync')).err).toContain(`paused since ${since} by anna: the export`);
    await world.call('resume', '--reason', 'it is repaired');
    expect(await decided(world)).toEqual([
      expect.objectContaining({
        what: 'pause',
        name: 'anna',
        as: caller,
        reason: 'the export is being repaired',
      }),
      expect.objectContaining({ what: 'resume', name: caller, reason: 'it is repaired' }),
    ]);
    expect((await world.call('audit', 'verify')).code).toBe(0);
  });

  test('a second pause names who gave the newest reason, and is kept as well', async () => {
    const world = await mirrored();
    await world.call('pause', '--reason', 'one', '--by', 'anna');
    expect((await world.call('pause', '--by', 'ben', '--json')).json.paused).toMatchObject({
      reason: 'one',
      by: 'anna',
    });
    expect(
      (await world.call('pause', '--by', 'ben', '--reason', 'two', '--json')).json.paused,
    ).toMatchObject({ reason: 'two', by: 'ben' });
    await world.call('resume');
    const kept = (await decided(world)).map(({ what, name }) => `${what} ${name}`);
    expect(kept).toEqual(['pause anna', 'pause ben', 'pause ben', `resume ${caller}`]);
  });
});

describe('in the audit log, retry', () => {
  test('is kept once for all, and with the mark of a single person', async () => {
    const world = await mirrored();
    const refused = { is: 'answer', status: 422 } as const;
    const { undo } = world.server.fail(({ body }) => 'email' in body, refused);
    await world.call('sync');
    await world.call('retry', '--reason', 'mended', '--by', 'anna');
    await world.call('retry', ann, '--reason', 'for her');
    await world.call('retry', 'nobody@example.com');
    undo();
    const kept = await decided(world);
    expect(kept).toEqual([
      expect.objectContaining({ what: 'retry', name: 'anna', as: caller, person: null }),
      expect.objectContaining({ what: 'retry', reason: 'for her', person: expect.any(String) }),
    ]);
    expect(JSON.stringify(kept)).not.toContain(ann);
  });
});

test('a run names who asked for it, also if it wrote nothing', async () => {
  const world = await mirrored();
  await world.call('sync');
  await world.call('sync');
  const { runs } = (await world.call('runs', '--json')).json;
  expect(runs).toHaveLength(2);
  for (const { run, askedBy } of runs) {
    expect(askedBy).toEqual({ by: 'command', name: caller });
    expect((await world.call('runs', run)).out).toMatch(new RegExp(`asked for by +${caller}`));
  }
});

/** Who paused, resumed and retried, and why: in the audit log, in `status` and among the runs. */
import { describe, expect, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const caller = operatorName();

/** The decisions of the audit log, once a run has moved them there. */
async function decided(world: Mirrored) {
  await world.call('sync');
  const { out } = await world.call('audit', 'export');
  const entries = out.split('\n').map((line) => JSON.parse(line));
  return entries.filter(({ type }) => type === 'decision');
}

describe('pause and resume', () => {
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

describe('retry', () => {
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

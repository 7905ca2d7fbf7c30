/** The command `undo`: takes back what an earlier run did, where that is still allowed. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { localTime, weekdays } from '../../src/domain/values/local-time.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

/** Runs a sync, and returns its id. */
async function synced(world: Mirrored): Promise<string> {
  const { json } = await world.call('sync', '--json');
  return json.run;
}

async function undone(world: Mirrored, run: string, ...more: string[]) {
  const { code, json, said } = await world.call('undo', run, '--yes', '--json', ...more);
  expect({ code, said }).toMatchObject({ code: 0 });
  return json;
}

const news = (world: Mirrored, who: string) => world.shown(who)?.['ch_news'];

const leave = (world: Mirrored, who: string, channel = 'ch_news') =>
  world.emulator.dashboard.leave(who, channel);

/** A mirror whose first run has created two people. */
async function created(options: Parameters<typeof mirrored>[0] = {}) {
  const world = await mirrored(options);
  const run = await synced(world);
  world.writes();
  return { world, run };
}

describe('what a run created', () => {
  test('is opted out, and stays out until the CRM states something else', async () => {
    const { world, run } = await created();
    const json = await undone(world, run);
    expect(json).toMatchObject({ mode: 'undo', undoes: run, status: 'done', cannot: [] });
    expect([news(world, ann), news(world, bob)]).toEqual(['opt_out', 'opt_out']);
    const again = await world.call('sync', '--json');
    expect(again.json.contacts).toMatchObject({ changes: { opt_in: 0, create: 0 }, conflicts: 2 });
    expect(again.json.groups).toMatchObject([{ cause: 'undone', count: 2 }]);
    expect((await world.call('explain', ann)).out).toContain('undo');
    expect((await world.call('problems')).out).toContain('`undo` took our opt-in back');
    expect((await world.call('sync', '--fast', '--json')).json.contacts.changes.opt_in).toBe(0);
    // No opinion is another statement, and so is the opt-in that follows it.
    world.people([{ email: ann }, { email: bob, news: 'yes', product: 'no' }]);
    await world.call('sync');
    world.people([
      { email: ann, news: 'yes' },
      { email: bob, news: 'yes', product: 'no' },
    ]);
    await world.call('sync');
    expect([news(world, ann), news(world, bob)]).toEqual(['opt_in', 'opt_out']);
  });

  test('is a conflict that names the undo, also after the CRM had said no at first', async () => {
    const world = await mirrored();
    world.people([{ email: ann, news: 'no' }]);
    await synced(world);
    world.people([{ email: ann, news: 'yes' }]);
    await undone(world, await synced(world));
    expect((await world.call('sync', '--fast', '--json')).json.groups).toMatchObject([
      { cause: 'undone', count: 1 },
    ]);
    const { json, out } = await world.call('explain', ann, '--json');
    expect(json.snapshot.channels.ch_news).toMatchObject({ by: 'us', cause: 'undone' });
    expect(json.ledger).toEqual([]);
    expect(out).not.toContain('person, or another program');
    expect((await world.call('explain', ann)).out).toContain('an operator took the opt-in back');
  });

  test('is opted in when that is undone, although we changed another channel since', async () => {
    const world = await mirrored({ platform: { quirks: ['enrol-touches'] } });
    world.people([{ email: ann, news: 'yes' }, { email: bob }]);
    const { run } = await undone(world, await synced(world));
    world.people([{ email: ann, news: 'yes', product: 'yes' }, { email: bob }]);
    await synced(world);
    expect((await undone(world, run)).cannot).toEqual([]);
    expect(news(world, ann)).toBe('opt_in');
  });
});

test('explain says that `undo` restored an opt-out of the person', async () => {
  const lines = { contacts: { consentAt: 'at' }, policy: { resubscribe: 'newer' } };
  const world = await mirrored({ lines });
  const crm = (at: string) => world.csv(`id,email,news,product,at\n1,${ann},yes,,${at}\n`);
  crm('2020-01-01');
  await synced(world);
  leave(world, ann);
  await synced(world);
  crm(new Date().toISOString());
  await undone(world, await synced(world));
  expect((await world.call('explain', ann, '--verbose')).out).toContain('`undo` restored it');
});

describe('the command', () => {
  test('shows the plan and what cannot be undone, and sends nothing', async () => {
    const { world, run } = await created();
    leave(world, bob);
    const { code, out } = await world.call('undo', run, '--dry-run');
    expect(code).toBe(0);
    expect(out).toContain('Cannot be undone: 1 change');
    expect(out).toMatch(
      / 1 change \(created\): the person is not subscribed any more\. \S+ \(ch_news\)$/m,
    );
    expect(out).toContain(`undoes what run ${run} did`);
    expect(out).not.toContain(ann);
    expect(world.writes()).toEqual([]);
  });

  test('names nobody in its log', async () => {
    const { world, run } = await created();
    leave(world, bob);
    for (const argv of [['--dry-run', '--log-level', 'info'], ['--yes']]) {
      const { err } = await world.call('undo', run, ...argv);
      expect(err).toContain('"cannot":1');
      expect(err).not.toContain('@');
    }
  });

  test('sends nothing without agreement, nor a plan that has changed', async () => {
    const { world, run } = await created();
    expect(await world.call('undo', run)).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing is undone without agreement'),
    });
    const { plan } = (await world.call('undo', run, '--dry-run', '--json')).json;
    leave(world, bob);
    const other = await world.call('undo', run, '--agree', plan);
    expect(other).toMatchObject({ code: 2, err: expect.stringContaining('the plan has changed') });
    expect(world.writes()).toEqual([]);
    const { out } = await world.call('undo', run, '--dry-run');
    const [, now = ''] = /undo \S+ --agree (\w+)/.exec(out) ?? [];
    expect((await world.call('undo', run, '--agree', now)).code).toBe(0);
    expect(news(world, ann)).toBe('opt_out');
    expect((await world.call('undo', run, '--dry-run')).out).not.toContain('--agree');
  });

  test('undoes only the operations that --op names', async () => {
    const { world, run } = await created();
    const json = await undone(world, run, '--op', 'opt_in,opt_out');
    expect(json.contacts.changes).toMatchObject({ opt_out: 0 });
    await undone(world, run, '--op', 'create');
    expect(news(world, ann)).toBe('opt_out');
    expect(await world.call('undo', run, '--op', 'delete')).toMatchObject({ code: 2 });
  });

  test('names the last run that has changed anything, and the audit log says what it undid', async () => {
    const { world, run } = await created();
    await world.call('sync');
    const json = await undone(world, 'last');
    expect(json.undoes).toBe(run);
    const { entries } = (await world.call('audit', 'show', ann, '--json')).json;
    expect(entries.at(-1)).toMatchObject({ op: 'opt_out', rule: 'undo', run: { mode: 'undo' } });
    const shown = (await world.call('runs', json.run, '--json')).json;
    expect(JSON.stringify(shown)).toContain(run);
  });

  test('lists the first records of each kind of change in the document of the plan', async () => {
    const people = Array.from({ length: 102 }, (_, at) => ({
      email: `p${at}@example.com`,
      news: 'yes',
    }));
    const world = await mirrored();
    world.people(people);
    const run = await synced(world);
    const { json } = await world.call('undo', run, '--dry-run', '--json', '--addresses');
    expect(json.planned).toMatchObject([
      { kind: 'contact', op: 'opt_out', held: true, count: 102 },
    ]);
    expect(json.planned[0].records).toHaveLength(100);
    expect(json.planned[0].records[0]).toEqual({
      key: 'p0@example.com',
      channels: ['ch_news'],
      reason: `undoes what run ${run} did`,
    });
    const hashed = await world.call('undo', run, '--dry-run', '--json');
    expect(hashed.out).not.toContain('@example.com');
    const sent = await world.call('undo', run, '--yes', '--json');
    expect(sent.json).not.toHaveProperty('planned');
  });

  test('keeps in the audit log who has undone a run, and why, if anything was sent', async () => {
    const { world, run } = await created();
    const decisions = async () => {
      const file = `${world.folder}/audit-${Math.random()}.jsonl`;
      await world.call('audit', 'export', '--output', file);
      const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
      return lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'decision');
    };
    await world.call('undo', run, '--agree', '0000000000000000', '--reason', 'too early');
    expect(await decisions()).toEqual([]);
    await undone(world, run, '--by', 'Eve', '--reason', 'the wrong export');
    expect(await decisions()).toMatchObject([
      { what: 'undo', about: run, name: 'Eve', reason: 'the wrong export' },
    ]);
    expect(await world.call('undo', run, '--dry-run', '--reason', 'none')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--dry-run sends nothing'),
    });
    expect(await world.call('undo', run, '--yes', '--reason', `for ${ann}`)).toMatchObject({
      code: 2,
    });
  });

  test.each([
    ['20200101T000000Z-0000', 'there is no such run'],
    ['last', 'no run has changed anything'],
  ])('refuses %s with one line', async (word, why) => {
    const world = await mirrored();
    world.people([]);
    await world.call('sync');
    const { code, err } = await world.call('undo', word, '--yes');
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(why) });
    expect(err.split('\n')).toHaveLength(1);
  });
});

describe('a template', () => {
  test('returns to the version before, and is not written again until its source changes', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    const subject = () => world.emulator.world.templates()[0]?.subject;
    world.template('welcome', { subject: 'First' });
    await synced(world);
    world.template('welcome', { subject: 'Second' });
    const run = await synced(world);
    const json = await undone(world, run);
    expect(json.templates.applied).toMatchObject({ update: 1 });
    expect(subject()).toBe('First');
    const again = (await world.call('sync', '--json')).json;
    expect(again.templates).toMatchObject({ changes: { update: 0 }, conflicts: 1 });
    const redo = await undone(world, json.run);
    expect([subject(), redo.cannot]).toEqual(['Second', []]);
    expect((await world.call('sync', '--json')).json.templates.conflicts).toBe(0);
    await undone(world, redo.run);
    world.template('welcome', { subject: 'Third' });
    await synced(world);
    expect(subject()).toBe('Third');
  });
});

// What a guard holds of an undo, and how it is approved.

/** A mirror whose first run has created so many people that a guard holds the undo. */
async function crowded(options: Parameters<typeof mirrored>[0] = {}) {
  const people = Array.from({ length: 30 }, (_, at) => ({
    email: `p${at}@example.com`,
    news: 'yes',
  }));
  const world = await mirrored(options);
  world.people(people);
  const run: string = (await world.call('sync', '--json')).json.run;
  return { world, people, run };
}

test('is held by the guard for deletes, until somebody approves this plan', async () => {
  const { world, run } = await crowded();
  const held = await world.call('undo', run, '--yes', '--json');
  expect({ code: held.code, held: held.json.contacts.held }).toMatchObject({
    code: 3,
    held: { delete: 30 },
  });
  expect(news(world, 'p1@example.com')).toBe('opt_in');
  expect((await world.call('sync', '--json')).code).toBe(0);
  const { plan } = held.json;
  const wrong = await world.call('sync', '--approve', plan);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining(`undo ${run} --approve`) });
  const done = await world.call('undo', run, '--approve', plan, '--json');
  expect(done.code).toBe(0);
  expect(news(world, 'p1@example.com')).toBe('opt_out');
});

test('names itself wherever what a guard holds is shown, and a full run ends no approval', async () => {
  const { world, run } = await crowded();
  const held = await world.call('undo', run, '--yes');
  const { plan } = (await world.call('undo', run, '--dry-run', '--json')).json;
  const way = `undo ${run} --approve ${plan}`;
  expect(held.code).toBe(3);
  for (const { said } of [held, await world.call('status'), await world.call('problems')]) {
    expect(said).toContain(way);
    expect(said).not.toContain('missing from the CRM');
  }
  expect((await world.call('sync')).said).not.toContain(plan);
  expect((await world.call('status')).said).toContain(way);
  const approved = await world.call('approve', plan);
  expect(approved.out).toContain(`crm-mirror undo ${run} --yes`);
  expect((await world.call('reject', plan, '--reason', 'no')).code).toBe(2);
  await world.call('sync');
  expect(news(world, 'p1@example.com')).toBe('opt_in');
  expect((await world.call('undo', run, '--yes')).code).toBe(0);
  expect(news(world, 'p1@example.com')).toBe('opt_out');
  expect((await world.call('status')).said).not.toContain(plan);
});

// While no window of the configuration allows its changes.

const day = weekdays[(weekdays.indexOf(localTime(Date.now(), 'UTC').weekday) + 3) % 7];
const closed = (...classes: string[]) => [{ allow: `${day} 10:00-11:00`, for: classes }];

async function closing(deletes: 'off' | 'created' = 'off') {
  const made = await mirrored({ lines: { policy: { deletes } } });
  const run: string = (await made.call('sync', '--json')).json.run;
  const close = (...classes: string[]) =>
    made.config({ policy: { deletes }, windows: closed(...classes) });
  return { ...made, run, close };
}

test('the opt-outs of `undo` are sent at any time', async () => {
  const { call, close, run, shown } = await closing();
  close('delete', 'opt_in');
  const { code, json } = await call('undo', run, '--yes', '--json');
  expect({ code, applied: json.contacts.applied.opt_out }).toEqual({ code: 0, applied: 2 });
  expect([shown(ann)?.['ch_news'], shown(bob)?.['ch_news']]).toEqual(['opt_out', 'opt_out']);
});

test('what waits is not done by any other run, so the command says when to call it again', async () => {
  const { call, close, run, shown, config } = await closing('created');
  close('delete');
  const part = await call('undo', run, '--yes');
  expect(part.code).toBe(75);
  expect(part.said).toContain(`run \`crm-mirror undo ${run} -c`);
  expect(part.said).toContain(`again from ${day} 10:00 UTC on`);
  expect(part.said).not.toContain('wait for');
  expect(shown(ann)?.['ch_news']).toBe('opt_out');
  expect((await call('sync')).code).toBe(0);
  config({ policy: { deletes: 'created' }, windows: [{ allow: '00:00-24:00' }] });
  expect((await call('undo', run, '--yes', '--json')).code).toBe(0);
  expect([shown(ann), shown(bob)]).toEqual([undefined, undefined]);
});

import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import { refusing } from '../support/commands/notice-receivers.ts';

const hashed = expect.stringMatching(/^#[0-9a-f]{12}$/);

describe('runs', () => {
  test('tells why a run was full, in --json, with --verbose and for one run', async () => {
    const world = await mirrored();
    const codes = async (...argv: string[]): Promise<string[]> => {
      const { json } = await world.call(...argv, '--json');
      return json.fullBecause.map(({ code }: { code: string }) => code);
    };
    expect(await codes('plan')).toEqual(['usual', 'first-load']);
    expect(await codes('backfill')).toEqual(['backfill', 'first-load']);
    expect(await codes('sync', '--full')).toEqual(['asked']);
    expect(await codes('sync', '--fast')).toEqual([]);
    expect(await codes('sync', '--person', ann)).toEqual([]);
    const { json } = await world.call('runs', '--json');
    expect(json.runs).toMatchObject([
      { mode: 'single', fullBecause: [] },
      { mode: 'fast', fullBecause: [] },
      { mode: 'full', fullBecause: [{ code: 'asked' }] },
      { mode: 'full', fullBecause: [{ code: 'backfill' }, { code: 'first-load' }] },
    ]);
    const { out } = await world.call('runs', '--verbose');
    expect(out).toMatch(/ full \(backfill, first-load\) /);
    const one = await world.call('runs', json.runs[2].run);
    expect(one.out).toContain('everything is compared: it was asked for with --full');
    const verbose = await world.call('sync', '--verbose');
    expect(verbose.out).toContain('everything is compared: a run compares everything unless');
  });

  test('leaves out what a failed run did not get to, and names the right that the key lacks', async () => {
    const world = await mirrored();
    await world.call('sync');
    refusing(world, 403);
    const { said } = await world.call('sync', '--verbose');
    expect(said).toContain('  CRM 2 people\n\n  run ');
    expect(said).toContain('to use contacts.list (403): give it the right to read contacts');
    const [{ run, plan }] = (await world.call('runs', '--json')).json.runs;
    const { out } = await world.call('runs', run, '--verbose');
    expect(out).toContain('complete readings  CRM yes, platform no');
    expect([plan, out]).toEqual([expect.any(String), expect.not.stringContaining(plan)]);
  });

  test('prints that there are none without a snapshot', async () => {
    const world = await mirrored();
    expect((await world.call('runs', '--json')).json).toEqual({ mirror: 'world', runs: [] });
    expect((await world.call('runs')).out).toContain('there is no snapshot yet at');
    const one = await world.call('runs', '20260806T030000Z-1a2b');
    expect(one).toMatchObject({ code: 2, err: expect.stringMatching(/no run .* → .*lists them/) });
  });

  test('lists the newest first: mode, status, time, requests, changes by outcome, reasons', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    world.template('welcome', { subject: 'Hi' });
    world.server.fail(({ body }) => body.email === ann, { is: 'answer', status: 422 });
    expect((await world.call('sync')).code).toBe(4);
    world.people([]);
    expect((await world.call('sync', '--fast', '--only', 'contacts')).code).toBe(1);
    const { json, out } = await world.call('runs', '--json');
    expect(json.runs).toMatchObject([
      {
        mode: 'fast',
        only: 'contacts',
        status: 'failed',
        changes: { contacts: {}, templates: {} },
        reasons: [expect.stringContaining('the source of contacts is empty')],
      },
      {
        mode: 'full',
        only: null,
        status: 'rejected',
        certificate: { source: true, platform: true },
        requests: { total: expect.any(Number), rateLimited: 0 },
        changes: {
          contacts: { create: { acked: 1, rejected: 1 } },
          templates: { create: { acked: 1 } },
        },
        reasons: [],
      },
    ]);
    expect(out).not.toContain('@');
    const [head, ...rows] = (await world.call('runs')).out.split('\n');
    expect(head).toMatch(/^Run +Mode +Took +Status and changes$/);
    expect(rows[0]).toMatch(/fast +[\d.]+ s +failed \(contacts only\); no changes$/);
    expect(rows[1]).toMatch(/^ {4}the source of contacts is empty/);
    expect(rows[2]).toMatch(
      /full +[\d.]+ s +done, some records have problems; 1 created, 1 template created; refused: 1 create$/,
    );
    const internals = (await world.call('runs', '--verbose')).out.split('\n');
    expect(internals[0]).toMatch(/Took +Requests +Changes$/);
    expect(internals[1]).toMatch(/0\.\d s +0 +none$/);
    expect((await world.call('runs', '--limit', '1', '--json')).json.runs).toHaveLength(1);
  });

  test('shows one run: the outcome of each change, the gravest first, without addresses', async () => {
    const world = await mirrored();
    world.server.fail(({ body }) => body.email === bob, { is: 'answer', status: 422 });
    await world.call('sync');
    const [{ run }] = (await world.call('runs', '--json')).json.runs;
    const { json, out } = await world.call('runs', run, '--json');
    expect(json).toMatchObject({
      mirror: 'world',
      run,
      status: 'rejected',
      changes: { contacts: { create: { acked: 1, rejected: 1 } } },
      more: 0,
    });
    expect(json.listed).toEqual([
      {
        kind: 'contact',
        key: hashed,
        op: 'create',
        part: 'ch_news',
        outcome: 'rejected',
        reason: expect.stringContaining('answered 422'),
        fix: expect.any(String),
        approval: null,
        plannedAt: expect.any(String),
        sentAt: expect.any(String),
        endedAt: expect.any(String),
      },
      expect.objectContaining({ key: hashed, outcome: 'acked', reason: null, fix: null }),
    ]);
    expect(out).not.toContain('@');
    const few = await world.call('runs', run, '--limit', '1');
    expect(few.out).toMatch(/ {2}! refused: create #[0-9a-f]{12} in ch_news\n {6}.* → /);
    expect(few.out).toContain('… and 1 more (--limit 2 shows all)');
    expect(few.out).not.toMatch(/Requests|readings|plan +[0-9a-f]{16}/);
    expect((await world.call('runs', run, '--verbose')).out).toMatch(
      /\n {2}plan +[0-9a-f]{16}\n {2}complete readings +CRM yes, platform yes\n[^]*Requests\n {2}\d+ in all/,
    );
    expect((await world.call('runs', run, '--addresses')).out).toContain(bob);
    expect((await world.seen('runs', run)).out).toContain(bob);
  });

  test('does not count what was planned again after a creation, in no list', async () => {
    const world = await mirrored();
    world.people([{ email: ann, news: 'yes', product: 'yes' }]);
    await world.call('sync');
    expect((await world.call('runs')).out).toMatch(/; 1 created, 1 opted in$/);
    const [{ run }] = (await world.call('runs', '--json')).json.runs;
    const { json } = await world.call('runs', run, '--json');
    expect(json).toMatchObject({
      changes: { contacts: { create: { acked: 1 }, opt_in: { acked: 1 } } },
      listed: [{ outcome: 'acked' }, { outcome: 'acked' }],
      more: 0,
    });
    expect((await world.call('explain', ann)).out).toContain('planned again after the creation (');
  });

  test('without a listing keep the conflicts of templates that one has found', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    world.template('welcome', { subject: 'Hi' });
    await world.call('sync');
    const { id } = world.emulator.world.templates()[0] ?? { id: '' };
    world.emulator.dashboard.editTemplate(id, { subject: 'By hand' });
    expect((await world.call('sync')).out).toContain('conflicts 1');
    expect((await world.call('sync', '--fast')).out).toContain('conflicts 1');
    expect((await world.call('problems')).out).toContain('was edited on the platform');
    expect((await world.call('sync', '--json')).json.problems).toEqual([]);
  });
});

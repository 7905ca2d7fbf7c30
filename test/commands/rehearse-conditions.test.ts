/** A rehearsal under other limits, with faults, and with a configuration that is not live yet. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  calling,
  type Mirrored,
  foretold,
  rehearsable,
} from '../support/commands/mirrored-contacts.ts';

const crowd = Array.from({ length: 90 }, (_, at) => ({ email: `p${at}@example.com`, news: 'yes' }));

interface Limit {
  route: string;
  limit: number;
  windowMs: number;
  from: string;
}

function limitOf(limits: readonly Limit[], route: string): Limit | undefined {
  return limits.find((one) => one.route === route);
}

describe('the limit of a route', () => {
  test('is assumed until an answer has shown it, then it is the one seen', async () => {
    const world = await rehearsable({ limits: ['*=1000/1', 'contacts.enrol=40/10'] });
    const { json: first } = await world.call('rehearse', '--json');
    expect(limitOf(first.limits, 'contacts.list')).toMatchObject({ limit: 1000, from: 'seen' });
    expect(limitOf(first.limits, 'contacts.enrol')).toEqual({
      route: 'contacts.enrol',
      limit: 30,
      windowMs: 60_000,
      from: 'assumed',
    });
    await world.call('sync');
    world.people(crowd);
    const { json: next } = await world.call('rehearse', '--json');
    const seen = { limit: 40, windowMs: 10_000, from: 'seen' };
    expect(limitOf(next.limits, 'contacts.enrol')).toMatchObject(seen);
    // 90 people and those who are missing by then: two windows pass before the last ones.
    expect(next.ms).toBeGreaterThan(20_000);
    expect(next.ms).toBeLessThan(60_000);
  });
});

describe('faults', () => {
  const rough = ['--fault', 'reset-after=0.2', '500=0.2', 'timeout-after=0.1@contacts.enrol'];

  test('happen to the rehearsal, the same with the same seed, and change nothing', async () => {
    const world = await rehearsable();
    world.people(crowd);
    const told = await world.call('rehearse', '--json', '--addresses', ...rough, '--seed', '5');
    const again = await world.call('rehearse', '--json', '--addresses', ...rough, '--seed', '5');
    const other = await world.call('rehearse', '--json', ...rough, '--seed', '6');
    expect(told.json.requests.total).toBeGreaterThan(100);
    const { readMs: _, ms: __, ...document } = told.json;
    expect(again.json).toMatchObject(document);
    expect(other.json.requests).not.toEqual(told.json.requests);
    expect(world.writes()).toEqual([]);
  });

  test('that never end fail the rehearsal as they would fail the run', async () => {
    const world = await rehearsable();
    const told = await world.call('rehearse', '--json', '--fault', '500@contacts.enrol');
    expect(told).toMatchObject({ code: 1, json: { status: 'failed', people: [] } });
    expect(told.json.reasons.length).toBeGreaterThan(0);
    const { out, err } = await world.call('rehearse', '--fault', '500@contacts.enrol');
    expect(out).toContain('0 of 2 planned changes, in ');
    expect(out).toContain('It would fail; 2 planned changes would not be made.');
    expect(out).not.toMatch(/create +2/);
    for (const reason of told.json.reasons)
      for (const said of [out, err]) expect(said).toContain(reason);
  });
});

describe('a configuration that is not live yet', () => {
  /** Writes a second configuration, which reads the product channel from another column. */
  function proposed(world: Mirrored, change: (config: Config) => void): string {
    const config: Config = JSON.parse(readFileSync(world.file, 'utf8'));
    config.snapshot = './not-live.sqlite';
    change(config);
    const file = join(world.folder, 'new.yaml');
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  interface Config {
    snapshot: string;
    platform: { url: string };
    contacts: { include?: string; channels: { id: string; subscription: unknown }[] };
  }

  async function both(world: Mirrored, file: string, ...words: string[]) {
    return calling(['rehearse', '-c', file, '--against', world.file, ...words]);
  }

  test('is compared with the live one, person by person, on its snapshot', async () => {
    const world = await rehearsable();
    await world.call('sync');
    const file = proposed(world, ({ contacts }) => {
      for (const one of contacts.channels) if (one.id === 'ch_product') one.subscription = 'news';
    });
    world.writes();
    world.server.arrived.length = 0;
    const told = await both(world, file, '--json', '--addresses');
    expect(told.code).toBe(0);
    expect(world.server.arrived.map(({ method }) => method)).toEqual(['GET']);
    // Bob says no to product mail in the live configuration.
    expect(foretold(told)).toEqual({
      [ann]: { ch_news: 'opt_in', ch_product: 'opt_in' },
      [bob]: { ch_news: 'opt_in', ch_product: 'opt_in' },
    });
    expect(told.json.against).toMatchObject({ config: world.file, status: 'done', people: [] });
    expect(told.json.differences).toEqual([
      {
        key: ann,
        config: {
          states: [{ status: 'subscribed', channels: { ch_news: 'opt_in', ch_product: 'opt_in' } }],
          changes: [expect.objectContaining({ op: 'opt_in', parts: ['ch_product'] })],
          missing: false,
        },
        against: {
          states: [{ status: 'subscribed', channels: { ch_news: 'opt_in' } }],
          changes: [],
          missing: false,
        },
      },
      expect.objectContaining({ key: bob }),
    ]);
  });

  test('that leaves people out names them, and when they would be opted out', async () => {
    const world = await rehearsable();
    await world.call('sync');
    const file = proposed(world, ({ contacts }) => {
      contacts.include = `record.email == "${ann}"`;
    });
    const told = await both(world, file, '--json', '--addresses');
    const optedOutAfter = { readings: 2, ms: 20 * 3_600_000 };
    expect(told.json).toMatchObject({
      contacts: { missing: 1 },
      missing: { before: 0, after: 1, waiting: 1, optedOutAfter },
      against: { contacts: { missing: 0 }, missing: { before: 0, after: 0, waiting: 0 } },
      differences: [{ key: bob, config: { missing: true }, against: { missing: false } }],
    });
    const { out } = await both(world, file, '--addresses');
    const later = 'opted out after 20 h and 2 complete readings (policy.absent)';
    expect(out).toContain(`1 person would be missing from the CRM, 1 more than now: ${later}`);
    expect(out).toContain(`With ${file}, 1 more person would be missing from the CRM`);
    expect(out).toContain(`nothing to do; missing from the CRM: ${later}`);

    writeFileSync(world.file, readFileSync(file, 'utf8').replace('not-live', 'cli/snapshot'));
    const plan = await world.call('plan');

    expect(plan.out).toContain(`1 more person would be missing from the CRM: ${later}`);
  });

  test('of another platform is refused', async () => {
    const world = await rehearsable();
    const file = proposed(world, ({ platform }) => {
      platform.url = 'http://127.0.0.1:9';
    });
    const { code, err } = await both(world, file);
    expect(code).toBe(2);
    expect(err).toContain('name different platforms');
  });
});

/** The first runs after an upgrade from a version that kept people who left the CRM subscribed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { migrations } from '../../../src/snapshot/database/migrations.ts';
import { patience } from '../../support/engine/engine-mirror.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const hour = 3_600_000;
const person = (id: number, more: Record<string, unknown> = {}) => ({
  id: `${id}`,
  email: `p${id}@example.com`,
  ch_news: 'yes',
  ...more,
});
const before = migrations.findIndex((step) => step.includes('waited_ms'));

/** A snapshot of the version before, with people we created; one of them was absent for long. */
function older(): string {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'snapshot.sqlite');
  const db = new Database(path);
  for (const step of migrations.slice(0, before)) db.exec(step);
  db.pragma(`user_version = ${before}`);
  const contact = (id: string) => ({ id, left: false, channels: { ch_news: 'opt_in' } });
  const body = (id: string) => ({
    channels: { ch_news: { by: 'us', is: 'opt_in' } },
    contacts: [contact(id)],
    defaults: [],
  });
  for (const at of [1, 2, 3, 4, 5]) {
    db.prepare(`insert into recorded values ('contact', ?, ?, 'created', ?, null, null, 0)`).run(
      `p${at}@example.com`,
      `con_${at}`,
      JSON.stringify(body(`con_${at}`)),
    );
  }
  db.exec(
    `insert into absence values ('contact', 'p1@example.com', 0, 1e12, 9, 'before');
     insert into meta values ('loaded', 'before');`,
  );
  db.close();
  return path;
}

/** Of five people the CRM lacks two, and flags one. */
function upgraded(options: StageOptions = {}): Stage {
  const stage = openStage({ path: older(), policy: { absent: 'opt_out' }, ...options });
  for (const at of [1, 2, 3, 4, 5]) {
    const email = `p${at}@example.com`;
    stage.emulator.seed.contact({ id: `con_${at}`, email, channels: { ch_news: 'opt_in' } });
  }
  stage.people.push(person(3, { deleted: 'true' }), person(4), person(5));
  return stage;
}

const unstated = { ...patience, deletes: 'off' } as const;
const said = /^policy\.absent is opt_out by default/;
const notes = ({ reasons }: { reasons: string[] }) => reasons.filter((line) => said.test(line));
const optOuts = (stage: Stage) =>
  stage
    .writes()
    .flatMap(({ subscription, email }) => (subscription === 'opt_out' ? [email ?? ''] : []))
    .toSorted();

async function nextDay(stage: Stage, name: string): Promise<void> {
  await stage.clock.advance(20 * hour);
  Object.assign(stage.certificate, { reading: name });
  await stage.sync();
}

describe('without policy.absent in the configuration', () => {
  test('the first run announces what will happen and to how many people, and does nothing yet', async () => {
    const stage = upgraded({ unstated });
    const planned = await stage.sync({ writes: false });
    const first = await stage.sync({ mode: 'fast' });
    expect(first.status).toBe('done');
    expect(notes(first)).toEqual([
      'policy.absent is opt_out by default since this version: 2 people who are missing from the ' +
        'CRM will be opted out once they have been missing in 2 readings and 20 h, counted from now, ' +
        'and 1 person who is flagged as deleted there in the next run ' +
        '→ set policy.absent: keep to leave them subscribed',
    ]);
    expect(notes(planned)).toEqual(notes(first));
    expect(optOuts(stage)).toEqual([]);
    expect(notes(await stage.sync())).toEqual([]);
    expect(optOuts(stage)).toEqual(['p3@example.com']);
  });

  test('absence counts from the announcement on', async () => {
    const stage = upgraded({ unstated });
    await stage.sync();
    expect(optOuts(stage)).toEqual([]);
    await nextDay(stage, 'the next day');
    expect(optOuts(stage)).toEqual(['p1@example.com', 'p2@example.com', 'p3@example.com']);
  });

  test('the note tells when people are deleted, too', async () => {
    const deleteAfterMs = 30 * 24 * hour;
    const stage = upgraded({ unstated: { ...unstated, deletes: 'created', deleteAfterMs } });
    const [note] = notes(await stage.sync());
    expect(note).toContain('and deleted 30 d after that (policy.deleteAfter)');
  });

  test('an uncertified reading and a run about one person announce nothing and do nothing', async () => {
    const stage = upgraded({ unstated });
    const single = await stage.sync({ mode: { single: 'p3@example.com' }, only: 'contacts' });
    Object.assign(stage.certificate, { complete: false, why: 'cut short', fix: 'export again' });
    const cut = await stage.sync();
    expect([...notes(single), ...notes(cut), ...optOuts(stage)]).toEqual([]);
    Object.assign(stage.certificate, { complete: true });
    expect(notes(await stage.sync())).toHaveLength(1);
  });
});

test('stating policy.absent skips the announcement, and absence counts anew', async () => {
  const stage = upgraded();
  expect(notes(await stage.sync())).toEqual([]);
  expect(optOuts(stage)).toEqual(['p3@example.com']);
  await nextDay(stage, 'the next day');
  expect(optOuts(stage)).toEqual(['p1@example.com', 'p2@example.com']);
});

test('a new snapshot announces nothing', async () => {
  const stage = openStage({ unstated, policy: { absent: 'opt_out' } });
  stage.people.push(person(1), person(2));
  expect((await stage.sync()).reasons).toEqual([]);
  stage.people.pop();
  expect((await stage.sync()).reasons).toEqual([]);
});

/** A snapshot that was put back: what was ours in the backup may be the person's own by now. */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { approvePlan, rejectPlan } from '../../../src/engine/judge/plan-decisions.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import { toSend } from '../../support/emulator/emulator-stage.ts';
import { deletes, exportOf, flag, mirrored, range } from '../../support/engine/change-volume.ts';
import {
  hearing,
  openStage,
  shown,
  type Stage,
  type StageOptions,
} from '../../support/engine/engine-stage.ts';
import { scratchFolder } from '../../support/waiting.ts';

const ANN = 'ann@example.com';
const hour = 3_600_000;

/** Ann is in the newsletter; the CRM may say of both channels what it likes. */
async function open(options: StageOptions = {}) {
  const folder = scratchFolder();
  const [path, copy] = [join(folder, 'snapshot.sqlite'), join(folder, 'backup.sqlite')];
  const { heard, returns } = hearing();
  const stage = openStage({ returns, path, ...options });
  const says = async (ch_news: string, ch_product = ''): Promise<void> => {
    stage.people[0] = { id: '1', email: ANN, ch_news, ch_product };
    await stage.clock.advance(hour);
    await stage.sync();
  };
  // Two more people show which channels this platform names.
  stage.people.push(
    {},
    { id: '8', email: 'max@example.com', ch_news: 'yes' },
    { id: '9', email: 'ida@example.com', ch_product: 'yes' },
  );
  await says('yes');
  const backUp = (): void => {
    const db = new Database(path);
    db.exec(`vacuum into '${copy}'`);
    db.close();
  };
  const restore = async (): Promise<void> => {
    stage.snapshot.close();
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
    copyFileSync(copy, path);
    stage.snapshot = openSnapshot(path);
    await stage.clock.advance(hour);
    await stage.sync({ restored: true });
  };
  /** By the API, which need not move `updatedAt`. */
  const leave = async (channel: string): Promise<void> => {
    await stage.clock.advance(hour);
    const send = toSend(stage.emulator, { clock: stage.clock });
    const request = {
      method: 'POST',
      path: `/api/contacts/channel/${channel}`,
      headers: { 'x-api-key': 'key', 'content-type': 'application/json' },
      body: JSON.stringify({
        contact_id: stage.emulator.world.contact(ANN)?.id,
        subscription: 'opt_out',
      }),
    } as const;
    await stage.clock.run(send(request, new AbortController().signal));
    expect(shown(stage, ANN, channel)).toBe('opt_out');
  };
  return { stage, heard, says, backUp, restore, leave };
}

test('a person opted in since the backup, who unsubscribed, stays out', async () => {
  const { stage, heard, says, backUp, restore, leave } = await open();
  await says('no');
  backUp();
  await says('yes');
  await leave('ch_news');
  await restore();
  expect(shown(stage, ANN)).toBe('opt_out');
  await says('yes');
  expect(shown(stage, ANN)).toBe('opt_out');
  expect(heard).toEqual([]);
});

test('a person who unsubscribed since the backup stays out when wanted in later', async () => {
  const { stage, heard, says, backUp, restore, leave } = await open();
  await says('no');
  backUp();
  await says('yes');
  await leave('ch_news');
  stage.people[0] = { id: '1', email: ANN, ch_news: '', ch_product: '' };
  await restore();
  await says('yes');
  expect(shown(stage, ANN)).toBe('opt_out');
  expect(heard).toEqual([]);
});

test('a person who left a channel with a default in the backup stays out', async () => {
  const { stage, heard, says, backUp, restore, leave } = await open({
    platform: { quirks: ['all-channels=opt_out'] },
  });
  backUp();
  await says('yes', 'yes');
  await leave('ch_product');
  await restore();
  await says('yes', 'yes');
  expect(shown(stage, ANN, 'ch_product')).toBe('opt_out');
  expect(heard).toEqual([]);
});

test('our opt-out since the backup is not reported, for no record of the address', async () => {
  const { stage, heard, says, backUp, restore } = await open();
  backUp();
  stage.people.push({ id: '2', email: ANN }, { id: '3', email: 'new@example.com', ch_news: 'yes' });
  await says('yes');
  stage.people[4] = { id: '3', email: 'new@example.com', ch_news: 'no' };
  await says('no');
  stage.people.push({ id: '4', email: 'new@example.com' });
  await restore();
  await says('yes');
  expect([shown(stage, ANN), shown(stage, 'new@example.com')]).toEqual(['opt_out', 'opt_out']);
  expect(heard).toEqual([]);
});

test('an opt-out that the CRM states as in the backup is ours, and can be taken back', async () => {
  const { stage, says, backUp, restore } = await open();
  await says('no');
  backUp();
  await restore();
  await says('yes');
  expect(shown(stage, ANN)).toBe('opt_in');
});

test.each([
  ['is taken back where the contact shows that nothing has changed', false, 'opt_in'],
  ['is not where the contact has changed since', true, 'opt_out'],
] as const)('where enrolments change `updatedAt`, ours %s', async (_what, leaves, then) => {
  const quirks = ['enrol-touches'];
  const { stage, says, backUp, restore, leave } = await open({ platform: { quirks } });
  await says('no');
  await says('no');
  backUp();
  if (leaves) {
    await says('yes');
    await leave('ch_news');
  }
  stage.people[0] = { id: '1', email: ANN, ch_news: 'yes' };
  await restore();
  expect(shown(stage, ANN)).toBe(then);
});

test('a contact made since the backup is adopted long after it, and nobody departed', async () => {
  const { stage, heard, says, backUp, restore } = await open();
  const [, ...others] = stage.people;
  const bob = { id: '2', email: 'bob@example.com' };
  backUp();
  stage.people = [{}, ...others, { ...bob, ch_news: 'yes' }];
  await says('yes');
  stage.people = [{}, ...others, { ...bob, ch_news: 'no' }];
  await says('yes');
  stage.people = [{}, ...others];
  await restore();
  await says('yes');
  stage.people = [{}, ...others, { ...bob, ch_news: 'yes' }];
  await says('yes');
  await says('yes');
  expect(shown(stage, bob.email)).toBe('opt_out');
  expect(heard).toEqual([]);
});

describe('an approval from before a restored backup', () => {
  const decision = (stage: Stage) => ({ at: stage.clock.now(), by: 'anna', reason: 'looked' });

  /**
   * Four are flagged, which is too many; it is approved by a clock that is `aheadMs` ahead, and
   * then the backup is made.
   */
  async function approved(aheadMs = 0) {
    const folder = scratchFolder();
    const [path, copy] = [join(folder, 'snapshot.sqlite'), join(folder, 'backup.sqlite')];
    const stage = await mirrored({ path });
    exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
    const { plan } = await stage.sync();
    const decide = (what: typeof approvePlan, ahead = 0) => {
      const { at, ...who } = decision(stage);
      return what(stage.snapshot, { plan, only: {}, decision: { at: at + ahead, ...who } });
    };
    decide(approvePlan, aheadMs);
    const never = new AbortController();
    const at = stage.clock.now();
    (await stage.snapshot.copy(copy, { at, signal: never.signal })).name();
    await stage.clock.advance(hour);
    const restore = (): void => {
      stage.snapshot.close();
      for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
      copyFileSync(copy, path);
      stage.snapshot = openSnapshot(path);
    };
    return { stage, plan, decide, restore };
  }

  test.each([0, 2, 1000])(
    'releases nothing that was rejected after the backup, and a note says so (%i hours ahead)',
    async (ahead) => {
      const { stage, plan, decide, restore } = await approved(ahead * hour);
      decide(rejectPlan);
      restore();
      for (const writes of [false, true]) {
        expect(await stage.sync({ restored: true, writes })).toMatchObject({
          status: 'held',
          contacts: { held: { delete: 4 } },
          reasons: expect.arrayContaining([
            `the approval of ${plan} is older than the restored backup, and releases nothing ` +
              `→ if it is still right, \`crm-mirror approve ${plan}\``,
          ]),
        });
      }
      // The mark of the backup is dropped, and the approval stays ended.
      stage.snapshot.transaction(() => stage.snapshot.meta.drop('copied-at'));
      expect((await stage.sync()).contacts.held.delete).toBe(4);
      expect(deletes(stage)).toBe(0);
    },
  );

  test('is given again, also before the first run', async () => {
    const { stage, decide, restore } = await approved();
    restore();
    decide(approvePlan);
    expect((await stage.sync({ restored: true })).contacts.applied).toMatchObject({ delete: 4 });
  });
});

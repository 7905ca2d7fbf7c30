/** A contact that was renamed on the platform, and the opt-outs of the CRM meant for it. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  hearing,
  openStage,
  type Stage,
  type StageOptions,
} from '../../support/engine/engine-stage.ts';
import { sent } from '../../support/engine/sample-people.ts';
import { scratchFolder } from '../../support/waiting.ts';

const OLD = 'old@example.com';
const NEW = 'new@example.com';
const lea = { id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' };
const out = { ...lea, ch_news: 'no', ch_product: 'no' };
const optOuts = [`opt_out ${NEW} ch_news`, `opt_out ${NEW} ch_product`];

const pathOf = (): string => join(scratchFolder(), 'snapshot.sqlite');

/** Lea is in both channels; then the contact is renamed on the platform. */
async function renamed(options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  stage.people.push({ ...lea });
  await stage.sync();
  stage.emulator.dashboard.editContact(OLD, { email: NEW });
  stage.writes();
  return stage;
}

const shown = (stage: Stage) =>
  stage.emulator.world.contact(NEW)?.channels.map(({ subscription }) => subscription);
const conflicts = ({ problems }: Awaited<ReturnType<Stage['sync']>>) =>
  problems.filter((problem) => problem.class === 'conflict').map(({ part }) => part);

describe('an opt-out stated by the CRM goes to the renamed contact by its id', () => {
  test.each([
    ['full', async (stage: Stage) => stage.sync()],
    ['fast', async (stage: Stage) => stage.sync({ mode: 'fast' })],
    ['one', async (stage: Stage) => stage.sync({ mode: { single: OLD } })],
    ['an event', async (stage: Stage) => stage.clock.run(stage.one('1'))],
  ])('%s, and the rename is reported', async (_what, runs) => {
    const stage = await renamed({ path: pathOf() });
    stage.people[0] = { ...out };
    const summary = await runs(stage);
    expect(sent(stage)).toEqual(optOuts);
    expect(summary).toMatchObject({ status: 'done', contacts: { conflicts: 1, rejected: 0 } });
    expect(conflicts(summary)).toEqual(['']);
    for (const mode of ['full', 'fast'] as const) {
      expect((await stage.sync({ mode })).contacts.conflicts).toBe(1);
    }
    expect(sent(stage)).toEqual([]);
  });

  test('after an earlier attempt without an answer that did not take effect', async () => {
    let fails = 0;
    const stage = await renamed({
      wire: (send) => async (request, signal) => {
        if (fails === 0 || request.method !== 'POST') return send(request, signal);
        fails -= 1;
        return { status: 504, headers: {}, body: '' };
      },
    });
    stage.people[0] = { ...out };
    fails = 6;
    for (const mode of ['fast', 'fast', 'full'] as const) {
      await stage.sync({ mode });
      await stage.clock.advance(3_600_000);
    }
    expect(shown(stage)).toEqual(['opt_out', 'opt_out']);
  });
});

describe('another CRM record with the new address', () => {
  const other = (ch_news: string) => ({ id: '2', email: NEW, ch_news, ch_product: '' });

  test.each(['full', 'fast'] as const)(
    'keeps the opt-out from being sent when it opts in: %s',
    async (mode) => {
      const stage = await renamed();
      stage.people.push(other('yes'));
      await stage.sync();
      stage.people[0] = { ...out };
      stage.writes();
      const summary = await stage.sync({ mode });
      expect(sent(stage)).toEqual(optOuts.slice(1));
      expect(conflicts(summary)).toContain('ch_news');
      expect(summary.problems[0]).toMatchObject({ class: 'conflict', part: 'ch_news' });
      expect(summary.problems[0]?.reason).toContain('the opt-out is not sent');
      const again = await stage.sync({ mode });
      expect(again.problems[0]).toMatchObject({ part: 'ch_news', isNew: false });
      expect(sent(stage)).toEqual([]);
      expect(shown(stage)).toEqual(['opt_in', 'opt_out']);
    },
  );

  test('keeps an event from sending the opt-out after the last full run saw the rename', async () => {
    const stage = await renamed({ path: pathOf() });
    stage.people.push(other('yes'));
    await stage.sync();
    stage.people[0] = { ...out };
    stage.writes();
    // The event does not read the other record, which may want the person in.
    expect((await stage.clock.run(stage.one('1'))).problems[0]?.reason).toContain('is not sent');
    expect(sent(stage)).toEqual([]);
    await stage.sync({ mode: 'fast' });
    expect(sent(stage)).toEqual(optOuts.slice(1));
  });
});

describe('after a full run has seen a rename, the origin of an opt-out stays known', () => {
  const MID = 'mid@example.com';
  const second = { id: '2', email: NEW, ch_news: 'yes' };

  /** Lea is in both channels; two more show that this platform names no others. */
  async function known() {
    const { heard, returns } = hearing();
    const stage = openStage({ returns });
    stage.people.push(
      { ...lea },
      { id: '8', email: 'max@example.com', ch_news: 'yes' },
      { id: '9', email: 'ida@example.com', ch_product: 'yes' },
    );
    await stage.sync();
    const rename = async (from: string, to: string): Promise<void> => {
      stage.emulator.dashboard.editContact(from, { email: to });
      await stage.sync();
    };
    const news = (email: string) =>
      stage.emulator.world.contact(email)?.channels.find(({ id }) => id === 'ch_news')
        ?.subscription;
    return { stage, heard, rename, news };
  }

  test.each([
    ['one rename', [NEW], 'full'],
    ['two renames', [MID, NEW], 'fast'],
  ] as const)(
    'the person unsubscribed, and nobody opts them in: %s %s %s',
    async (_what, names, mode) => {
      const { stage, rename, news } = await known();
      stage.emulator.dashboard.leave(OLD, 'ch_news');
      await stage.sync();
      for (const [at, name] of names.entries()) await rename(names[at - 1] ?? OLD, name);
      stage.emulator.dashboard.removeFromChannel(NEW, 'ch_news');
      stage.people.push(second);
      expect((await stage.sync({ mode })).contacts.conflicts).toBeGreaterThan(0);
      expect(news(NEW)).toBeUndefined();
    },
  );

  test.each([
    ['after the opt-out', async () => undefined],
    [
      'after another contact got the old address',
      async (stage: Stage) => {
        stage.emulator.dashboard.editContact(OLD, { email: NEW });
        stage.emulator.dashboard.signUp({ email: OLD, channels: ['ch_product'] });
        await stage.sync();
      },
    ],
    [
      'twice, and the first record is gone',
      async (stage: Stage) => {
        stage.emulator.dashboard.editContact(OLD, { email: MID });
        await stage.sync();
        stage.people.shift();
        await stage.sync();
        stage.emulator.dashboard.editContact(MID, { email: NEW });
      },
    ],
  ])('our opt-out is not reported as the person’s: renamed %s', async (_what, renames) => {
    const { stage, heard, news } = await known();
    stage.people[0] = { ...lea, ch_news: 'no' };
    await stage.sync();
    await renames(stage);
    if (!stage.emulator.world.contact(NEW)) {
      stage.emulator.dashboard.editContact(OLD, { email: NEW });
      await stage.sync();
    }
    stage.people.push(second);
    await stage.sync();
    await stage.sync();
    expect(news(NEW)).toBe('opt_out');
    expect(heard).toEqual([]);
  });

  test('the opt-out says nothing about another contact with the old address', async () => {
    const { stage, rename, news } = await known();
    stage.people.push({ ...second, ch_news: '' });
    await rename(OLD, NEW);
    stage.emulator.dashboard.signUp({ email: OLD, channels: ['ch_news'] });
    await stage.sync();
    stage.people[3] = { ...second, ch_news: 'no' };
    await stage.sync();
    expect(news(NEW)).toBe('opt_out');
    const row = stage.snapshot.recorded.get('contact', OLD);
    expect(JSON.parse(row?.body ?? '').channels.ch_news).toMatchObject({ is: 'opt_in' });
  });
});

describe('who said no under the new address is not created again once that contact is deleted', () => {
  type Happens = (stage: Stage) => void;
  const leaves: Happens = ({ emulator }) => void emulator.dashboard.leave(NEW, 'ch_news');

  /** Lea is renamed, something happens under the new address, a run sees it, all is deleted. */
  async function gone(happens: Happens, { isLost = false, ...options }: Going = {}) {
    const stage = await renamed({ policy: { missing: 'recreate' }, ...options });
    await stage.sync();
    happens(stage);
    await stage.sync();
    if (isLost) stage.loseSnapshot();
    stage.emulator.dashboard.deleteContact(NEW);
    stage.writes();
    const summary = await stage.sync();
    return { stage, summary, news: sent(stage) };
  }
  type Going = StageOptions & { isLost?: boolean };
  const back = (...channels: string[]) => channels.map((id) => `opt_in ${OLD} ${id}`);

  test.each<[string, Happens, string[]]>([
    ['nothing', () => undefined, back('ch_news', 'ch_product')],
    ['unsubscribes from a channel', leaves, back('ch_product')],
    ['unsubscribes from all mail', ({ emulator }) => emulator.dashboard.unsubscribe(NEW), []],
    ['complains', ({ emulator }) => emulator.dashboard.suppress(NEW, 'complaint'), []],
    [
      'has an address that bounces',
      ({ emulator }) => emulator.dashboard.suppress(NEW, 'bounce'),
      back('ch_news', 'ch_product'),
    ],
    [
      'is opted out by the record of the new address',
      (stage) => stage.people.push({ id: '2', email: NEW, ch_news: 'no', ch_product: '' }),
      back('ch_product'),
    ],
    [
      'unsubscribes, although another record has the new address',
      (stage) => {
        leaves(stage);
        stage.people.push({ id: '2', email: NEW, ch_news: 'yes', ch_product: '' });
      },
      back('ch_product'),
    ],
  ])('%s', async (_what, happens, news) => {
    const found = await gone(happens);
    expect(found.news.filter((line) => line.includes(OLD))).toEqual(news);
    expect((await found.stage.sync()).contacts.applied).toMatchObject({ create: 0, opt_in: 0 });
  });

  test('also if only the sentinel has seen it', async () => {
    const stage = await renamed({ policy: { missing: 'recreate' }, path: pathOf() });
    await stage.sync();
    await stage.clock.run(stage.look());
    stage.emulator.dashboard.unsubscribe(NEW);
    await stage.clock.run(stage.look());
    stage.emulator.dashboard.deleteContact(NEW);
    stage.writes();
    await stage.sync();
    expect(sent(stage)).toEqual([]);
  });

  test('unless the person subscribed again there', async () => {
    const stage = await renamed({ policy: { missing: 'recreate' } });
    await stage.sync();
    leaves(stage);
    await stage.sync();
    stage.emulator.dashboard.signUp({ email: NEW, channels: ['ch_news'] });
    await stage.sync();
    stage.emulator.dashboard.deleteContact(NEW);
    stage.writes();
    await stage.sync();
    expect(sent(stage)).toEqual(back('ch_news', 'ch_product'));
  });

  test('and a record that gets the new address takes its own opt-out back', async () => {
    const stage = await renamed({ policy: { missing: 'recreate' } });
    await stage.sync();
    stage.people[0] = { ...out, email: NEW };
    await stage.sync();
    stage.people[0] = { ...lea, email: NEW };
    stage.writes();
    await stage.sync();
    expect(sent(stage)).toEqual([`opt_in ${NEW} ch_news`, `opt_in ${NEW} ch_product`]);
  });
});

/** The guard for templates: many that change at once are held, new ones never. */
import { expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { approve, hour, range } from '../../support/engine/change-volume.ts';

const guards = { template: { percent: 20, floor: 3 } };

const letter = (at: number, subject = 'Hello') => ({
  key: `letter-${at}`,
  name: `letter-${at}`,
  subject,
});
const letters = (from: number, to: number, subject?: string) =>
  Array.from({ length: to - from }, (_, at) => letter(from + at, subject));

function staged(options: StageOptions = {}): Stage {
  return openStage({ guards, ...options });
}

/** Thirty templates of ours, and some people. */
async function owned(options: StageOptions = {}): Promise<Stage> {
  const stage = staged(options);
  stage.templates.push(...letters(0, 30));
  stage.people.push(...range(0, 3));
  expect((await stage.sync()).templates.applied).toMatchObject({ create: 30 });
  stage.writes();
  return stage;
}

const rewrite = (stage: Stage, from: number, to: number, subject: string): void =>
  void stage.templates.splice(from, to - from, ...letters(from, to, subject));

test('thirty new templates are created, with the fields that only an update can set', async () => {
  const stage = staged();
  stage.templates.push(...letters(0, 30).map((one) => ({ ...one, fromEmail: 'us@example.com' })));
  expect(await stage.sync()).toMatchObject({ status: 'done', templates: { held: 0 } });
  const made = stage.emulator.world.templates();
  expect(made).toHaveLength(30);
  expect(made.every(({ fromEmail }) => fromEmail === 'us@example.com')).toBe(true);
  rewrite(stage, 0, 3, 'New');
  expect((await stage.sync()).templates).toMatchObject({ held: 0, applied: { update: 3 } });
});

test.each(['full', 'fast'] as const)(
  'thirty rewritten templates are held in a %s run, and the rest is applied',
  async (mode) => {
    const stage = await owned();
    rewrite(stage, 0, 30, 'New');
    stage.templates.push(letter(30));
    stage.people.push(...range(3, 4));
    const summary = await stage.sync({ mode });
    expect(summary).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 1 } },
      templates: { held: 30, changes: { update: 30 }, applied: { create: 1, update: 0 } },
      problems: [{ kind: 'template', key: 'template', class: 'held' }],
    });
    expect(summary.problems[0]?.reason).toContain('30 templates would be changed or archived');
    expect(summary.problems[0]?.fix).toContain(`crm-mirror approve ${summary.plan}`);
    expect((await stage.sync({ writes: false })).templates.held).toBe(30);
    approve(stage, summary.plan);
    expect(await stage.sync({ mode })).toMatchObject({
      status: 'done',
      templates: { held: 0, applied: { update: 30 } },
    });
    expect((await stage.sync()).status).toBe('done');
    expect(stage.snapshot.holds.approvals(0)).toEqual([]);
  },
);

test('an approval covers the content that was shown: another content is held anew', async () => {
  const stage = await owned();
  rewrite(stage, 0, 30, 'New');
  const { plan } = await stage.sync();
  approve(stage, plan);
  rewrite(stage, 0, 10, 'Newer');
  expect((await stage.sync()).templates).toMatchObject({ held: 10, applied: { update: 20 } });
});

test('found and overwritten templates count in a first load', async () => {
  const stage = staged({ policy: { templates: 'overwrite' } });
  for (const { name } of letters(0, 30)) stage.emulator.seed.template({ name, subject: 'Old' });
  stage.templates.push(...letters(0, 30));
  expect(await stage.sync({ firstLoad: true })).toMatchObject({
    status: 'held',
    templates: { held: 30, applied: { update: 0 } },
  });
  expect(stage.writes()).toEqual([]);
});

test('templates archived because their source lost them count', async () => {
  const stage = await owned({ policy: { absentTemplates: 'archive' } });
  stage.templates.splice(0, 20);
  expect((await stage.sync()).templates).toMatchObject({ held: 20, changes: { archive: 20 } });
});

test('held changes are kept by a run of templates alone, and dropped when nobody wants them', async () => {
  const stage = await owned();
  rewrite(stage, 0, 30, 'New');
  await stage.sync({ only: 'templates' });
  expect(stage.snapshot.holds.current()).toMatchObject([{ held: { template: 30 } }]);
  expect((await stage.sync({ only: 'contacts' })).status).toBe('done');
  expect(stage.snapshot.holds.current()).toMatchObject([{ held: { template: 30 } }]);
  rewrite(stage, 0, 30, 'Hello');
  expect((await stage.sync({ only: 'templates' })).status).toBe('done');
  expect(stage.snapshot.holds.current()).toEqual([]);
  expect(stage.snapshot.holds.oldest('template')).toBeUndefined();
});

test.each(['500', 'timeout-after', 'timeout-before', 'garbage'])(
  'new templates are completed without an approval if their creations are answered by %s',
  async (fault) => {
    const stage = staged({ platform: { faults: [`${fault}=0.8@templates.create`] } });
    const rest = { fromEmail: 'us@example.com', status: 'published' };
    stage.templates.push(...letters(0, 12).map((one) => ({ ...one, ...rest })));
    for (let run = 0; run < 30 && done(stage) < 12; run += 1) {
      expect((await stage.sync({ firstLoad: run === 0 })).templates).toMatchObject({ held: 0 });
      await stage.clock.advance(hour);
    }
    expect(stage.emulator.world.templates()).toHaveLength(12);
    expect(done(stage)).toBe(12);
    await stage.sync();
    rewrite(stage, 0, 12, 'New');
    expect((await stage.sync()).templates).toMatchObject({ held: 12, changes: { update: 12 } });
  },
);

const done = ({ emulator }: Stage): number =>
  emulator.world
    .templates()
    .filter(({ fromEmail, status }) => fromEmail === 'us@example.com' && status === 'published')
    .length;

test('new templates are completed without an approval if a run ends between both steps', async () => {
  const stage = staged({ platform: { faults: ['500=1@templates.update'] } });
  stage.templates.push(...letters(0, 12).map((one) => ({ ...one, fromEmail: 'us@example.com' })));
  await stage.sync();
  expect(stage.emulator.world.templates()).toHaveLength(12);
  const summary = await stage.sync();
  expect(summary.templates).toMatchObject({ held: 0, changes: { create: 0, update: 12 } });
});

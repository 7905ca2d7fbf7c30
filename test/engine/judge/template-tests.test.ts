/** Tests of changed templates: the whole engine against the whole emulator. */
import { describe, expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const qa = ['qa@example.com', 'ann@example.com'];
const letter = (at: number, more: Record<string, unknown> = {}) => ({
  key: `l${at}`,
  subject: `Hello ${at}`,
  content: [{ text: 'Dear {{name}}' }],
  ...more,
});
const published = { status: 'published' };

function tested(more: StageOptions = {}): Stage {
  return openStage({ testTo: qa, ...more });
}

const shown = (stage: Stage) =>
  stage.emulator.world
    .templates()
    .map(({ name, subject, status }) => `${name} ${subject} ${status}`)
    .toSorted();
const sent = (stage: Stage) =>
  stage.emulator.world.outbox().map(({ to, subject }) => `${to} ${subject}`);
const routes = (stage: Stage) =>
  stage
    .writes()
    .map(({ method, path }) => `${method} ${path.replace(/tem_\w+|[0-9a-f-]{20,}/, 'ID')}`);

describe('a template that is to be published', () => {
  test('is written as a draft, tested, and published after that', async () => {
    const stage = tested();
    stage.templates.push(letter(1, { ...published, replyTo: 'us@example.com' }));
    const run = await stage.sync();
    expect(run).toMatchObject({ status: 'done', templates: { applied: { create: 1 }, held: 0 } });
    const paths = stage.writes().map(({ method, path }) => `${method} ${path.split('/').pop()}`);
    expect(paths.map((path) => path.replace(/ (?!create|test).*/, ' update'))).toEqual([
      'POST create',
      'PUT update',
      'POST test',
      'POST test',
      'PUT update',
    ]);
    expect(shown(stage)).toEqual(['l1 Hello 1 published']);
    expect(sent(stage).toSorted()).toEqual(['ann@example.com Hello 1', 'qa@example.com Hello 1']);
    expect(await stage.sync()).toMatchObject({ templates: { changes: { create: 0, update: 0 } } });
    expect(sent(stage)).toHaveLength(2);
  });

  test('was a draft: many of them count once, and need no second approval', async () => {
    const stage = tested({ guards: { template: { percent: 0, floor: 2 } } });
    stage.templates.push(...[1, 2, 3].map((at) => letter(at)));
    await stage.sync();
    expect(sent(stage)).toEqual([]);
    stage.templates.splice(
      0,
      3,
      ...[1, 2, 3].map((at) => letter(at, { ...published, subject: 'New' })),
    );
    const held = await stage.sync();
    expect(held).toMatchObject({ status: 'held', templates: { held: 3 } });
    expect(sent(stage)).toEqual([]);
    const { plan } = held;
    stage.snapshot.holds.decide({
      id: plan,
      plan,
      verdict: 'approved',
      at: stage.clock.now(),
      by: 'anna',
      reason: null,
    });
    expect(await stage.sync()).toMatchObject({ status: 'done', templates: { held: 0 } });
    expect(shown(stage)).toEqual(['l1 New published', 'l2 New published', 'l3 New published']);
    expect(sent(stage)).toHaveLength(6);
  });

  test('is not published if the test is refused, until somebody has mended that', async () => {
    let isRefused = true;
    const wire: StageOptions['wire'] = (send) => async (request, signal) =>
      isRefused && request.path.endsWith('/test')
        ? {
            status: 400,
            headers: {},
            body: '{"message":"no such sender","fix":"verify the domain"}',
          }
        : send(request, signal);
    const stage = tested({ wire });
    stage.templates.push(letter(1, published));
    const run = await stage.sync();
    expect(run).toMatchObject({ status: 'rejected' });
    expect(run.problems).toMatchObject([
      {
        kind: 'template',
        key: 'l1',
        class: 'rejected',
        reason: 'the test was refused: no such sender',
        fix: expect.stringContaining('verify the domain; then correct the template'),
      },
    ]);
    expect(shown(stage)).toEqual(['l1 Hello 1 draft']);
    isRefused = false;
    // It is tried again once the template changes.
    expect(await stage.sync()).toMatchObject({ templates: { applied: { update: 0 } } });
    expect(shown(stage)).toEqual(['l1 Hello 1 draft']);
    stage.templates.splice(0, 1, letter(1, { ...published, subject: 'Better' }));
    await stage.sync();
    expect(shown(stage)).toEqual(['l1 Better published']);
  });

  test('is tested once, also if the process dies between the test and the publishing', async () => {
    let isDying = true;
    const wire: StageOptions['wire'] = (send) => async (request, signal) => {
      const isPublishing = request.method === 'PUT' && request.body?.includes('published');
      if (isDying && isPublishing) throw new Error('killed');
      return send(request, signal);
    };
    const stage = tested({ wire });
    stage.templates.push(letter(1, published));
    await expect(stage.sync()).rejects.toThrow('killed');
    expect(sent(stage)).toHaveLength(2);
    isDying = false;
    await stage.clock.advance(60_000);
    await stage.sync();
    await stage.sync();
    expect(shown(stage)).toEqual(['l1 Hello 1 published']);
    expect(sent(stage)).toHaveLength(2);
  });
});

test('a published template is tested after a change, once for each content', async () => {
  const stage = tested();
  stage.templates.push(letter(1, published));
  await stage.sync();
  stage.templates.splice(0, 1, letter(1, { ...published, description: 'For Ann' }));
  await stage.sync();
  expect(sent(stage)).toHaveLength(2);
  stage.templates.splice(0, 1, letter(1, { ...published, subject: 'New' }));
  await stage.sync();
  expect(sent(stage)).toHaveLength(4);
  expect(await stage.sync()).toMatchObject({ status: 'done' });
});

test('a refused test of a published template is a problem until it is changed again', async () => {
  let isRefused = false;
  const wire: StageOptions['wire'] = (send) => async (request, signal) =>
    isRefused && request.path.endsWith('/test')
      ? { status: 400, headers: {}, body: '{"message":"no such sender"}' }
      : send(request, signal);
  const stage = tested({ wire });
  stage.templates.push(letter(1, published));
  await stage.sync();
  isRefused = true;
  stage.templates.splice(0, 1, letter(1, { ...published, subject: 'New' }));
  await stage.sync();
  const run = await stage.sync();
  expect(run.problems[0]?.reason).toBe(
    'was changed, and no test could be sent: the test was refused: no such sender',
  );
  isRefused = false;
  stage.templates.splice(0, 1, letter(1, { ...published, subject: 'Newer' }));
  await stage.sync();
  expect((await stage.sync()).problems).toEqual([]);
});

test('without addresses, a template is published in one step', async () => {
  const stage = openStage();
  stage.templates.push(letter(1, { ...published, replyTo: 'us@example.com' }));
  await stage.sync();
  expect(routes(stage)).toHaveLength(2);
  expect(sent(stage)).toEqual([]);
});

describe('a change of many templates', () => {
  const canary = {
    percent: 2,
    floor: 5,
    waitMs: 30 * 60_000,
    bounds: { unsubscribed: 5, refused: 5, drift: 5 },
  };

  async function many(more: StageOptions = {}) {
    const stage = tested({ canary, ...more });
    const letters = Array.from({ length: 12 }, (_, at) => letter(at, published));
    stage.templates.push(...letters);
    await stage.sync();
    await stage.sync();
    const before = sent(stage).length;
    stage.templates.splice(0, 12, ...letters.map((one) => ({ ...one, subject: 'New' })));
    return { stage, before, run: await stage.sync() };
  }

  test('is made in one first, which is tested, and in the rest after the wait', async () => {
    const { stage, before, run } = await many();
    expect(run).toMatchObject({
      status: 'done',
      deferred: { template: 11 },
      templates: { applied: { update: 1 } },
      canaries: [{ class: 'template', because: 'templates', size: 1, of: 12, state: 'waiting' }],
    });
    expect(sent(stage)).toHaveLength(before + 2);
    await stage.clock.advance(31 * 60_000);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      deferred: { template: 0 },
      templates: { applied: { update: 11 } },
    });
    await stage.sync();
    // The next change of many begins anew.
    stage.templates.forEach((one) => void (one['subject'] = 'Newest'));
    expect(await stage.sync()).toMatchObject({ deferred: { template: 11 } });
  });

  test('awaits approval if the first one was edited on the platform meanwhile', async () => {
    const { stage } = await many();
    const first = stage.emulator.world.templates().find(({ subject }) => subject === 'New');
    await stage.clock.advance(60_000);
    stage.emulator.dashboard.editTemplate(first?.id ?? '', { subject: 'Mine' });
    await stage.clock.advance(31 * 60_000);
    const run = await stage.sync();
    expect(run).toMatchObject({ status: 'held', templates: { held: 11 } });
    expect(run.problems.find((one) => one.class === 'held')?.reason).toContain(
      '1 of 1 template of the canary does not show what was written within',
    );
  });
});
